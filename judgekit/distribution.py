"""The distribution that this package is installed by. On package indexes, the name judgekit is that of other software."""

from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version

NAME = "agent-judgekit"


def own_version() -> str:
    """Return the version of judgekit."""
    return version(NAME)


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs, and nothing by the name of judgekit."""
    try:
        requirements = [text.partition(";") for text in requires(NAME) or ()]
    except PackageNotFoundError:  # a copy that was not installed
        requirements = []
    needed = [name.strip() for name, _, marker in requirements if f'extra == "{extra}"' in marker.replace("'", '"')]
    return f"pip install {' '.join(map(repr, needed)) if needed else extra}"


def other_owners() -> list[str]:
    """Return other distributions in this environment that own the import name judgekit."""
    return sorted({*packages_distributions().get("judgekit", ())} - {NAME})
