"""``judgekit skill``: how to use judgekit, for coding agents."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.errors import ConfigError
from judgekit.resources import resource_folder

_TEXT = Path("judgekit", "SKILL.md")
commands = typer.Typer(no_args_is_help=True, help="Teach a coding agent how to use judgekit.")
app.add_typer(commands, name="skill")


class CodingAgent(StrEnum):
    """A coding agent that reads skills from a folder of the project."""

    CLAUDE = "claude"
    CODEX = "codex"
    CURSOR = "cursor"
    GEMINI = "gemini"

    @property
    def folder(self) -> Path:
        """The folder of its skills. Codex reads the one that several agents share."""
        return Path(".agents" if self is CodingAgent.CODEX else f".{self}", "skills")


@commands.callback()
def _group() -> None:
    pass


@commands.command()
def install(agent: Annotated[CodingAgent, typer.Argument(help="The coding agent that reads it.")]) -> None:
    """Write the skill into the project's folder, where the agent finds it. A file that differs is left alone."""
    text = (resource_folder("skills") / _TEXT).read_bytes()
    path = agent.folder / _TEXT
    if path.exists() and path.read_bytes() != text:
        raise ConfigError(
            f"{path}: differs from the skill of this version, and is left as it is; move it away to install"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    print_line(f"wrote {path}: {agent} reads it when a task is about judgekit")
