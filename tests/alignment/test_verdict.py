"""Verdicts on candidates: what they say, how often they are wrong, and how often they find a real gain."""

import gzip
import json
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from judgekit.alignment.verdict import AlignmentVerdict, JudgedSamples, choose, holdout_verdict, refusal_reason
from judgekit.runs.intervals import Estimate
from judgekit.stats.agreement import AgreementTables, table_kappa
from judgekit.stats.improvement import sign_flip_gain

ACCURACY = 0.8
RHO = 0.6  # the latent correlation of the errors of prompts of one model
ALIGNMENTS = 1000
REFLECT, VALIDATION, TEST = 20, 25, 55


def judged(human: str, base: str, *candidates: str, groups: list[str | None] | None = None) -> JudgedSamples:
    """Samples from human verdicts, of the old question and of candidates, each written as 0s and 1s."""
    truth, old, new = np.array([*map(float, human)]), np.array([*map(float, base)]), np.array([[*map(float, one)] for one in candidates])  # fmt: skip
    return JudgedSamples(truth, groups or [None] * len(truth), abs(truth - old), abs(truth - new))


def test_an_improvement_is_shown_with_its_counts_and_rates() -> None:
    found = holdout_verdict(judged("1" * 30 + "0" * 20, "0" * 10 + "1" * 20 + "0" * 20, "1" * 30 + "0" * 19 + "1"), 0)
    assert (found.outcome, found.fixed, found.regressed) == ("shown", 10, 1)
    assert (found.sensitivity, found.specificity) == ((pytest.approx(2 / 3), 1.0), (1.0, 0.95))
    assert (found.before.value, found.after.value, found.gain.value) == (0.8, 0.98, pytest.approx(0.18))
    assert found.test == "McNemar mid-p"
    assert found.gain.low is not None
    assert 0 < found.gain.low < 0.18


def test_a_candidate_that_changes_nothing_is_not_shown() -> None:
    found = holdout_verdict(judged("1" * 30 + "0" * 20, "0" * 10 + "1" * 40, "0" * 10 + "1" * 40), 0)
    assert (found.outcome, found.p, found.fixed, found.regressed) == ("not shown", 0.5, 0, 0)
    assert found.least_gain == pytest.approx(0.12, abs=0.01)


def test_a_candidate_that_breaks_more_is_worse() -> None:
    found = holdout_verdict(judged("1" * 30 + "0" * 20, "1" * 30 + "0" * 20, "0" * 10 + "1" * 20 + "0" * 20), 0)
    assert found.outcome == "worse"


def test_a_gain_that_one_class_pays_for_is_not_shown() -> None:
    human = "1" * 70 + "0" * 30
    found = holdout_verdict(judged(human, "0" * 40 + "1" * 30 + "0" * 30, "1" * 70 + "1" * 12 + "0" * 18), 0)
    assert found.p < 0.001
    assert found.outcome == "not shown"
    assert found.specificity == (1.0, 0.6)


def test_a_rare_class_counts_as_much_as_the_other() -> None:
    human = "1" * 90 + "0" * 10
    passes_all = judged(human, "0" * 9 + "1" * 81 + "0" * 10, "1" * 100)
    assert choose(passes_all) == 0
    found = holdout_verdict(passes_all, 0)
    assert "counting equally" in found.test
    assert found.outcome == "worse"  # although it agrees on 90 where the old question agrees on 91


def test_groups_count_once() -> None:
    human, base, new = "1" * 40, "0" * 10 + "1" * 30, "1" * 40
    alone = holdout_verdict(judged(human, base, new), 0)
    grouped = holdout_verdict(judged(human, base, new, groups=["task"] * 10 + [None] * 30), 0)
    assert (alone.outcome, grouped.outcome) == ("shown", "not shown")
    assert grouped.test == "sign-flip"


def test_values_between_count_by_their_distance() -> None:
    human = np.array([0.5] * 30 + [1.0] * 30)
    base, new = np.array([0.5] * 30 + [0.5] * 30), np.array([0.5] * 60)
    found = holdout_verdict(JudgedSamples(human, [None] * 60, base, np.stack([new * 0])), 0)
    assert found.test == "sign-flip"
    assert found.outcome == "shown"
    assert found.before.value == 0.5


def test_the_best_candidate_is_chosen_and_the_first_of_several() -> None:
    assert choose(judged("1100", "1111", "1101", "1100", "1100")) == 1


def test_a_later_look_has_a_lower_level() -> None:
    samples = judged("1" * 25 + "0" * 25, "0" * 5 + "1" * 20 + "0" * 25, "1" * 25 + "0" * 25)
    assert [holdout_verdict(samples, 0, look=look).outcome for look in (1, 2, 3)] == ["shown", "not shown", "not shown"]


