"""The command line's entry point."""

from importlib import import_module
from pkgutil import iter_modules

import pytest
from typer.main import get_command_name

from judgekit import cli
from judgekit.cli.app import COMMAND_MODULES, app

INTERRUPTED = """
import os, signal, sys

class AtImport:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests with it ignored
sys.meta_path.insert(0, AtImport())
sys.argv = ["judgekit", "formats"]
from judgekit.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["judgekit.cli", "pydantic", "judgekit.cli.lists"])
def test_ctrl_c_while_modules_are_imported_ends_it_without_a_traceback(run_python, name):
    done = run_python("-c", INTERRUPTED.format(name=name))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


LOADED = """
import sys
from judgekit.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture
def loaded(run_python):
    """The modules that a command has loaded at its end."""
    return lambda *words: {*run_python("-c", LOADED, *words).stderr.split()}


def test_a_run_without_a_judge_needs_neither_scipy_nor_templates(loaded, examples, tmp_path):
    recorded = str(examples / "conversations.jsonl")
    modules = loaded("run", recorded, "--scorer", "tool_call_f1", "--store", str(tmp_path / "runs.sqlite"))
    assert "judgekit.stats.intervals" in modules
    assert not {"scipy", "sklearn", "openai", "jinja2", "judgekit.reports.html"} & modules


def test_a_run_without_a_judge_loads_no_judge_no_report_and_no_worker(loaded, examples, tmp_path):
    """Nor numpy, if all scores are 0 or 1."""
    recorded, one = (examples / "conversations.jsonl").read_text().splitlines()[0], tmp_path / "one.jsonl"
    one.write_text(recorded)
    scorers = ("--scorer", "tool_call_f1", "--scorer", "tool_call_accuracy")
    modules = loaded("run", str(one), *scorers, "--store", str(tmp_path / "runs.sqlite"))
    assert "judgekit.stats.wilson" in modules
    unneeded = ("numpy", "judgekit.judges", "judgekit.reports.export", "judgekit.analysis.correction", "tenacity")
    assert [name for name in modules if name.startswith((*unneeded, "multiprocessing", "judgekit.config_file"))] == []


def test_a_run_that_replays_its_replies_loads_no_client(loaded, examples, tmp_path):
    """Nor does it make a TLS context, which the libraries of clients do."""
    recorded, config = str(examples / "conversations.jsonl"), str(examples / "judgekit.toml")
    words = ("run", recorded, "--config", config, "--scorer", "topic_adherence")
    modules = loaded(*words, "--store", str(tmp_path / "runs.sqlite"))
    assert "judgekit.scorers.topic" in modules
    assert not {"openai", "httpx", "httpx2", "aiohttp", "litellm"} & modules


def test_a_command_loads_no_other(loaded):
    modules = loaded("formats")
    assert "judgekit.cli.lists" in modules
    assert not {f"judgekit.cli.{name}" for name in {*COMMAND_MODULES.values()} - {"lists"}} & modules


def test_all_commands_are_listed_with_their_modules():
    for module in iter_modules(cli.__path__):
        import_module(f"judgekit.cli.{module.name}")
    found = {
        get_command_name(one.callback.__name__) if one.name is None else one.name: one.callback.__module__
        for one in app.registered_commands
    }
    found |= {one.name: one.typer_instance.registered_commands[0].callback.__module__ for one in app.registered_groups}
    assert found == {name: f"judgekit.cli.{module}" for name, module in COMMAND_MODULES.items()}


def test_it_runs_as_a_module(run_python):
    done = run_python("-m", "judgekit", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()[0].isdigit()
