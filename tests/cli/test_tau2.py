"""The numbers that a run of tau2-bench's results comes to, counted again from the raw files, without judgekit."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import norm, t

from judgekit.runs.results import Run

FILES = {"airline": 20, "retail": 40}


def f1_of(simulation: dict, task: dict) -> float | None:
    """The F1 of calls made and expected, each as its requestor, name and arguments; of none and none it is undefined."""
    expected = Counter(
        (one.get("requestor", "assistant"), one["name"], json.dumps(one["arguments"], sort_keys=True))
        for one in task["evaluation_criteria"]["actions"]
    )
    made = Counter(
        (message["role"], call["name"], json.dumps(call["arguments"], sort_keys=True))
        for message in simulation["messages"]
        if message["role"] in ("assistant", "user")
        for call in message["tool_calls"] or ()
        if message["role"] == "assistant"
    )
    if not expected and not made:
        return None
    return 2 * (expected & made).total() / (expected.total() + made.total())


def by_modified_wilson(values: list[float]) -> tuple[float, float]:
    """By Wilson's method, of as many 0s and 1s as have the variance of the values, after a 0 and a 1 were added."""
    n, mean = len(values), sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in [*values, 0, 1])
    effective = n * (n * mean * (1 - mean) + mean**2 + (1 - mean) ** 2) / squares
    return by_wilson(effective * mean, effective, t.ppf(0.975, n - 1))


def by_wilson(successes: float, n: float, z: float = norm.ppf(0.975)) -> tuple[float, float]:
    center, half = successes + z * z / 2, z * math.sqrt(successes * (n - successes) / n + z * z / 4)
    return (center - half) / (n + z * z), (center + half) / (n + z * z)


@pytest.mark.parametrize("domain", FILES)
def test_the_summary_of_a_file_of_tau2_is_what_counting_by_hand_gives(cli, shared_data, domain):
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    tasks = {task["id"]: task for task in recorded["tasks"]}
    simulations = recorded["simulations"]
    assert len(simulations) == FILES[domain]
    by_hand = [f1_of(one, tasks[one["task_id"]]) for one in simulations]
    scored = [value for value in by_hand if value is not None]
    rewards = [one["reward_info"]["reward"] for one in simulations]
    few = [len([m for m in one["messages"] if m["role"] == "assistant"]) <= 12 for one in simulations]

    ended = cli("run", path, "--scorer", "tool_call_f1", "--scorer", "max_messages:12", "-o", "rows.jsonl")
    assert ended.code == 0
    f1, within = Run.stored().summary
    assert dict(f1.counts) == {k: n for k, n in (("scored", len(scored)), ("skipped", by_hand.count(None))) if n}
    assert f1.value == pytest.approx(sum(scored) / len(scored), abs=1e-12)
    assert f1.interval[:2] == pytest.approx(by_modified_wilson(scored), abs=1e-9)
    assert within.value == pytest.approx(sum(few) / len(few), abs=1e-12)
    assert within.interval[:2] == pytest.approx(by_wilson(sum(few), len(few)), abs=1e-9)
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["score"]["value"] for row in rows[::2]] == pytest.approx(by_hand)

    slices = Run.stored().summary.slices["reward"]
    for reward in sorted(set(rewards)):
        of_reward = [value for value, one in zip(by_hand, rewards, strict=True) if one == reward and value is not None]
        part = slices[str(reward)]["tool_call_f1"]
        assert (part.counts["scored"], part.value) == (len(of_reward), pytest.approx(sum(of_reward) / len(of_reward)))
    printed = next(line.split() for line in ended.out.splitlines() if line.split()[:1] == ["tool_call_f1"])
    assert printed[1] == f"{sum(scored) / len(scored):.3f}"
