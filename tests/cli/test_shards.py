"""Runs in shards, each a process of its own, as a shell loop or a Kubernetes job starts them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore

F1 = ("--scorer", "tool_call_f1")
JUDGED = "agent_goal_accuracy_without_reference"
BOTH = (*F1, "--scorer", JUDGED)
COUNT = 3


def shard(number: int, count: int = COUNT, run_id: str = "r") -> tuple[object, ...]:
    return ("--shard", f"{number}/{count}", "--run-id", run_id, "--store", store(number))


def store(number: int) -> str:
    return f"run-{number}.sqlite"


STORES = tuple(map(store, range(1, COUNT + 1)))


def table(out: str) -> list[str]:
    """The numbers that a command shows, but for what judges were asked."""
    return out.partition("judged scorer")[0].split()


def test_shards_are_merged_to_the_run_of_one_process(cli, conversations):
    path = conversations(40)
    for number in range(1, COUNT + 1):
        ended = cli("run", path, *F1, *shard(number))
        assert (ended.code, ended.err.splitlines()) == (
            0,
            [
                f"saved as run 1 in {store(number)}",
                f"shard {number}/3 of run r: judgekit merge combines all shards into one run, and checks gates",
            ],
        )
        assert f"shard: {number}/3" in cli("runs", 1, "--store", store(number)).out
    merged = cli("merge", *STORES, "-o", "merged.csv")
    whole = cli("run", path, *F1, "-o", "whole.csv")
    assert (merged.code, merged.out) == (whole.code, whole.out)
    assert merged.err.splitlines() == [f"saved as run 1 in {DEFAULT_RUNS_PATH}", "wrote merged.csv"]
    assert Path("merged.csv").read_text() == Path("whole.csv").read_text()
    assert cli("compare", 1, 2).code == 0
    assert cli("resume", 1).code == 0
    assert "shard:" not in cli("runs", 1).out


def test_gates_failures_and_unread_records_are_decided_by_the_merge(cli, conversations):
    """A gate on a mean says nothing about a part of it, and a scheduler would repeat a shard that ends with an error."""
    path = conversations(40)
    path.write_text(path.read_text() + "{oops\n")
    words = ("run", path, *F1, "--gate", "tool_call_f1 >= 0.9")
    ended = [cli(*words, *shard(number)) for number in range(1, COUNT + 1)]
    assert [one.code for one in ended] == [0, 0, 0]
    assert ["not met" in one.err for one in ended] == [False, False, False]
    assert ["1 record could not be read" in one.err for one in ended] == [False, True, False]
    merged = cli("merge", *STORES)
    whole = cli(*words)
    assert (merged.code, merged.out) == (whole.code, whole.out) == (1, whole.out)
    assert "not met: tool_call_f1 >= 0.9" in merged.err
    assert "1 record could not be read" in merged.err
    assert cli(*words, *shard(1)).code == 0


def test_options_that_do_not_go_together_are_refused(cli, conversations):
    path = conversations(9)
    for words, found in (
        ("--shard 1/3", "give --shard and --run-id together"),
        ("--run-id x", "give --shard and --run-id together"),
        ("--shard= --run-id=", "--run-id '': expected up to 100 letters"),
        ("--shard 0/3 --run-id x", "shard '0/3': expected NUMBER/COUNT"),
        ("--shard 1/3 --run-id x --limit 5", "--limit needs one process that reads everything"),
        ("--shard 1/3 --run-id x --sample 5", "--sample 5 needs one process that reads everything"),
        ("--sample 5% --sample 5", "--sample 5: a number of samples stands alone"),
        ("--sample 5% --limit 5", "--limit cannot be combined with a share"),
        ("--sample a=5%", "--sample: add a share for all other domains, such as --sample 1%"),
        ("--sample 0", "--sample 0: expected at least 1 sample"),
        ("--sample=-1", "--sample -1: expected at least 1 sample"),
        ("--sample many", "--sample many: expected a number, or a share such as 1% or 0.01"),
        ("--sample 0% --dry-run", "--sample 0: expected a share above 0"),
    ):
        ended = cli("run", path, *F1, *words.split())
        assert (ended.code, ended.out, DEFAULT_RUNS_PATH.exists()) == (2, "", False), words
        assert ended.err.startswith(f"judgekit: {found}"), ended.err


def test_what_can_be_read_once_is_not_sharded(cli):
    os.mkfifo("pipe")
    for path in ("-", "pipe"):
        ended = cli("run", path, *F1, *shard(1))
        assert (ended.code, ended.err) == (
            2,
            f"judgekit: --shard: {path} can be read only once, by one process; write it to a file\n",
        )


SHELL = """
for i in 1 2 3 4; do
  judgekit run samples.jsonl --scorer tool_call_f1 --scorer agent_goal_accuracy_without_reference \
    --shard $i/4 --run-id "$RUN" --store run-$i.sqlite >run-$i.log &
