"""The least confidence that keeps a guarantee: how often this fails, on drawn and on real labels."""

import gzip
import json
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.selection import min_confidence_threshold

ALPHA, DELTA = 0.1, 0.1
RATES = np.arange(10) / 10
"""The error rates that are bet on, as shares of alpha."""


def by_binomial_tests(confidence, wrong, everyone, *, alpha, delta):
    """What may be looked at once: from half of the labels down, the last threshold that a binomial test shows to hold."""
    order = np.argsort(-confidence)
    sure, lost, kept = confidence[order], wrong[order].cumsum(), np.arange(1, len(wrong) + 1)
    at = max(np.searchsorted(-sure, -np.median(sure), side="right"), 29) - 1
    shown = scipy.special.bdtr(lost[at:], kept[at:], alpha) <= delta
    return sure[at + np.append(shown, False).argmin() - 1] if len(shown) and shown[0] else None


def granted(find, confidence, wrong, looks, alpha=ALPHA):
    """The first threshold that is found while labels are added; ``None`` if none is."""
    values = (find(confidence[:n], wrong[:n], confidence, alpha=alpha, delta=DELTA) for n in looks)
    values = (getattr(value, "value", value) for value in values)
    return next((value for value in values if value is not None), None)


@pytest.mark.simulations
@pytest.mark.parametrize(
    ("rate", "levels", "annotators"),
    [
        (lambda sure: np.full_like(sure, 0.101), 1, 1),  # every threshold is wrong, and only just
        (lambda sure: np.full_like(sure, 0.101), 5, 3),
        (lambda sure: 0.4 * (1 - sure), None, 1),
    ],
)
def test_while_labels_are_added_until_it_is_granted_the_guarantee_fails_no_more_often_than_delta(
    rate, levels, annotators
):
    random = np.random.default_rng(17)

    def draw(size):
        sure = random.random(size)
        sure = sure if levels is None else np.ceil(sure * levels) / levels
        return sure, random.binomial(annotators, rate(sure)) / annotators

    population = np.sort(draw(100_000)[0])
    risks = rate(population)[::-1].cumsum()[::-1] / np.arange(len(population), 0, -1)
    broken = defaultdict(list)
    for _ in range(60):
        confidence, wrong = draw(300)
        for find, step in ((min_confidence_threshold, 20), (by_binomial_tests, 10))[: 1 + (annotators == 1)]:
            value = granted(find, confidence, wrong, range(step, 301, step))
            broken[find].append(value is not None and risks[np.searchsorted(population, value)] > ALPHA)
    assert np.mean(broken[min_confidence_threshold]) <= DELTA
    assert annotators > 1 or np.mean(broken[by_binomial_tests]) > 1.5 * DELTA


def test_the_threshold_is_above_where_the_verdicts_go_wrong():
    sure = np.linspace(1, 0, 400)
    found = min_confidence_threshold(sure, sure < 0.3, sure, alpha=ALPHA, delta=DELTA)
    assert 1 - 0.7 / (1 - ALPHA) < found.value < 0.31


@pytest.mark.simulations
@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_on_real_labels_the_guarantee_fails_no_more_often_than_delta_in_50_orders(shared_data, alpha):
    """GPT-4 on pairs of LLMBar: its verdict is that of most strategies in both orders, their share its confidence."""
    answers, right = defaultdict(list), {}
    with gzip.open(shared_data / "judges" / "llmbar_verdicts.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            if row["llm"] == "GPT-4":
                answers[row["subset"], row["i"]] += [row["fwd"], row["swap"]]
                right[row["subset"], row["i"]] = str(row["label"])
    verdicts = {item: Counter(given).most_common(1)[0] for item, given in answers.items()}
    confidence = np.array([votes / len(answers[item]) for item, (_, votes) in verdicts.items()])
    wrong = np.array([answer != right[item] for item, (answer, _) in verdicts.items()])
    random = np.random.default_rng(1)
    broken, found = [], []
    for _ in range(50):
        order = random.permutation(len(wrong))
        value = granted(min_confidence_threshold, confidence[order], wrong[order], range(40, len(wrong), 40), alpha)
        found.append(value is not None)
        broken.append(value is not None and wrong[confidence >= value].mean() > alpha)
    assert np.mean(broken) <= DELTA
    assert alpha < 0.2 or np.mean(found) > 0.9


@given(
    st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=80),
    st.lists(st.integers(1, 8), max_size=80),
    st.sampled_from([0.1, 0.3]),
)
def test_each_threshold_from_where_testing_begins_down_to_the_one_that_is_taken_is_shown_to_hold(
    verdicts, others, alpha
):
    confidence, wrong = (np.array(column) for column in zip(*verdicts, strict=True))
    everyone = np.array([*confidence, *others])
    found = min_confidence_threshold(confidence, wrong, everyone, alpha=alpha, delta=DELTA)
    values = sorted({*everyone.tolist()}, reverse=True)
    beginnings = {next(value for value in values if np.mean(everyone >= value) >= part) for part in (0.25, 0.5, 1)}

    def holds(value):
        """By a mixture of likelihood ratios, of which the mean is at most 1 where the rate is alpha or more."""
        k, n = wrong[confidence >= value].sum(), (confidence >= value).sum()
        ratios = scipy.stats.binom.pmf(k, n, alpha * RATES) / scipy.stats.binom.pmf(k, n, alpha)
        return ratios.mean() >= len(beginnings) / DELTA

    if found.value is None:
        assert not any(map(holds, beginnings))
        assert found.unavailable_reason
    else:
        begun = min(value for value in beginnings if holds(value))
        below = values[values.index(begun) :]
        assert found.value in below
        at = below.index(found.value)
        assert all(map(holds, below[: at + 1]))
        assert at + 1 == len(below) or not holds(below[at + 1])
        assert not found.unavailable_reason


