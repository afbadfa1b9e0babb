"""Processes that share a cache, and processes that are killed: each verdict is paid for once."""

import hashlib
import json
import random
import signal
import sqlite3
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from judgekit.judges.cache.replies import ReplyDatabase
from judgekit.runs.rows import Row
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

pytestmark = pytest.mark.processes

CACHE = Path(".judgekit/cache.sqlite")
AT_ONCE = 16

COMMAND = """
import sys, time
from pathlib import Path
import openai
import judgekit.judges.cache.cache, judgekit.judges.cache.replies
from judgekit.cli import main

lease, ready = sys.argv[1:3]
judgekit.judges.cache.cache.CLAIM_LEASE_SECONDS = judgekit.judges.cache.replies.CLAIM_LEASE_SECONDS = float(lease)
del sys.argv[1:3]
Path(ready).touch()
while not Path("go").exists():
    time.sleep(0.001)
main()
"""


@pytest.fixture
def conversations(server, tmp_path):
    """Writes so many conversations, to be judged by a judge that is the server."""

    def conversations(number):
        with (tmp_path / "samples.jsonl").open("w") as file:
            for index in range(number):
                said = [HumanMessage(f"Book table {index}."), AIMessage("It is booked.")]
                file.write(Sample.of(said, id=f"{index}").model_dump_json() + "\n")
        (tmp_path / "judgekit.toml").write_text(
            f'[judges.default]\nmodel = "openai/x"\nbase_url = "{server.url}"\nconcurrency = {AT_ONCE}\n'
        )
        return number

    return conversations


@pytest.fixture
def answers(server, goal):
    """Lets the server answer so many requests, counted from the first one ever, and no more."""
    good = server.says({"goals": [goal | {"evidence": [1]}]})

    def answers(most):
        server.script = [good] * most + [(b"", "hang")]

    return answers


@pytest.fixture
def judging(forked):
    """Starts a run of all samples in a process of its own, that waits for the file ``go``."""
    Path("command.py").write_text(COMMAND)
    return partial(started, forked)


@contextmanager
def started(forked, name, lease=10.0):
    words = ["run", "samples.jsonl", "--scorer", "agent_goal_accuracy_without_reference", "--output", f"{name}.jsonl"]
    ready = f"{name}.ready"
    process = forked("python", "command.py", lease, ready, *words)
    try:
        until(lambda: Path(ready).exists() or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait()


def until(it_is_so):
    """Waits for something that another process does."""
    began = time.monotonic()
    while not it_is_so():
        assert time.monotonic() - began < 30
        time.sleep(0.002)


def must_end_well(process):
    assert process.wait(timeout=50) == 0, process.communicate()


def sent_by(name):
    """How many requests a run sent, by its own account."""
    rows = [Row.model_validate_json(line) for line in Path(f"{name}.jsonl").read_text().splitlines()]
    assert [row.score.status for row in rows] == ["scored"] * len(rows)
    return sum(not call.cached for row in rows for call in row.score.calls)


def asked(server):
    """The questions that were asked, each by the digest that the cache knows it by."""
    questions = [received.body["messages"][1]["content"] for received in server.requests]
    return [hashlib.sha256(json.dumps(one, ensure_ascii=False).encode()).hexdigest()[:12] for one in questions]


def stored():
    """The questions whose answers are kept."""
    replies = ReplyDatabase(CACHE, read_only=True)
    questions = {line.digests["messages[1] (user)"] for line in replies.recorded()}
    replies.close()
    return questions


def is_sound():
    database = sqlite3.connect(CACHE)
    found = database.execute("PRAGMA integrity_check").fetchall()
    database.close()
    return found == [("ok",)]


def test_two_processes_with_one_cache_send_each_request_once(server, conversations, answers, judging):
    samples = conversations(200)
    answers(10 * samples)
    with judging("a") as a, judging("b") as b:
        Path("go").touch()
        must_end_well(a)
        must_end_well(b)
    assert len(server.requests) == samples
    assert len(set(asked(server))) == samples
    assert sent_by("a") + sent_by("b") == samples
    assert stored() == set(asked(server))


def test_a_run_that_is_killed_goes_on_where_it_was_and_asks_nothing_twice_that_was_answered(
    server, conversations, answers, judging
):
    samples = conversations(150)
    Path("go").touch()
    in_flight = 0
    for _ in range(2):
        moment = len(server.requests) + random.randrange(5, 60)  # noqa: S311 - any moment will do
        known = stored() if CACHE.exists() else set()
        before = len(server.requests)
        answers(moment)
        with judging("killed", lease=0.3) as process:
            until(lambda: len(server.requests) > moment)  # noqa: B023 - called at once
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert known.isdisjoint(asked(server)[before:])
        assert is_sound()
        assert len(stored() - known) > 0
        in_flight += len(server.requests) - before - len(stored() - known)
    assert 0 < in_flight <= 2 * AT_ONCE
    known, before = stored(), len(server.requests)
    answers(10 * samples)
    with judging("resumed", lease=0.3) as process:
        must_end_well(process)
    assert known.isdisjoint(asked(server)[before:])
    assert len(server.requests) == samples + in_flight
    assert sent_by("resumed") == samples - len(known)
    assert len(stored()) == samples
    assert is_sound()
