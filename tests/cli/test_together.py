"""The options by which a run asks all questions about a conversation together, or each by itself."""

import re
import shlex
from pathlib import Path

import pytest

from judgekit.runs.results import Run

GOAL = "agent_goal_accuracy_without_reference"
TWO = ("--scorer", GOAL, "--scorer", "prompt:tone")
TONE = {"reason": "r", "evidence": [], "verdict": "fitting"}


@pytest.fixture(autouse=True)
def answering(judging):
    """Lets the judge answer one question or two."""
    goals = judging.answer

    def answer(text):
        answers = {name: found(text) for name, found in (("goal", goals), ("tone", lambda _: TONE)) if name in text}
        names = re.findall("^# Question (q[0-9]+)$", text, re.MULTILINE)
        return dict(zip(names, answers.values(), strict=True)) if names else answers.popitem()[1]

    judging.answer = answer


def configure(line):
    """Adds a setting of the judge."""
    with Path("judgekit.toml").open("a") as config:
        config.write(f"{line}\n")


@pytest.mark.parametrize(
    ("in_file", "option"),
    [(None, None), (True, None), (None, "--together"), (False, "--together"), (True, "--no-together")],
)
def test_the_option_overrides_the_config(cli, conversations, judging, in_file, option):
    path = conversations(3)
    if in_file is not None:
        configure(f"together = {str(in_file).lower()}")
    assert cli("run", path, *TWO, *([option] if option else ())).code == 0
    is_together = option == "--together" if option else bool(in_file)
    assert judging.asked.total() == (3 if is_together else 6)
    assert {bool(call.together) for row in Run.stored() for call in row.score.calls} == {is_together}


def test_a_dry_run_prints_both_prices_and_the_command_with_the_other_way(cli, conversations, judging):
    path = conversations(4)
    configure("price = {input = 1, output = 2}")
    lines = cli("run", path, *TWO, "--dry-run").out.splitlines()
    alone, together, command = (line for line in lines if line.startswith(("each question", "asked", "judgekit run")))
    assert re.fullmatch(r"each question by itself: 8 requests, about [\d,]+ tokens, about \$0\.\d{4}", alone)
    assert re.fullmatch(r"asked together: 4 requests, about [\d,]+ tokens, about \$0\.\d{4}", together)
    assert command.endswith(" --together")
    again = cli(*shlex.split(command)[1:], "--dry-run").out.splitlines()
    assert [line for line in again if line.startswith(("each question", "asked"))] == [together, alone]
    assert next(line for line in again if line.startswith("judgekit run")).endswith(" --no-together")
    assert judging.asked.total() == 0


def test_a_run_that_asks_together_does_so_when_it_is_resumed(cli, conversations, judging):
    path = conversations(4)
    configure("budget = {requests = 2}")
    assert cli("run", path, *TWO, "--together").code == 1
    config = Path("judgekit.toml")
    config.write_text(config.read_text().replace("requests = 2", "requests = 9"))
    assert cli("resume").code == 0
    assert judging.asked.total() == 4
    assert all(len(call.together) == 2 for row in Run.stored() for call in row.score.calls)