@pytest.mark.parametrize(("errors", "needed"), [(0, 41), (1, 66), (2, 85)])
def test_it_takes_so_many_labels_where_all_verdicts_are_equally_sure(errors, needed):
    for n, shown in ((needed - 1, None), (needed, 1)):
        wrong = [1] * errors + [0] * (n - errors)
        assert min_confidence_threshold([1] * n, wrong, [1] * 200, alpha=0.1, delta=0.05).value == shown


def test_of_a_verdict_on_which_people_differ_the_fraction_that_says_otherwise_counts():
    stakes = 1 - RATES
    grown = ((1 + stakes * (0.1 - 0.04) / 0.9) ** np.arange(1, 200)[:, None]).mean(1)
    needed = int((grown < 1 / 0.05).sum()) + 1
    for n, shown in ((needed - 1, None), (needed, 1)):
        assert min_confidence_threshold([1] * n, [0.04] * n, [1] * 200, alpha=0.1, delta=0.05).value == shown


def test_where_no_threshold_keeps_the_guarantee_it_is_said_why_and_what_it_would_take():
    for verdicts, told in (
        ([(1, 0)] * 40, "40 labeled verdicts are too few: even with no errors, it would take 41"),
        ([(1, 0)] * 20 + [(0, 0)] * 20, "even with no errors, it would take 48"),  # begins in two places
        ([(1, 0)] * 78 + [(1, 1)] * 2, "the 80 most confident .* an error rate of 0.025; .* about 8. labels"),
        ([(1, 0)] * 40 + [(1, 1)] * 10, "an error rate of 0.2; it would have to be clearly below 0.1"),
        ([], "0 labeled verdicts are too few"),
    ):
        confidence, errors = zip(*verdicts, strict=True) if verdicts else ((), ())
        found = min_confidence_threshold(confidence, errors, confidence, alpha=0.1, delta=0.05)
        assert found.value is None
        assert re.search(told, found.unavailable_reason)


def test_so_many_labels_as_it_is_said_to_take_show_it_if_the_rest_are_like_those_that_there_are():
    random = np.random.default_rng(3)
    confidence = random.random(80)
    wrong = random.random(80) < 0.25 * (1 - confidence)
    reason = min_confidence_threshold(confidence, wrong, confidence, alpha=0.1, delta=0.05).unavailable_reason
    needed = int(re.search(r"about (\d+) labels", reason)[1])
    for times, is_shown in ((needed // 80, False), (needed // 80 + 1, True)):
        columns = np.tile(confidence, times), np.tile(wrong, times)
        found = min_confidence_threshold(*columns, columns[0], alpha=0.1, delta=0.05)
        assert (found.value is not None) == is_shown


def test_what_can_be_no_guarantee_is_refused():
    cases = [
        ([1], [1.5], [1], 0.1, 0.1, "errors from 0 to 1"),
        ([1], [float("nan")], [1], 0.1, 0.1, "errors from 0 to 1"),
        ([1], [0], [1, float("nan")], 0.1, 0.1, "finite confidences"),
        ([1], [0], [0.9], 0.1, 0.1, "the confidence of each labeled verdict among all confidences"),
        ([1, 1], [0], [1], 0.1, 0.1, "two lists of one length"),
        ([1], [0], [1], 0, 0.1, "alpha above 0 and below 1, found 0"),
        ([1], [0], [1], 0.1, 1, "delta above 0 and below 1, found 1"),
    ]
    for confidence, wrong, everyone, alpha, delta, told in cases:
        with pytest.raises(ValueError, match=told):
            min_confidence_threshold(confidence, wrong, everyone, alpha=alpha, delta=delta)
