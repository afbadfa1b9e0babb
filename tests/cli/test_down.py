"""Commands whose judge cannot be reached: a server that is not there, that dies, or that comes back."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judgekit.runs.results import Run

GOAL, F1 = "agent_goal_accuracy_without_reference", "tool_call_f1"
NUMBER = 1_000
DOWN = "the judge is down: start its server, or check its base_url. "


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and which nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(autouse=True)
def first_wait(monkeypatch) -> Callable[[float], None]:
    """Sets the seconds until a server is tried again; few if not called."""

    def set_to(seconds: float) -> None:
        monkeypatch.setattr("judgekit.judges.retry._FIRST_WAIT", seconds)

    set_to(0.01)
    return set_to


def config(**judges: str) -> None:
    """Writes a judge an address, the first of them as the default."""
    names = ["default", *list(judges)[1:]]
    tables = (
        f'[judges.{name}]\nmodel = "openai/{model}"\nbase_url = "{url}"\n'
        for name, (model, url) in zip(names, judges.items(), strict=True)
    )
    Path("judgekit.toml").write_text("".join(tables))


def scored(run: Run, scorer: str) -> int:
    return len(list(run.rows(scorer=scorer, statuses=["scored"])))


def test_a_judge_that_is_not_there_ends_the_command_with_one_message(cli, nobody, conversations, first_wait):
    first_wait(0.1)
    config(qwen=nobody)
    began = time.monotonic()
    ended = cli("run", conversations(NUMBER), "--scorer", GOAL, "-o", "rows.jsonl")
    assert 0.7 < time.monotonic() - began < 10  # after waits of 0.1, 0.2 and 0.4 s
    port = nobody.removesuffix("/v1").rpartition(":")[2]
    why = rf"ConnectionRefusedError: \[Errno \d+\] Connect call failed \('127.0.0.1', {port}\)"
    assert re.fullmatch(
        rf"judgekit: the judge is down: start its server, or check its base_url\. openai/qwen at {nobody}: {why}; tried 4 "
        r"times in \d\.\d s\n",
        ended.err,
    )
    assert (ended.code, ended.out, Path("rows.jsonl").exists()) == (2, "", False)
    assert "contains no runs" in cli("runs").out  # nothing was scored


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.processes)])
def test_other_scorers_go_on_and_gates_see_what_is_missing(cli, nobody, conversations, workers):
    config(qwen=nobody)
    words = ("--scorer", GOAL, "--scorer", F1, "--workers", workers, "--gate", f"{GOAL}.coverage >= 0.5")
    ended = cli("run", conversations(60), *words)
    run = Run.stored()
    assert (ended.code, scored(run, F1), run.summary[GOAL].missing) == (1, 60, 60)
    assert re.search(rf"{GOAL} .*0 of 60 +0 +0\b", ended.out)
    assert f"not met: {GOAL}.coverage >= 0.5" in ended.err
    assert ended.err.count("the judge is down") == 1


@pytest.mark.parametrize("others", [(), ("--scorer", F1)], ids=["alone", "beside another scorer"])
def test_a_judge_that_dies_is_stopped_and_resume_scores_what_is_missing(cli, judging, conversations, others):
    judging.dies_at = 40
    ended = cli("run", conversations(100), "--scorer", GOAL, *others)
    run = Run.stored()
    done = scored(run, GOAL)
    assert (ended.code, run.summary[GOAL].counts["failed"]) == (1, 0)
    assert 0 < done < 40
    assert run.summary[GOAL].missing == 100 - done
    assert not others or scored(run, F1) == 100
    assert run.stop_reason.startswith(f"{DOWN}openai/test at {judging.url}: ConnectionRefusedError: ")
    assert f"stopped: {run.stop_reason}; judgekit resume 1 continues from here\n" in ended.err
    judging.live()
    ended = cli("resume")
    assert (ended.code, Run.stored().stop_reason, scored(Run.stored(), GOAL)) == (0, "", 100)
    assert Run.stored().summary[GOAL].value == 0.5


def test_a_judge_that_comes_back_while_it_is_waited_for_goes_on(cli, judging, conversations, first_wait):
    first_wait(0.4)
    judging.dies_at = 40

    def restart() -> None:
        while not judging.died.wait(0.01):
            pass
        time.sleep(0.2)
        judging.live()

    thread = threading.Thread(target=restart)
    thread.start()
    ended = cli("run", conversations(100), "--scorer", GOAL)
    thread.join()
    assert (ended.code, scored(Run.stored(), GOAL), Run.stored().stop_reason) == (0, 100, "")


def test_of_two_judges_that_are_compared_the_other_goes_on(cli, nobody, judging, conversations):
    config(alive=judging.url, dead=nobody)
    ended = cli("compare-judges", conversations(30), "--scorer", GOAL, "--judge", "default", "--judge", "dead")
    counts = {line.scorer: (line.counts["scored"], line.missing) for line in Run.stored().summary}
    assert (ended.code, counts) == (1, {f"{GOAL} (default)": (30, 0), f"{GOAL} (dead)": (0, 30)})
    assert f"stopped: {DOWN}openai/dead at {nobody}: " in ended.err


def test_a_fallback_takes_over_and_is_not_counted_twice(cli, nobody, judging, conversations):
    config(dead=nobody, alive=judging.url)
    text = Path("judgekit.toml").read_text()
    Path("judgekit.toml").write_text(text.replace("[judges.alive]", 'fallback = ["alive"]\n[judges.alive]'))
    ended = cli("run", conversations(50), "--scorer", GOAL)
    line = Run.stored().summary[GOAL]
    assert (ended.code, line.requests, line.judges) == (0, 50, {"openai/alive": 50})


def test_a_probe_of_a_judge_that_is_not_there_says_so(cli, nobody):
    config(qwen=nobody)
    ended = cli("probe")
    assert (ended.code, f"stopped: {DOWN}openai/qwen at {nobody}: " in ended.err) == (1, True)
    assert "\n0 judge requests, " in ended.out
