"""Runs in Python: what they are given, and what they say."""

import asyncio
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgekit import PromptScorer, Sample, ScriptedJudge, StringPresence, ToolCallF1, TopicAdherence, scorer
from judgekit.behavior import MaxTokens
from judgekit.cli import main
from judgekit.errors import ConfigError, JudgekitError
from judgekit.jobs import session as module
from judgekit.jobs.api import arun, run
from judgekit.runs.results import Run
from judgekit.runs.rows import Input
from judgekit.runs.store import RunStore
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.traces.message import AIMessage, HumanMessage

SAMPLE = Sample.of([HumanMessage("Hi"), AIMessage("Hello")])


def fine(sample: Sample) -> float:
    return 1.0


def says(words: object) -> str:
    with pytest.raises(ConfigError) as caught:
        run([SAMPLE], words)  # type: ignore[arg-type] - what is tried here
    return str(caught.value)


def test_what_is_no_scorer_says_what_to_write():
    for found, told in (
        (ToolCallF1, "the class ToolCallF1: call it, ToolCallF1()"),
        (TopicAdherence, "the class TopicAdherence: call it, TopicAdherence(judge)"),
        (PromptScorer, "the class PromptScorer: call it, PromptScorer(prompt, judge)"),
        (fine, "the function fine: decorate it with @scorer"),
        (lambda sample: 1.0, "the function <lambda>: write scorer(name=...)(function)"),
        (SAMPLE, "a Sample: pass the samples first, run(samples, scorers)"),
        ({"name": "tool_call_f1"}, "{'name': 'tool_call_f1'}: pass an object such as ToolCallF1()"),
        (ScriptedJudge, "<class 'judgekit.judges.scripted.ScriptedJudge'>: pass an object such as ToolCallF1()"),
        (None, "None: pass an object such as ToolCallF1()"),
    ):
        assert says([ToolCallF1(), found]) == f"scorers[1]: expected a scorer, found {told}"


NOTHING = "no scorers: name some with --scorer NAME or [[scorers]] in a config file; judgekit scorers lists them"


def test_what_is_no_list_of_scorers_says_what_to_write():
    for found, told in (
        (ToolCallF1(), "scorers must be a list: write [scorer]"),
        (ToolCallF1, "expected a list of scorers, found the class ToolCallF1: call it, ToolCallF1()"),
        (fine, "expected a list of scorers, found the function fine: decorate it with @scorer"),
        (
            "tool_call_f1",
            "expected a list of scorers, found 'tool_call_f1': pass names to run in a list; elsewhere pass an object, such as ToolCallF1()",
        ),
        (None, NOTHING),
        ([], NOTHING),
    ):
        assert says(found) == told


def test_scorers_of_an_iterator_all_score():
    found = run([SAMPLE], (one for one in (MaxTokens(5), scorer(fine))))  # type: ignore[arg-type] - what is tried here
    assert [row.scorer for row in found] == ["max_tokens", "fine"]


@pytest.mark.parametrize("samples", [[{"input": "Hi"}], iter([{"input": "Hi"}]), "missing.jsonl"])
def test_what_cannot_be_scored_leaves_no_run_behind(samples, tmp_path):
    with pytest.raises(JudgekitError):
        run(samples, [ToolCallF1()], store=tmp_path / "runs.sqlite")
    assert not (tmp_path / "runs.sqlite").exists() or RunStore(tmp_path / "runs.sqlite").numbers() == []


# --- files


@pytest.fixture
def rows(tmp_path) -> Path:
    """Three rows, the second of which cannot be read."""
    lines = [json.dumps({"input": "Hi", "response": word, "reference": "yes"}) for word in ("yes", "no")]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([lines[0], "{broken", lines[1]]) + "\n")
    return path


def values(found: Run) -> list[tuple[int, float | None]]:
    return [(row.index, row.score.value) for row in found]


@pytest.mark.parametrize("of", [Path, str])
def test_the_path_of_a_file_is_read_and_kept_with_the_hash_of_what_it_holds(rows, of):
    rows.write_text(rows.read_text().replace("{broken\n", ""))
    found = run(of(rows), [StringPresence()])
    assert values(found) == [(0, 1.0), (1, 0.0)]
    assert found.inputs == (Input.of(rows),)
    assert (found.record.notes, found.record.read_to_end) == ((), True)


def test_records_that_cannot_be_read_are_warned_of_and_stand_in_the_run(rows, monkeypatch):
    with pytest.warns(UserWarning, match=r"^1 record could not be read: .*rows.jsonl \(line 2\): not JSON") as told:
        found = run(rows, [StringPresence()])
    assert [Path(one.filename).name for one in told] == ["test_api.py"]
    assert values(found) == [(0, 1.0), (2, 0.0)]
    assert found.record.notes == ("1 record could not be read",)
    assert "1 record could not be read" in str(found)
    monkeypatch.chdir(rows.parent)
    monkeypatch.setattr(sys, "argv", ["judgekit", "run", str(rows), "--scorer", "string_presence"])
    with pytest.raises(SystemExit):
        main()
    shell = Run.stored()
    assert (values(shell), shell.record.notes, shell.inputs) == (values(found), found.record.notes, found.inputs)


def test_an_async_run_reads_files_and_warns_too(rows):
    async def work() -> Run:
        return await arun(rows, [StringPresence()])

    with pytest.warns(UserWarning, match="1 record could not be read") as told:
        found = asyncio.run(work())
    assert [Path(one.filename).name for one in told] == ["test_api.py"]
    assert values(found) == [(0, 1.0), (2, 0.0)]


