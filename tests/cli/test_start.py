"""Runs that fail before anything is scored: they leave nothing behind, and use up no number."""

import asyncio
import re
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from judgekit import Sample, arun, run
from judgekit.errors import AuthenticationError, BudgetError, ConfigError
from judgekit.formats.reading import Recordings
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, SampleCount
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore, now
from judgekit.scoring import scorer

F1 = ("--scorer", "tool_call_f1")
GOAL = ("--scorer", "agent_goal_accuracy_without_reference")


def counts() -> dict[str, int]:
    """How many lines each table holds, but for results, which any change deletes."""
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        of = (f"SELECT '{name}', count(*) FROM {name}" for name in names - {"sqlite_sequence", "results"})  # noqa: S608
        return dict(db.execute(sql).fetchone() for sql in of)


def unreadable() -> Path:
    path = Path("broken.jsonl")
    path.write_text('{"trace": {"messages": 1}}\n{"trace": {"messages": 2}}\n')
    return path


def settings(url: str, **changes: object) -> None:
    lines = [f"{name} = {value}" for name, value in changes.items()]
    Path("judgekit.toml").write_text(
        "\n".join(["[judges.default]", 'model = "openai/test"', f'base_url = "{url}"', *lines])
    )


@pytest.mark.parametrize(
    "words",
    [
        lambda made: ["nowhere.jsonl", *F1],
        lambda made: [unreadable(), *F1],
        lambda made: [unreadable(), *F1, "--strict"],
        lambda made: [made, *GOAL],  # whose budget is nothing
    ],
    ids=["no file", "no record can be read", "strict", "no budget"],
)
def test_a_start_that_fails_leaves_no_run_and_uses_no_number(cli, conversations, judging, words):
    settings(judging.url, budget="{requests = 0}")
    path = conversations(3)
    cli("run", path, *F1)
    before = counts()
    ended = cli("run", *words(path))
    assert (ended.code, ended.out, ended.err.startswith("judgekit: ")) == (2, "", True)
    assert "resume" not in ended.err
    assert counts() == before
    assert "saved as run 2 in" in cli("run", path, *F1).err


@pytest.mark.parametrize("error", ["401 invalid_api_key", "404 model_not_found", "429 insufficient_quota"])
def test_what_the_provider_refuses_at_the_first_request_leaves_no_run(cli, conversations, judging, error):
    status, code = error.split()
    judging.reply = lambda *_: (int(status), {"error": {"message": "no", "code": code}})
    settings(judging.url, concurrency=2)
    Path("rows.jsonl").write_text("what was there before")
    ended = cli("run", conversations(40), *GOAL, "-o", "rows.jsonl")
    assert (ended.code, f"HTTP {status}" in ended.err) == (2, True)
    assert (1 <= len(judging.requests) <= 2, Path("rows.jsonl").read_text()) == (True, "what was there before")
    assert set(counts().values()) == {0}
    assert "saved as run 1 in" in cli("run", conversations(2), *F1).err


def test_a_run_that_goes_on_is_not_forgotten(cli, conversations, judging):
    """Somebody may know its number, whatever keeps it from going on."""
    settings(judging.url, budget="{requests = 0}")
    path = conversations(3)
    cli("run", path, *GOAL)
    settings(judging.url)
    cli("run", path, *GOAL)
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db, db:
        db.execute("DELETE FROM scores")  # as if it had been killed before the first one
    settings(judging.url, budget="{requests = 0}", cache_mode='"off"')
    before = Run.stored().record
    assert cli("resume").code == 2
    assert Run.stored().record == before


def test_ctrl_c_before_the_first_score_leaves_no_run(cli, conversations, monkeypatch):
    path = conversations(3)

    def interrupted(*_: object) -> Iterator[tuple[int, Sample]]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Recordings, "numbered", interrupted)
    assert cli("run", path, *F1, "-o", "rows.jsonl") == (130, "", "interrupted before anything was scored\n")
    assert (counts()["runs"], Path("rows.jsonl").exists()) == (0, False)


@pytest.mark.processes
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 1), (signal.SIGTERM, 2)])
def test_a_signal_before_the_first_score_keeps_the_run_for_the_request_that_may_be_paid(
    cli, started, judging, conversations, until, number, workers
):
    answering, said = threading.Event(), judging.answer
    judging.answer = lambda conversation: answering.wait(30) and said(conversation)
    path = conversations(3)
    process = started("run", path, *GOAL, "--workers", workers)
    until(lambda: judging.asked)
    process.send_signal(number)
    assert process.stderr.readline().startswith("finishing the samples in progress")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    answering.set()
    assert (process.returncode, err.splitlines()) == (
        128 + number,
        [f"saved as run 1 in {DEFAULT_RUNS_PATH}", "interrupted; judgekit resume 1 continues from here"],
    )
    assert re.search(rf"{GOAL[1]} .* 0 of 3 ", out)
    assert (counts()["runs"], counts()["scores"]) == (1, 0)
    assert "saved as run 2 in" in cli("run", path, *F1).err


