"""What a run in Python is given."""

import asyncio
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgekit import (
    AIMessage,
    HumanMessage,
    JudgekitError,
    MaxTokens,
    PromptScorer,
    Sample,
    ScriptedJudge,
    StringPresence,
    ToolCallF1,
    TopicAdherence,
    arun,
    run,
    scorer,
)
from judgekit.cli import main
from judgekit.errors import ConfigError, TraceError
from judgekit.runs import progress as module
from judgekit.runs.results import Run
from judgekit.runs.rows import Input
from judgekit.runs.store import Store

SAMPLE = Sample.of([HumanMessage("Hi"), AIMessage("Hello")])


def fine(sample: Sample) -> float:
    return 1.0


def says(words: object) -> str:
    with pytest.raises(ConfigError) as caught:
        run([SAMPLE], words)  # type: ignore[arg-type] - what is tried here
    return str(caught.value)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (ToolCallF1, "the class ToolCallF1: call it, ToolCallF1()"),
        (TopicAdherence, "the class TopicAdherence: call it, TopicAdherence(judge)"),
        (PromptScorer, "the class PromptScorer: call it, PromptScorer(prompt, judge)"),
        (fine, "the function fine: put @scorer above it"),
        (lambda sample: 1.0, "the function <lambda>: write scorer(name=...)(function)"),
        (
            "tool_call_f1",
            "'tool_call_f1': a scorer goes by its name on the command line alone; in Python it is an object, such as ToolCallF1()",
        ),
        (SAMPLE, "a Sample: the samples come first, run(samples, scorers)"),
        ({"name": "tool_call_f1"}, "{'name': 'tool_call_f1'}: a scorer is an object such as ToolCallF1()"),
        (ScriptedJudge, "<class 'judgekit.judges.scripted.ScriptedJudge'>: a scorer is an object such as ToolCallF1()"),
        (None, "None: a scorer is an object such as ToolCallF1()"),
    ],
)
def test_what_is_no_scorer_says_what_to_write(found, told):
    assert says([ToolCallF1(), found]) == f"scorers[1] is {told}"


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (ToolCallF1(), "scorers is one scorer: put it into a list, [scorer]"),
        (ToolCallF1, "scorers is the class ToolCallF1: call it, ToolCallF1(); scorers are given in a list"),
        (fine, "scorers is the function fine: put @scorer above it; scorers are given in a list"),
        (None, "scorers is None: a scorer is an object such as ToolCallF1(); scorers are given in a list"),
        ([], "there is nothing to score with: give at least one scorer"),
    ],
)
def test_what_is_no_list_of_scorers_says_what_to_write(found, told):
    assert says(found) == told


def test_scorers_of_an_iterator_all_score():
    found = run([SAMPLE], (one for one in (MaxTokens(5), scorer(fine))))  # type: ignore[arg-type] - what is tried here
    assert [row.scorer for row in found] == ["max_tokens", "fine"]


@pytest.mark.parametrize("samples", [[{"input": "Hi"}], iter([{"input": "Hi"}]), "missing.jsonl"])
def test_what_cannot_be_scored_leaves_no_run_behind(samples, tmp_path):
    with pytest.raises(JudgekitError):
        run(samples, [ToolCallF1()], store=tmp_path / "runs.sqlite")
    assert not (tmp_path / "runs.sqlite").exists() or Store(tmp_path / "runs.sqlite").records() == []


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
    with pytest.warns(
        UserWarning, match=r"^1 record could not be read: .*rows.jsonl, record 1 \(line 2\): not JSON"
    ) as told:
        found = run(rows, [StringPresence()])
    assert [Path(one.filename).name for one in told] == ["test_given.py"]
    assert values(found) == [(0, 1.0), (2, 0.0)]
    assert found.record.notes == ("1 record could not be read",)
    assert "1 record could not be read" in str(found)
    assert "1 record could not be read" in found._repr_html_()
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
    assert [Path(one.filename).name for one in told] == ["test_given.py"]
    assert values(found) == [(0, 1.0), (2, 0.0)]


def test_many_records_that_cannot_be_read_are_told_in_one_warning(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input": "Hi", "response": "yes", "reference": "yes"}\n' + "{broken\n" * 9)
    with pytest.warns(UserWarning, match="9 records could not be read: .*; and 4 more$") as told:
        run(path, [StringPresence()])
    assert len(told) == 1


def test_a_file_of_which_no_record_can_be_read_is_an_error_and_no_run(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text('{"schema_version": 1, "id": 1, "trace": {"messages": 5}}\n')
    with pytest.raises(TraceError, match=r"none of the 1 records could be read; the first: .*own\.jsonl, record 0"):
        run(path, [StringPresence()], store=tmp_path / "runs.sqlite")
    assert Store(tmp_path / "runs.sqlite").records() == []


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

    with pytest.warns(UserWarning, match=r"rows\.jsonl was written while it was read$"):
        found = run(rows, [writes])
    assert found.record.notes == (f"{rows} was written while it was read",)


def test_samples_in_python_have_no_files():
    assert run([SAMPLE], [ToolCallF1()]).inputs == ()


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
