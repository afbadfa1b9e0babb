"""Reading a run runs nothing of it: code that somebody else's file names is neither imported nor called."""

import sys
from pathlib import Path

import pytest

from judgekit.errors import ConfigError
from judgekit.jobs.api import resume, run
from judgekit.judges.judge import Judge
from judgekit.runs.results import Run

SCORER = """
from pathlib import Path
from judgekit import Score

Path("executed").touch()

def own(sample):
    return Score.scored("own", 0.5, aggregate="AGGREGATE")

def lowest(scores):
    return min(score.value for score in scores)
"""
PROVIDER = """
from pathlib import Path
from judgekit.judges.providers.provider import Provider
from judgekit.judges.request import Reply

Path("executed").touch()

class Client:
    def __init__(self, connection): pass
    async def complete(self, request):
        return Reply(text='{"reason": "", "evidence": [], "verdict": "fitting"}')
    async def aclose(self): pass

PROVIDER = Provider(Client, base_url="http://localhost/none")
"""
COMMANDS = [
    "runs last",
    "runs last -o page.html",
    "compare 1 1",
    "merge shard.sqlite --store merged.sqlite",
    "resume last",
    "audit last",
    "label last -o sheet.csv",
]


@pytest.fixture
def folder(tmp_path, monkeypatch, request) -> Path:
    """A folder in which somebody else scored with their own code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("judgekit.registry._named", set())
    Path("evil.py").write_text(SCORER.replace("AGGREGATE", "evil:lowest"))
    line = '{"id": "ID", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
    Path("data.jsonl").write_text(line.replace("ID", "1") + line.replace("ID", "2"))
    made = run("data.jsonl", ["evil.py:own"], store="others.sqlite")
    run("data.jsonl", ["evil.py:own"], store="shard.sqlite", shard="1/1", run_id="x")
    assert made.summary["own"].value == 0.5
    return tmp_path


@pytest.fixture
def stranger(folder, monkeypatch) -> Path:
    """The same in a process that knows nothing of the code."""
    sys.modules.pop("evil", None)
    Path("executed").unlink()
    monkeypatch.setattr("judgekit.registry._named", set())
    return folder


def test_no_command_runs_code_that_a_store_names(stranger, cli):
    for command in COMMANDS:
        words = command.split()
        ended = cli(*words, *([] if "--store" in words else ["--store", "others.sqlite"]))
        assert not Path("executed").exists(), command
        assert "evil" not in sys.modules, command
        if words[0] in ("runs", "compare", "merge", "resume") and "-o" not in words:
            assert "iscodethatastoredrunnames" in "".join(f"{ended.out}{ended.err}".split()), command


@pytest.mark.parametrize(
    "command", ["runs last", "compare 1 1", "merge shard.sqlite --store merged.sqlite", "resume last"]
)
def test_code_is_run_after_allow_code_or_if_the_config_at_hand_names_it(stranger, cli, monkeypatch, command):
    words = command.split()
    store = [] if "--store" in words else ["--store", "others.sqlite"]
    assert "is code that" not in "".join(map(str, cli(*words, *store, "--allow-code")))
    assert Path("executed").exists()
    sys.modules.pop("evil", None)
    monkeypatch.setattr("judgekit.registry._named", set())
    Path("merged.sqlite").unlink(missing_ok=True)
    Path("judgekit.toml").write_text('[[scorers]]\nname = "evil.py:own"\n')
    assert "is code that" not in "".join(map(str, cli(*words, *store)))
    assert "evil" in sys.modules


def test_a_provider_that_a_store_names_is_not_imported(folder, cli, monkeypatch):
    Path("theirs.py").write_text(PROVIDER)
    made = run("data.jsonl", ["prompt:tone"], judge="theirs.py:PROVIDER/m", store="theirs.sqlite")
    assert made.summary["tone"].value == 1
    Path("executed").unlink()
    sys.modules.pop("theirs", None)
    monkeypatch.setattr("judgekit.registry._named", set())
    for command in ("resume last --retry-failed", "score last --scorer prompt:refusal_appropriateness"):
        ended = cli(*command.split(), "--store", "theirs.sqlite")
        assert "iscodethatastoredrunnames" in "".join(ended.err.split())
        assert not Path("executed").exists()


def test_a_stored_run_names_no_code_in_python_either(stranger):
    assert "is code that a stored run names" in str(Run.stored(path="others.sqlite"))
    with pytest.raises(ConfigError, match="is code that a stored run names"):
        resume(store="others.sqlite")
    assert not Path("executed").exists()
    assert Run.stored(path="others.sqlite", allow_code=True).summary["own"].value == 0.5


@pytest.mark.parametrize("reference", ["builtins:print", "judgekit.atomic:write_text"])
def test_no_module_that_is_loaded_already_is_called_either(folder, reference, monkeypatch):
    Path("other.py").write_text(SCORER.replace("AGGREGATE", reference))
    run("data.jsonl", ["other.py:own"], store="others.sqlite")
    monkeypatch.setattr("judgekit.registry._named", set())
    assert "is code that a stored run names" in str(Run.stored(path="others.sqlite"))


def test_a_provider_of_a_judge_that_no_scorer_asks_is_not_imported(stranger, cli):
    Path("judgekit.toml").write_text('[judges.unasked]\nmodel = "evil.py:Provider/m"\n')
    assert "2 skipped" in cli("run", "data.jsonl", "-s", "tool_call_f1", "--store", "mine.sqlite").err
    Judge("evil.py:Provider/m")
    assert not Path("executed").exists()
