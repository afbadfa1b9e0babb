"""Where the files that ship with judgekit stand: prompts, and the conversations of the demo."""

from pathlib import Path


def shipped(folder: str) -> Path:
    """A folder of an installed judgekit, or of a checkout, where it stands beside the package."""
    package = Path(__file__).parent
    installed = package / folder
    return installed if installed.is_dir() else package.parent / folder
