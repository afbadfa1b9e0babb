"""Runs whose work is spread over processes."""

import json
import os
import re
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

pytestmark = pytest.mark.processes

F1 = ("--scorer", "tool_call_f1")
JUDGED = "agent_goal_accuracy_without_reference"
NUMBER = 23


def sample(number: int) -> Sample:
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(f"tool_{number}")])]
    return Sample.of(messages, id=f"s{number}", reference_tool_calls=[ToolCall("tool_0")])


def lines(path: str, records: list) -> str:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("".join(one if isinstance(one, str) else f"{json.dumps(one)}\n" for one in records))
    return path


def own(path: str = "own.jsonl", first: int = 0, last: int = NUMBER) -> str:
    return lines(path, [f"{sample(number).model_dump_json()}\n" for number in range(first, last)])


def rows(number: int) -> list:
    """The rows of a run, but for what its calls took."""
    return [row.model_copy(update={"score": row.score.model_copy(update={"calls": ()})}) for row in Run.stored(number)]


def test_with_more_processes_a_run_is_the_same(cli, judging, started):
    """Of 300 samples three cannot be read; references fit but for two; a judge is asked in the first process."""
    records = Path(own("samples.jsonl", 0, 300)).read_text().splitlines(keepends=True)
    for number in (3, 150, 270):
        records[number] = "no JSON\n"
    path = lines("samples.jsonl", records)
    references = lines("refs.jsonl", [{"id": name, "label": "x"} for name in ("s0", "s280", "no", "such")])
    words = ["run", path, *F1, "--scorer", JUDGED, "--references", references]
    process = started(*words, "--workers", 2)
    out, err = process.communicate(timeout=50)
    code, *said = cli(*words)
    err = re.sub(r"^[\d,]+ of 600 scores, .*\n", "", err, flags=re.MULTILINE)  # on a slow machine it takes over 10 s
    assert (process.returncode, err.strip().replace("run 1 ", "run 2 ")) == (code, said[1].strip())
    assert out.split("judged scorer")[0].split() == said[0].split("judged scorer")[0].split()
    assert (code, err.count("3 records could not be read:"), err.count("references match no sample")) == (1, 1, 1)
    assert len(rows(1)) == 2 * 297
    assert rows(1) == rows(2)
    assert [row.labels for row in rows(1) if row.sample_id == "s280"] == [{"label": "x"}] * 2
    assert judging.asked.total() == 297


def test_scorers_that_are_added_with_a_judge_are_shared_as_well(cli, judging, started):
    path = own("samples.jsonl", 0, 40)
    with Path("judgekit.toml").open("a") as file:
        file.write(f'[judges.other]\nmodel = "openai/other"\nbase_url = "{judging.url}"\n')
    added = ("--scorer", "tool_call_accuracy", "--scorer", JUDGED, "--judge", "other")
    cli("run", path, *F1)
    process = started("score", 1, *added, "--workers", 2)
    assert (process.communicate(timeout=50)[1], process.returncode) == (f"saved as run 1 in {DEFAULT_RUNS_PATH}\n", 0)
    cli("run", path, *F1)
    cli("score", 2, *added)
    assert rows(1) == rows(2)
    assert {call.judge for row in Run.stored(1) for call in row.score.calls} == {"openai/other"}


def test_what_can_be_read_once_is_not_shared(cli):
    os.mkfifo("pipe")
    for path in ("-", "pipe"):
        ended = cli("run", path, *F1, "--workers", 2)
        assert (ended.code, ended.err) == (
            2,
            f"judgekit: workers=2: {path} can be read only once, by one process; write it to a file, or omit workers\n",
        )
    assert not DEFAULT_RUNS_PATH.exists()


def workers_of(process) -> list[int]:
    """The processes that score for another."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def rows_there() -> int:
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{DEFAULT_RUNS_PATH}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM scores").fetchone()[0]
    return 0  # it may be made now


MANY = 10_000


@pytest.fixture
def at_work(started, until):
    """A long run with two workers besides its own process, at least one of which has scored, unless they are to be caught earlier."""
    line = sample(0).model_dump_json()
    Path("many.jsonl").write_text("".join(f"{line.replace('s0', f's{index}')}\n" for index in range(MANY)))

    def begin(*, early: bool = False):
        process = started("run", "many.jsonl", *F1, "--workers", 3)
        until(lambda: len(workers_of(process)) == 2 and (early or rows_there()))
        return process, workers_of(process)

    return begin


def test_a_worker_that_dies_ends_the_run_which_goes_on_later(cli, at_work):
    process, workers = at_work()
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert [line for line in err.splitlines() if not line.startswith("counting the samples")] == [
        f"saved as run 1 in {DEFAULT_RUNS_PATH}",
        "judgekit resume 1 continues from there",
        "judgekit: a worker process has died",
    ]
    assert not any(map(is_running, workers))
    assert 0 < len(Run.stored()) < MANY
    assert cli("resume").code == 0
    assert [row.index for row in Run.stored()] == list(range(MANY))


def test_workers_do_not_outlive_who_started_them(at_work, until):
    process, workers = at_work()
    process.kill()
    process.communicate()
    until(lambda: not any(map(is_running, workers)))
    assert 0 < len(Run.stored()) < MANY
    assert Run.stored().ended_at is None


@pytest.mark.parametrize(
    ("early", "number"),
    [(True, signal.SIGTERM), (False, signal.SIGINT)],
    ids=["while they start", "while they score"],
)
def test_a_signal_to_all_of_them_ends_them_and_keeps_what_is_done(at_work, early, number):
    process, workers = at_work(early=early)
    time.sleep(0.1 if early else 0)
    for one in (process.pid, *workers):  # as a terminal does
        os.kill(one, number)
    began = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == 128 + number
    first, *others = err.splitlines()
    assert first == "finishing the samples in progress; interrupt again to stop at once"
    if early and others == ["interrupted before anything was scored"]:
        assert RunStore(DEFAULT_RUNS_PATH).numbers() == []
    else:
        done = len(Run.stored())
        assert 0 < done < MANY
        assert re.search(rf"{done:,} of ({MANY:,}|(at least|about) [\d,]+) ", out)  # it may still count
        assert others[-2:] == [
            f"saved as run 1 in {DEFAULT_RUNS_PATH}",
            "interrupted; judgekit resume 1 continues from here",
        ]
    assert not any(map(is_running, workers))


def test_what_ends_a_worker_is_said_as_if_there_were_one_process(cli, started):
    path = Path(own("samples.jsonl", 0, 300))
    records = path.read_text().splitlines(keepends=True)
    records[270] = "no JSON\n"
    lines("samples.jsonl", records)
    words = ("run", path, *F1, "--strict")
    process = started(*words, "--workers", 2)
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out, err.replace("run 1 ", "run 2 ").replace("resume 1", "resume 2")) == cli(*words)
    *_, error = err.splitlines(keepends=True)
    assert (process.returncode, out) == (2, "")
    assert error.startswith("judgekit: samples.jsonl (line 271): not JSON")
