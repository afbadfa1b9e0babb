"""The working folder is not on the import path, unless the user names code of their own."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

from judgekit.distribution import NAME
from tests.judges.conftest import Server

_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_NAME = re.compile(r"[\w.-]+")
SCRIPT = [str(Path(sys.executable).parent / "judgekit")]
COMMANDS = [
    "run data.jsonl -s tool_call_f1 -s prompt:tone --judge openai/m --config judgekit.toml -o report.html -o rows.csv",
    "run data.jsonl -s tool_call_f1 --workers 2 --store workers.sqlite",
    "runs last",
    "compare last last",
    "resume last",
    "label last -o sheet.csv",
    "inspect data.jsonl",
    "inspect data.parquet",
    "convert data.jsonl converted.jsonl --to openai-chat",
    "scorers",
    "formats",
    "cache stats",
    "doctor",
]


def needed(name: str = NAME, seen: set[str] | None = None) -> set[str]:
    """Return the installed distributions that judgekit may import, with its extras and theirs."""
    seen = set() if seen is None else seen
    if name not in seen:
        try:
            requirements = distribution(name).requires or ()
        except PackageNotFoundError:
            return seen
        seen.add(name)
        for requirement in requirements:
            if "extra ==" not in requirement:
                needed(_NAME.match(requirement)[0], seen)
    return seen


@pytest.fixture(scope="module")
def optional() -> set[str]:
    """The modules that judgekit and its dependencies import somewhere, and that are not installed."""
    names: set[str] = set()
    for name in needed():
        for file in distribution(name).files or ():
            path = Path(str(file.locate()))
            if path.suffix == ".py" and "test" not in path.as_posix():
                names |= {found.decode() for found in _IMPORT.findall(path.read_bytes())}
    for path in Path(find_spec("judgekit").origin).parent.rglob("*.py"):
        names |= {found.decode() for found in _IMPORT.findall(path.read_bytes())}
    return {name for name in names | {"h2", "brotli", "socksio", "tornado"} if find_spec(name) is None}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder with data, and a judge that answers."""
    monkeypatch.chdir(tmp_path)
    server = Server()
    server.script = [server.says({"evidence": [], "reason": "Yes.", "label": "yes"})]
    Path("judgekit.toml").write_text(f'[judges.default]\nmodel = "openai/m"\nbase_url = "{server.url}"\nattempts = 1\n')
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
    Path("data.jsonl").write_text("".join(json.dumps({"messages": messages}) + "\n" for _ in range(2)))
    Path("data.parquet").write_bytes(b"PAR1")
    yield tmp_path
    server.stop()


def shadow(names, folder: Path) -> Path:
    mark = folder / "executed"
    for name in names:
        program = f"open({str(mark)!r}, 'a').write({name!r} + ' ')\nraise ImportError({name!r})\n"
        (folder / f"{name}.py").write_text(program)
    return mark


def run_all(program, commands, mark: Path) -> None:
    for command in commands:
        words = [*program, *command.split()]
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=50)  # noqa: S603 - our own
        assert not mark.exists(), (program, command, mark.read_text())
        assert "Traceback" not in ended.stderr, (command, ended.stderr)


@pytest.mark.processes
def test_no_command_executes_what_shadows_an_import(optional, folder):
    assert len(optional) > 50
    run_all(SCRIPT, COMMANDS, shadow(optional | sys.stdlib_module_names, folder))


@pytest.mark.processes
def test_nor_does_the_module(optional, folder):
    """Python itself puts the folder first, so what shadows its own modules is only safe with -P."""
    mark = shadow(optional, folder)
    run_all([sys.executable, "-m", "judgekit"], COMMANDS[:2], mark)
    run_all([sys.executable, "-P", "-m", "judgekit"], COMMANDS[:1], shadow(sys.stdlib_module_names, folder))