def refusing(judging, after: int = 0) -> None:
    """A judge that answers so many requests, and then refuses the key."""
    left, answering = iter(range(after)), type(judging).reply
    refused = (401, {"error": {"message": "no", "code": "invalid_api_key"}})
    judging.reply = lambda *given: refused if next(left, None) is None else answering(judging, *given)
    settings(judging.url, concurrency=1)


@pytest.mark.parametrize(("others", "after"), [(F1, 0), ((), 3)], ids=["beside another scorer", "revoked"])
@pytest.mark.parametrize("added", [False, True], ids=["run", "score"])
def test_a_key_that_is_refused_after_something_was_scored_stops_the_run(
    cli, conversations, judging, others, after, added
):
    refusing(judging, after)
    path = conversations(40)
    if added:
        cli("run", path, "--scorer", "tool_call_accuracy")
    ended = cli(*(("score", 1) if added else ("run", path)), *GOAL, *others, "--judge", "default")
    kept, resume, error, *_ = ended.err.splitlines()
    assert (ended.code, kept) == (2, f"saved as run 1 in {DEFAULT_RUNS_PATH}")
    assert resume == "judgekit resume 1 continues from there"
    assert error.startswith("judgekit: ")
    assert "HTTP 401" in error
    found = Run.stored()
    assert found.record.ended_at is not None
    assert found.stop_reason == error.removeprefix("judgekit: ")
    assert found.samples == SampleCount(40, "exactly")
    assert 0 < len(found) < 40 * len(found.scorers)
    refusing(judging, 100)
    assert cli("resume", 1).code == 0
    assert (len(Run.stored()), Run.stored().stop_reason) == (40 * len(found.scorers), "")


def test_a_record_that_cannot_be_read_stops_a_strict_run_of_at_least_those_before_it(cli, conversations):
    path = conversations(3)
    path.write_text(path.read_text() + "no JSON\n" + path.read_text())
    ended = cli("run", path, *F1, "--strict")
    found = Run.stored()
    assert (ended.code, found.samples, len(found)) == (2, SampleCount(3, "at least"), 3)
    kept, goes_on, error = ended.err.splitlines()
    assert (kept, goes_on) == (f"saved as run 1 in {DEFAULT_RUNS_PATH}", "judgekit resume 1 continues from there")
    assert error.startswith("judgekit: samples.jsonl (line 4): not JSON")
    assert found.stop_reason == error.removeprefix("judgekit: ")
    assert found.record.ended_at is not None
    assert "saved as run 2 in" in cli("run", path, *F1).err


def test_scorers_whose_key_is_refused_at_once_are_not_added(cli, conversations, judging):
    cli("run", conversations(20), *F1)
    before, held = Run.stored().record, counts()
    refusing(judging)
    ended = cli("score", 1, *GOAL, "--judge", "default")
    assert (ended.code, ended.out, "HTTP 401" in ended.err, "resume" in ended.err) == (2, "", True, False)
    assert (Run.stored().record, counts()) == (before, held)
    refusing(judging, 100)
    assert cli("score", 1, *GOAL, "--judge", "default").code == 0
    assert len(Run.stored()) == 40


# --- beside others


def test_a_number_that_is_no_longer_the_last_is_not_given_back():
    store, other = RunStore(DEFAULT_RUNS_PATH), RunStore(DEFAULT_RUNS_PATH)

    numbers = [kept.begin(RunRecord(started_at=now())).number for kept in (store, other)]
    assert numbers == [1, 2]
    store.discard(1)
    assert store.numbers() == [2]
    assert other.begin(RunRecord(started_at=now())).number == 3


# --- in Python


@scorer
def fine(sample: Sample) -> float:
    return 1.0


def failing(error: BaseException):
    @scorer
    def fails(sample: Sample) -> float:
        raise error

    return fails


RAN = [run, lambda *given, **named: asyncio.run(arun(*given, **named))]


@pytest.mark.parametrize("ran", RAN, ids=["run", "arun"])
def test_in_python_too_a_start_that_fails_leaves_no_run(ran):
    samples = [Sample(id=str(number)) for number in range(30)]
    for error in (AuthenticationError("refused"), BudgetError("spent"), ConfigError("late")):
        with pytest.raises(type(error), match=str(error)):
            ran(samples, [failing(error)], store=DEFAULT_RUNS_PATH)
    with pytest.raises(ConfigError, match="concurrency"):
        ran(samples, [fine], store=DEFAULT_RUNS_PATH, concurrency=0)
    assert set(counts().values()) == {0}
    assert ran(samples, [fine], store=DEFAULT_RUNS_PATH).number == 1


def test_in_python_ctrl_c_before_the_first_score_is_raised():
    def reading() -> Iterator[Sample]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        run(reading(), [fine], store=DEFAULT_RUNS_PATH)
    assert counts()["runs"] == 0
