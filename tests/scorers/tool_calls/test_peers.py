"""The numbers that other packages give, held against ours for the same cases."""

import asyncio
import json
from pathlib import Path

import pytest

from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.constraints import Require, ToolConstraints
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Sample

PEERS = json.loads(Path(__file__).with_name("peers.json").read_text(encoding="utf-8"))
CASES = {case["case"]: case for case in PEERS["cases"]}
MODES = [pytest.param(mode, id=f"{peer['peer']}: {mode['mode']}") for peer in PEERS["peers"] for mode in peer["modes"]]


def scores_of(mode):
    """A peer's numbers by case, where it has one."""
    return {case: score for case, score in zip(CASES, mode["scores"], strict=True) if score is not None}


def differences_of(mode):
    """Our numbers by case, where they are meant to be others, each with the reason."""
    return [(case, ours, one["why"]) for one in mode.get("differs", ()) for case, ours in one["ours"].items()]


async def our_score(ours, case):
    """What our equivalent of a mode gives, rounded as the file's numbers are."""
    ((scorer, options),) = ours.items()
    sample = Sample.of(
        [
            HumanMessage("Please"),
            *(AIMessage("", tool_calls=tuple(ToolCall(*call) for call in calls)) for calls in case["made"]),
        ],
        id="one",
        reference_tool_calls=[ExpectedCall(*call) for call in case["expected"]],
    )
    if scorer == "ToolConstraints":
        all_of_them = ToolConstraints([Require(name) for name, _ in case["expected"]])
        return float((await all_of_them.ascore(sample)).value == 1)
    if scorer == "ToolCallMatch":
        return round((await ToolCallMatch(ToolMatch.model_validate(options)).ascore(sample)).value, 4)
    scorers = {"ToolCallAccuracy": ToolCallAccuracy, "ToolCallF1": ToolCallF1}
    return round((await scorers[scorer](**options).ascore(sample)).value, 4)


@pytest.mark.parametrize("mode", MODES)
def test_our_equivalent_of_a_peers_mode_gives_its_numbers_but_where_it_is_meant_not_to(mode):
    """Where it is, our number is another one, and the reason is given."""
    right = scores_of(mode) | {case: ours for case, ours, _ in differences_of(mode)}

    async def ours() -> dict:
        return {case: await our_score(mode["ours"], CASES[case]) for case in right}

    assert asyncio.run(ours()) == right
    scores, differences = scores_of(mode), differences_of(mode)
    assert len({case for case, _, _ in differences}) == len(differences)
    for case, ours, why in differences:
        assert ours != scores[case]
        assert why
    assert ("unscored" in mode) == (None in mode["scores"])


def test_no_case_and_no_mode_is_lost():
    counted = {
        (peer["peer"], peer["version"]): (
            len(peer["modes"]),
            sum(len(scores_of(mode)) for mode in peer["modes"]),
            sum(len(differences_of(mode)) for mode in peer["modes"]),
        )
        for peer in PEERS["peers"]
    }
    assert len(CASES) == len(PEERS["cases"]) == 39
    assert counted == {  # modes, numbers, numbers that differ
        ("agentevals", "0.0.9"): (16, 624, 25),
        ("deepeval", "4.3.1"): (6, 234, 14),
        ("google-adk", "2.13.0"): (6, 234, 3),
        ("azure-ai-evaluation", "1.18.10"): (12, 420, 6),
        ("ragas", "0.4.3"): (3, 117, 14),
        ("mlflow", "3.17.2"): (4, 148, 4),
        ("strands-agents-evals", "1.7.0"): (3, 115, 12),
        ("promptfoo", "0.123.1"): (5, 139, 5),
    }
