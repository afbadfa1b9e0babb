"""The location of files that ship with judgekit: prompts, and the conversations of the demo."""

from pathlib import Path


def resource_folder(folder: str) -> Path:
    """Return a folder of an installed judgekit, or of a checkout, where it is next to the package."""
    package = Path(__file__).parent
    installed = package / folder
    return installed if installed.is_dir() else package.parent / folder