def test_a_file_that_breaks_off_is_noted(tmp_path, rows):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.jsonl").write_text(rows.read_text().replace("{broken\n", ""))
    (folder / "b.jsonl").write_text('{"x": [1]}\n')
    with pytest.warns(UserWarning, match="files, or columns of them, could not be read: .*b.jsonl"):
        found = run(folder, [StringPresence()])
    assert found.record.notes == ("files, or columns of them, could not be read",)


def test_a_file_that_is_written_while_it_is_read_is_noted(rows):
    rows.write_text(rows.read_text().replace("{broken\n", ""))

    @scorer
    def writes(sample: Sample) -> float:
        rows.write_text("")
        return 1.0

    with pytest.warns(UserWarning, match=r"rows\.jsonl changed while it was being read$"):
        found = run(rows, [writes])
    assert found.record.notes == (f"{rows} changed while it was being read",)


# --- progress


def test_progress_is_shown_where_it_is_wanted(rows, monkeypatch):
    shown = []

    @contextmanager
    def progress(tally, on):
        yield
        shown.append((tally.total, tally.done, tally.failed, on.stderr))

    monkeypatch.setattr(module, "progress", progress)

    @scorer
    def broken(sample: Sample) -> float:
        raise ValueError

    run([SAMPLE, SAMPLE], [scorer(fine), broken], progress=True)
    run(iter([SAMPLE]), [scorer(fine)], progress=True)
    asyncio.run(arun([SAMPLE], [scorer(fine)], progress=True))
    with pytest.warns(UserWarning, match="could not be read"):
        run(rows, [scorer(fine)], progress=True)
    run([SAMPLE], [scorer(fine)])
    assert shown == [(4, 4, 2, True), (None, 1, 0, True), (1, 1, 0, True), (3, 2, 0, True)]


# --- scorers by name


def test_names_objects_and_the_scorers_of_a_config_give_the_same_scores(conversations):
    path = conversations(5)
    Path("judgekit.toml").write_text('gate = ["tool_call_f1 >= 0.9"]\n[[scorers]]\nname = "tool_call_f1"\n')
    objects = run(path, [ToolCallF1()])
    named = run(path, ["tool_call_f1"], store="runs.sqlite")
    configured = run(path, store="runs.sqlite")
    assert list(objects) == list(named) == list(configured)
    assert objects.scorers == named.scorers == configured.scorers
    assert (objects.record.options["gates"], named.record.options["gates"]) == ([], ["tool_call_f1 >= 0.9"])


def test_objects_read_no_config(conversations):
    Path("judgekit.toml").write_text("broken")
    assert len(run(conversations(2), [ToolCallF1()])) == 2
    with pytest.raises(ConfigError, match=r"judgekit\.toml: cannot be read"):
        run(conversations(2), ["tool_call_f1"])


def test_a_config_that_is_named_says_whether_text_is_kept(conversations):
    Path("mine.toml").write_text("store_text = false\n")
    found = run(conversations(2), [ToolCallF1()], config="mine.toml")
    assert (found.record.keeps_text, list(found.conversations())) == (False, [])


def test_options_and_judges_of_names_are_those_of_the_command_line(conversations):
    with pytest.raises(ConfigError, match="name one with --judge"):
        run(conversations(1), ["topic_adherence"])
    with pytest.raises(ConfigError, match="'locall'"):
        run(conversations(1), ["tool_call_f1"], judge="locall")
    with pytest.raises(ConfigError, match="'locall'"):
        run(conversations(1), [ToolCallF1()], judge="locall")
    found = run(conversations(1), ["rouge:rouge1,as=words"])
    assert [one.name for one in found.scorers] == ["words"]


# --- workers

ANSWER = {"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [1], "verdict": "achieved"}]}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"workers": 0}, "workers must be at least 1, found 0"),
        ({"store": None}, "workers=2: the workers need a file to write to: name it, such as store='runs.sqlite'"),
        ({"data": [SAMPLE]}, "workers=2: the workers read the samples themselves: pass the path of a file"),
        (
            {"scorers": ["tool_call_accuracy", ToolCallF1(), MaxTokens(5)]},
            "workers=2: objects cannot be sent to another process: tool_call_f1, max_tokens; name them by texts",
        ),
    ],
)
def test_what_cannot_be_sent_to_workers_says_what_is_missing(conversations, given, told):
    named = {"data": conversations(3), "scorers": ["tool_call_f1"], "workers": 2, "store": "runs.sqlite", **given}
    with pytest.raises(ConfigError, match=told):
        run(**named)
    assert not Path("runs.sqlite").exists()


def test_a_scorer_that_asks_a_judge_stays_here_and_may_be_an_object(conversations):
    found = run(conversations(3), [AgentGoalAccuracyWithoutReference(ScriptedJudge(lambda _: ANSWER))], workers=2)
    assert [line.counts["scored"] for line in found.summary] == [3]


@pytest.mark.processes
def test_under_a_running_loop_workers_work_too(conversations):
    async def notebook() -> Run:
        return run(conversations(20), ["tool_call_f1"], workers=2, store="runs.sqlite")

    assert len(asyncio.run(notebook())) == 20


SCRIPT = """
from judgekit import run
print(len(run("samples.jsonl", ["tool_call_f1"], workers=2, store="runs.sqlite")))
"""


@pytest.mark.processes
def test_a_script_without_a_guard_is_told_of_it(conversations, forked):
    conversations(20)
    Path("script.py").write_text(SCRIPT)
    out, err = forked("python", Path("script.py").absolute()).communicate()
    assert out == ""
    told = "a worker process has died; in a script, use workers under if __name__ == '__main__'"
    assert any(line.endswith(told) for line in err.splitlines())