def test_too_few_or_too_similar_labels_are_refused() -> None:
    assert "39 labeled samples are too few" in refusal_reason([1.0, 0.0] * 19 + [1.0])
    assert "only 7 of 47" in refusal_reason([1.0] * 40 + [0.0] * 7)
    assert refusal_reason([1.0] * 40 + [0.0] * 7 + [None]) == ""


# How often verdicts are wrong, and how often they find a real gain.


@pytest.fixture
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twentieth of the signs of a verdict, whose p is as valid."""
    monkeypatch.setattr("judgekit.alignment.verdict.sign_flip_gain", partial(sign_flip_gain, draws=499))


def draw(dice: np.random.Generator, human: NDArray[np.float64], accuracies: NDArray[np.float64]) -> JudgedSamples:
    """Judges with these accuracies, the first of which is the old question; their errors are correlated."""
    shared, own = dice.standard_normal(len(human)), dice.standard_normal((len(accuracies), len(human)))
    hard = np.array([NormalDist().inv_cdf(one) for one in accuracies])[:, np.newaxis]
    errors = (np.sqrt(RHO) * shared + np.sqrt(1 - RHO) * own > hard).astype(float)
    return JudgedSamples(human, [None] * len(human), errors[0], errors[1:])


def holdout(samples: JudgedSamples) -> AlignmentVerdict:
    in_validation = np.arange(VALIDATION + TEST) < VALIDATION
    return holdout_verdict(samples.only(~in_validation), choose(samples.only(in_validation)))


@pytest.mark.simulations
@pytest.mark.usefixtures("_few_draws")
@pytest.mark.parametrize(("mean_gain", "power"), [(0.04, 0.33), (0.08, 0.63)])
def test_power_with_100_labels(mean_gain: float, power: float) -> None:
    dice, shown = np.random.default_rng(0), 0
    for _ in range(ALIGNMENTS):
        human = (dice.random(VALIDATION + TEST) < 0.5).astype(float)
        gains = np.clip(ACCURACY + mean_gain + 0.04 * dice.standard_normal(8), 0, 0.99)
        shown += holdout(draw(dice, human, np.array([ACCURACY, *gains]))).outcome == "shown"
    assert shown / ALIGNMENTS == pytest.approx(power, abs=0.05)


@pytest.fixture
def human(shared_data: Path) -> NDArray[np.float64]:
    """Human verdicts on answers to some 3,000 questions."""
    rows = json.loads(gzip.decompress((shared_data / "labels" / "evouna_nq.json.gz").read_bytes()))
    known = [row["judge_newbing"] for row in rows if not row["improper"]]
    return np.array([float(verdict) for verdict in known if verdict is not None])


def draw_labels(dice: np.random.Generator, human: NDArray[np.float64]) -> JudgedSamples:
    """Samples drawn at random to be labeled, without those that the writer reads, and judged by equal prompts."""
    return draw(dice, dice.choice(human, VALIDATION + TEST, replace=False), np.full(9, ACCURACY))


@pytest.mark.simulations
@pytest.mark.usefixtures("_few_draws")
def test_equal_candidates_are_seldom_shown_on_human_labels(human: NDArray[np.float64]) -> None:
    dice, found = np.random.default_rng(0), Counter[str]()
    for _ in range(ALIGNMENTS):
        found[holdout(draw_labels(dice, human)).outcome] += 1
    assert found["shown"] <= 0.064 * ALIGNMENTS  # 5 % and two standard errors
    assert found["worse"] <= 0.064 * ALIGNMENTS


@pytest.mark.simulations
def test_intervals_of_audit_records_cover_what_everybody_would_say(human: NDArray[np.float64]) -> None:
    dice, covered = np.random.default_rng(1), Counter[str]()
    passed = human.mean()
    passed_by_judge = passed * ACCURACY + (1 - passed) * (1 - ACCURACY)
    by_chance = passed * passed_by_judge + (1 - passed) * (1 - passed_by_judge)
    truths = {"agreement": ACCURACY, "kappa": (ACCURACY - by_chance) / (1 - by_chance)}
    for _ in range(ALIGNMENTS):
        samples = draw_labels(dice, human)
        in_validation = np.arange(VALIDATION + TEST) < VALIDATION
        chosen = choose(samples.only(in_validation))
        tested = samples.only(~in_validation)
        verdicts = abs(tested.human_values - tested.candidates[chosen])
        tables = AgreementTables.of(tested.human_values, verdicts, values=(0.0, 1.0), draws=500)
        figures = {
            "agreement": Estimate.mean([*(1 - tested.candidates[chosen])]),
            "kappa": Estimate.of(*tables.figure(table_kappa)),
        }
        for name, figure in figures.items():
            assert figure.low is not None
            assert figure.high is not None
            covered[name] += figure.low <= truths[name] <= figure.high
    assert min(covered.values()) >= 0.93 * ALIGNMENTS, covered
