"""The numbers that others published of their judges, found again from their recorded verdicts."""

import gzip
import json
from collections import defaultdict
from itertools import groupby

import numpy as np
import pytest

from judgekit.stats.agreement import cohen_kappa, raw_agreement
from judgekit.stats.annotators import pairwise_agreement


def recorded(folder, name):
    with gzip.open(folder / "judges" / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("turn", "ties", "gpt4", "human"),
    [  # in percent, with the number of pairs of votes: MT-Bench, https://arxiv.org/abs/2306.05685, tables 5 and 6
        (1, True, (66, 1343), (63, 721)),
        (1, False, (85, 859), (81, 479)),
        (2, True, (66, 1325), (67, 707)),
        (2, False, (85, 864), (82, 474)),
    ],
)
def test_mt_bench_agreement_of_gpt4_with_experts_and_of_experts_with_each_other(shared_data, turn, ties, gpt4, human):
    votes = defaultdict(lambda: {"expert": [], "gpt4": []})
    for vote in recorded(shared_data, "mtbench_votes"):
        voter = vote["judge"].split("_")[0]
        if vote["turn"] == turn and voter != "author":
            first, second = sorted([vote["model_a"], vote["model_b"]])
            winner = vote.get(vote["winner"])  # none, where it is a tie
            worth = 0.5 if winner is None else float(winner == first)
            votes[vote["question_id"], first, second][voter].append(worth)
    most = max(len(both["expert"]) for both in votes.values())
    experts = np.full((most, len(votes)), np.nan)  # in no order: one of them voted twice on one question
    for item, both in enumerate(votes.values()):
        experts[: len(both["expert"]), item] = both["expert"]
    judged = [both["gpt4"][0] if both["gpt4"] else np.nan for both in votes.values()]

    for found, published in (
        (pairwise_agreement(experts, judged, ties=ties), gpt4),
        (pairwise_agreement(experts, ties=ties), human),
    ):
        assert (round(100 * found.agreement), found.pair_count) == published


def test_llmbar_statistics_in_full(shared_data):
    """`False` and `True` are the two orders of the answers, the verdict turned back in the second.

    The published kappas with the label compare a 1 for the first answer and a 0 for the second or for no verdict with a
    label that is 1 or 2: "the second" never agrees. So they are no measure of these judges, and are found again as such;
    that of the two orders with each other codes both alike.
    """
    published = json.loads((shared_data / "judges" / "llmbar_published_statistics.json").read_text())
    for name, rows in groupby(
        recorded(shared_data, "llmbar_verdicts"), lambda row: f"{row['subset']}|{row['llm']}|{row['strategy']}"
    ):
        verdicts = [(str(row["label"]), str(row["fwd"]), str(row["swap"])) for row in rows]
        label, forward, swapped = np.array(verdicts).T
        codes = [np.where(order == "1", 1, 0) for order in (forward, swapped)]
        shares = {
            "correct_False": raw_agreement(forward, label),
            "correct_True": raw_agreement(swapped, label),
            "correct_both": raw_agreement(np.where(forward == swapped, forward, "neither"), label),
            "equal": raw_agreement(forward, swapped),
        }
        kappas = {
            "kappa_False": cohen_kappa(codes[0], label.astype(int)),
            "kappa_True": cohen_kappa(codes[1], label.astype(int)),
            "kappa_agreement": cohen_kappa(*codes),
        }
        kappas["kappa_average"] = (kappas["kappa_False"] + kappas["kappa_True"]) / 2
        written = {  # as theirs are, to the last digit
            key: f"{round(share * len(label))} / {len(label)} = {round(share * len(label)) / len(label) * 100}%"
            for key, share in shares.items()
        }
        hits = sum(round(shares[key] * len(label)) for key in ("correct_False", "correct_True"))
        written["correct_average"] = f"{hits / 2 / len(label) * 100}%"
        assert published.pop(name) == {
            **written,
            **{key: pytest.approx(kappa, abs=1e-9) for key, kappa in kappas.items()},
        }
    assert not published


def test_devai_alignment_of_the_agent_judge_with_people(shared_data):
    """Source: Agent-as-a-Judge, https://arxiv.org/abs/2410.10934."""
    requirements = recorded(shared_data, "devai_requirements")
    found = {}
    for agent in ("MetaGPT", "GPT-Pilot", "OpenHands"):
        chosen = [row for row in requirements if row["agent"] == agent]
        found[agent] = round(100 * raw_agreement([row["human"] for row in chosen], [row["judge"] for row in chosen]), 2)
    assert found == {"MetaGPT": 92.08, "GPT-Pilot": 86.61, "OpenHands": 90.16}
