"""Commands that show the numbers of a finished run: quickly if its file keeps them, and the same if not."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore

F1 = ("--scorer", "tool_call_f1")
FINISHED = "run 1 has already finished; resume only adds missing scores\n"
KEPT = f"saved as run 1 in {DEFAULT_RUNS_PATH}\n"
DAMAGED = "1 damaged row left out"


def numbers(out: str) -> str:
    """What ``judgekit runs`` and ``judgekit resume`` show of a run's numbers."""
    return out[out.index(". Per conversation") :].partition("glossary")[0].strip()


def is_kept(number: int = 1) -> bool:
    return RunStore(DEFAULT_RUNS_PATH, read_only=True).stored_summary(number) is not None


def sql(statement: str) -> None:
    """Changes the file as a program of another kind does."""
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db, db:
        assert db.execute(statement).rowcount >= 1


def rot(text: bytes) -> None:
    """Changes one byte in the first of these texts, as a bad disk does."""
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    body = bytearray(DEFAULT_RUNS_PATH.read_bytes())
    body[body.index(text)] ^= 1
    DEFAULT_RUNS_PATH.write_bytes(body)


@pytest.mark.parametrize("words", [(), pytest.param(("--workers", 2), marks=pytest.mark.processes)])
def test_what_is_kept_shows_what_the_rows_show(cli, conversations, words):
    path = conversations(40)
    first = cli("run", path, *F1, "--scorer", "tool_call_accuracy", *words)
    assert is_kept()
    shown, resumed = cli("runs", 1), cli("resume", 1)
    assert (shown.code, resumed.code, resumed.out) == (0, 0, first.out)
    cli("runs", 1, "-o", "kept.html")
    sql("DELETE FROM summaries")
    assert cli("runs", 1) == shown
    cli("runs", 1, "-o", "counted.html")
    assert Path("kept.html").read_text() == Path("counted.html").read_text()
    assert not is_kept()  # it opens the file for reading only
    assert cli("resume", 1) == resumed
    assert is_kept()


def test_nothing_scored_and_everything_failed(cli, conversations, monkeypatch):
    Path("mine.py").write_text("from judgekit import scorer\n\n@scorer\ndef fails(sample):\n    raise OSError('no')\n")
    monkeypatch.syspath_prepend(".")
    failed = cli("run", conversations(5), "--scorer", "mine.py:fails")
    assert (failed.code, is_kept()) == (1, True)
    shown, resumed = cli("runs", 1), cli("resume", 1)
    assert (resumed.code, resumed.out) == (1, failed.out)
    sql("DELETE FROM summaries")
    assert (cli("runs", 1), cli("resume", 1)) == (shown, resumed)
    again = cli("resume", 1, "--retry-failed")
    assert (again.code, numbers(again.out)) == (1, numbers(failed.out))
    empty = RunStore("empty.sqlite")
    empty.begin(Run.stored(1).record)
    assert "0 of 5" in cli("runs", 1, "--store", "empty.sqlite").out


def test_a_row_that_is_changed_or_deleted_by_hand_is_named_and_scored_again(cli, conversations):
    first = cli("run", conversations(9), *F1)
    sql("UPDATE scores SET value = 1 WHERE sample = 3")
    assert DAMAGED in cli("runs", 1).out
    assert cli("resume", 1).out == first.out
    assert is_kept()
    sql("DELETE FROM scores WHERE sample = 3")
    assert "8 of 9" in cli("runs", 1).out
    assert cli("resume", 1).out == first.out
    assert numbers(cli("runs", 1).out) == numbers(first.out)


def test_a_row_that_rots_is_named_by_pages_and_scored_again(cli, conversations):
    first = cli("run", conversations(9), *F1)
    rot(b"1 expected call")
    assert numbers(cli("runs", 1).out) == numbers(first.out)  # numbers of the rows as they were
    for name in ("page.html", "page.md", "scores.jsonl"):
        assert (cli("runs", 1, "-o", name).code, DAMAGED in Path(name).read_text()) == (0, name != "scores.jsonl")
    assert "DamagedRow" in Path("scores.jsonl").read_text()
    assert DAMAGED in cli("runs", 1, "--show", 3).out
    again = cli("resume", 1)
    assert (again.code, again.out) == (0, first.out)
    assert not any(row.score.error for row in Run.stored())
    assert is_kept()