done
wait
judgekit merge run-*.sqlite
"""


@pytest.mark.processes
def test_a_shell_loop_makes_one_run_and_asks_no_question_twice(cli, unspent, judging, conversations, programs):
    """The judge's replies are shared: half of the conversations ask what others ask."""
    path = conversations(100)
    lines = path.read_text().splitlines()
    path.write_text(
        "".join(f"{line}\n" for line in [*lines, *(line.replace('"id":"s', '"id":"again s') for line in lines)])
    )
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "RUN": "nightly-7"}
    made = subprocess.run(  # noqa: S603 - the script above
        ["/bin/sh", "-c", SHELL], env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert made.returncode == 0, made.stderr
    assert judging.asked.total() == 100
    whole = cli("run", path, *BOTH)
    assert judging.asked.total() == 100
    assert unspent(Run.stored(1)) == unspent(Run.stored(2))
    assert table(made.stdout) == table(whole.out)
    assert Run.stored(1).summary[JUDGED].requests == 100
    assert Run.stored(1).record.id == "nightly-7"


@pytest.mark.processes
def test_shards_that_are_killed_go_on_with_the_same_command(cli, unspent, judging, conversations, started, until):
    path = conversations(360)
    words = [("run", path, *BOTH, *shard(number)) for number in range(1, COUNT + 1)]
    running = [started(*one) for one in words]
    for moment, process in zip((30, 80, 120), running, strict=True):
        until(lambda: judging.asked.total() > moment or process.poll() is not None)  # noqa: B023 - called at once
        process.send_signal(signal.SIGKILL)
        process.wait()
    running = [started(*one) for one in words]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * COUNT, outputs
    assert [RunStore(store(number)).numbers() for number in range(1, COUNT + 1)] == [[1]] * COUNT
    merged = cli("merge", *STORES)
    assert merged.code == 0
    whole = cli("run", path, *BOTH)
    assert unspent(Run.stored(1)) == unspent(Run.stored(2))
    assert table(merged.out) == table(whole.out)
    assert len(judging.asked) == 360
    assert judging.asked.total() <= 360 + COUNT * 16


@pytest.mark.processes
def test_shards_share_the_budget_of_their_run_and_the_run_that_is_resumed_after_it_is_raised(
    cli, judging, conversations, started
):
    path, budget = conversations(150), 45
    config = Path("judgekit.toml").read_text()
    Path("judgekit.toml").write_text(f"{config}budget = {{requests = {budget}}}\n")
    running = [started("run", path, *BOTH, *shard(number)) for number in range(1, COUNT + 1)]
    outputs = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [1] * COUNT, outputs
    assert all(f"would exceed the budget of {budget} requests" in err for _, err in outputs)
    assert judging.asked.total() == budget
    merged = cli("merge", *STORES)
    assert (merged.code, "missing" in merged.out) == (1, True)
    assert Run.stored().summary[JUDGED].requests == budget
    assert cli("run", path, *BOTH, *shard(1, run_id="other"), "--dry-run").code == 0
    assert started("resume", 1).wait(timeout=60) == 1  # the budget is that of the run, wherever it is
    assert judging.asked.total() == budget
    Path("judgekit.toml").write_text(f"{config}budget = {{requests = 150}}\n")
    assert started("resume", 1).wait(timeout=60) == 0
    assert judging.asked.total() == 150
    assert Run.stored().stop_reason == ""
    assert len(Run.stored()) == 300