def test_added_scorers_and_resumed_runs_have_numbers_of_their_own(cli, judging, conversations):
    path = conversations(9)
    cli("run", path, *F1)
    added = cli("score", 1, "--scorer", "tool_call_accuracy")
    assert is_kept()
    assert numbers(cli("runs", 1).out) == numbers(added.out)
    with Path("judgekit.toml").open("a") as config:
        config.write("budget = {requests = 4}\n")
    goal = ("--scorer", "agent_goal_accuracy_without_reference")
    stopped = cli("run", path, *goal)
    assert (stopped.code, "5 missing" in cli("runs", 2).out or "missing" in cli("runs", 2).out) == (1, True)
    assert numbers(cli("runs", 2).out) == numbers(stopped.out)
    Path("judgekit.toml").write_text(Path("judgekit.toml").read_text().replace("requests = 4", "requests = 99"))
    resumed = cli("resume", 2)
    assert resumed.code == 0
    assert "9 of 9" in resumed.out
    assert numbers(cli("runs", 2).out) == numbers(resumed.out)


def test_shards_and_the_run_that_they_are_merged_into(cli, conversations):
    path = conversations(9)
    for number in (1, 2):
        store = f"{number}.sqlite"
        words = ("run", path, *F1, "--shard", f"{number}/2", "--run-id", "nightly", "--store", store)
        first = cli(*words)
        path.touch()
        again = cli(*words)
        assert (first.code, again.code, again.out) == (0, 0, first.out)
    merged = cli("merge", "1.sqlite", "2.sqlite")
    assert is_kept()
    assert numbers(cli("runs", 1).out) == numbers(merged.out) == numbers(cli("run", path, *F1).out)


def test_a_finished_run_without_text_has_nothing_to_do_and_needs_no_file_for_it(cli, conversations):
    Path("judgekit.toml").write_text("store_text = false\n")
    path = conversations(9)
    first = cli("run", path, *F1)
    path.unlink()
    again = cli("resume", 1)
    assert (again.code, again.err, again.out) == (0, FINISHED + KEPT, first.out)


def test_gates_of_a_finished_run_are_checked_by_what_is_kept(cli, conversations):
    path = conversations(9)
    gates = ("--gate", "tool_call_f1 >= 0.5", "--gate", "tool_call_f1.min >= 0", "--gate", "tool_call_f1.lower >= 0")
    first = cli("run", path, *F1, *gates)
    again = cli("resume", 1)
    assert (again.code, again.out, again.err) == (first.code, first.out, FINISHED + first.err)
    assert "not met: tool_call_f1 >= 0.5" in again.err


def test_a_run_ends_with_the_number_of_its_samples_whenever_it_is_killed(cli, conversations, monkeypatch):
    put, written = RunStore._put_record, []

    def noted(db, record):
        written.append(record)
        put(db, record)

    monkeypatch.setattr(RunStore, "_put_record", staticmethod(noted))
    cli("run", conversations(9), *F1)
    assert [record.count_precision for record in written if record.ended_at is not None] == ["exactly"]


@pytest.mark.processes
def test_a_run_that_is_killed_while_it_finishes_shows_what_an_undisturbed_one_does(cli, conversations, started, until):
    path = conversations(2_000)
    process = started("run", path, *F1)

    def is_finishing() -> bool:
        if not DEFAULT_RUNS_PATH.exists():
            return False
        with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db:
            found = (
                db.execute("SELECT record FROM runs").fetchall()
                if db.execute("PRAGMA user_version").fetchone()[0]
                else []
            )
        return any(json.loads(record)["ended_at"] for (record,) in found)

    until(is_finishing)
    process.send_signal(signal.SIGKILL)
    process.wait()
    shown, resumed = cli("runs", 1), cli("resume", 1)
    assert (shown.code, resumed.code) == (0, 0)
    undisturbed = cli("run", path, *F1)
    assert numbers(shown.out) == numbers(resumed.out) == numbers(undisturbed.out)
    assert is_kept(1)
    assert is_kept(2)
    assert numbers(cli("runs", 1).out) == numbers(undisturbed.out)
