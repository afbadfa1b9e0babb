"""The least confidence that keeps a promise: how often it is broken, on drawn and on real labels."""

import gzip
import json
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.selection import least_confidence

ALPHA, DELTA = 0.1, 0.1
OF_6_PERCENT = next(n for n in range(50, 999) if scipy.stats.binom.cdf(int(0.06 * n), n, 0.1) <= 0.05)


def naive(confidence, wrong):
    """The least confidence at which few enough of the labelled verdicts are wrong: no promise at all."""
    order = np.argsort(-confidence)
    few = wrong[order].cumsum() <= ALPHA * np.arange(1, len(wrong) + 1)
    return confidence[order][few.nonzero()[0][-1]] if few.any() else None


@pytest.mark.parametrize(
    ("n", "rate", "votes"),
    [
        (60, lambda sure: 0.4 * (1 - sure), None),
        (250, lambda sure: 0.4 * (1 - sure), None),
        (250, lambda sure: 0.02 + 0.3 * (sure < 0.6), None),
        (60, lambda sure: np.full_like(sure, 0.101), None),  # every threshold is wrong, and only just
        (250, lambda sure: 0.4 * (1 - sure), 5),
    ],
)
def test_the_promise_is_broken_no_more_often_than_delta_in_1000_samples_of_labels(n, rate, votes):
    random = np.random.default_rng(17)

    def draw(size):
        sure = random.random(size)
        sure = sure if votes is None else np.ceil(sure * votes) / votes
        return sure, random.random(size) < rate(sure)

    everyone = np.sort(draw(100_000)[0])
    risks = rate(everyone)[::-1].cumsum()[::-1] / np.arange(len(everyone), 0, -1)
    broken, trusted = [], []
    for _ in range(1_000):
        confidence, wrong = draw(n)
        for value, found in (
            (least_confidence(confidence, wrong, alpha=ALPHA, delta=DELTA).value, broken),
            (naive(confidence, wrong), trusted),
        ):
            found.append(value is not None and risks[np.searchsorted(everyone, value)] > ALPHA)
    assert np.mean(broken) <= DELTA
    assert np.mean(trusted) > 2 * DELTA


@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_on_real_labels_the_promise_is_broken_no_more_often_than_delta_in_1000_splits(shared_data, alpha):
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
    for _ in range(1_000):
        labelled = random.choice(len(wrong), 200, replace=False)
        value = least_confidence(confidence[labelled], wrong[labelled], alpha=alpha, delta=DELTA).value
        found.append(value is not None)
        broken.append(value is not None and wrong[confidence >= value].mean() > alpha)
    assert np.mean(broken) <= DELTA
    assert alpha < 0.2 or np.mean(found) > 0.9


@given(st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=80), st.sampled_from([0.1, 0.3]))
def test_each_threshold_from_the_highest_down_to_the_one_that_is_taken_is_shown_to_hold(verdicts, alpha):
    confidence, wrong = (np.array(column) for column in zip(*verdicts, strict=True))
    found = least_confidence(confidence, wrong, alpha=alpha, delta=DELTA)
    enough = max(np.ceil(np.log(DELTA) / np.log(1 - alpha)), len(wrong) / 4)
    holds = {}
    for value in range(8, 0, -1):
        kept = wrong[confidence >= value]
        if value in confidence and len(kept) >= enough:
            holds[value] = scipy.stats.binomtest(int(kept.sum()), len(kept), alpha, "less").pvalue <= DELTA
    if found.value is None:
        assert not holds or not next(iter(holds.values()))
        assert found.refused
    else:
        tried = list(holds)
        last = tried.index(found.value)
        assert all(holds[value] for value in tried[: last + 1])
        assert last + 1 == len(tried) or not holds[tried[last + 1]]
        assert (found.kept, found.wrong) == (sum(confidence >= found.value), sum(wrong[confidence >= found.value]))
        assert not found.refused


@pytest.mark.parametrize(
    ("verdicts", "kept", "wrong", "needed", "told"),
    [
        ([(1, 0)] * 28, 28, 0, 29, "28 labelled verdicts cannot show it: were none of them wrong, it would take 29"),
        (
            [(1, 0)] * 47 + [(1, 1)] * 3 + [(0, 0)] * 50,
            50,
            3,
            2 * OF_6_PERCENT,
            "of the 50 most confident .* 3 are wrong, too many",
        ),
        ([(1, 0)] * 40 + [(1, 1)] * 10, 50, 10, None, "10 are wrong, which is no less than the 0.1 that is borne"),
        ([], 0, 0, 29, "0 labelled verdicts cannot show it"),
    ],
)
def test_where_no_threshold_keeps_the_promise_it_is_said_why_and_what_it_would_take(
    verdicts, kept, wrong, needed, told
):
    columns = zip(*verdicts, strict=True) if verdicts else ([], [])
    found = least_confidence(*columns, alpha=0.1, delta=0.05)
    assert (found.value, found.kept, found.wrong, found.n) == (None, kept, wrong, len(verdicts))
    assert found.needed == (needed and pytest.approx(needed, rel=0.05))
    assert re.search(told, found.refused)


@pytest.mark.parametrize(
    ("confidence", "wrong", "alpha", "delta", "told"),
    [
        ([1], [0.5], 0.1, 0.1, "0 or 1 for whether each verdict is wrong"),
        ([float("nan")], [0], 0.1, 0.1, "finite confidences"),
        ([1, 1], [0], 0.1, 0.1, "two lists of one length"),
        ([1], [0], 0, 0.1, "alpha above 0 and under 1, found 0"),
        ([1], [0], 0.1, 1, "delta above 0 and under 1, found 1"),
    ],
)
def test_what_can_be_no_promise_is_refused(confidence, wrong, alpha, delta, told):
    with pytest.raises(ValueError, match=told):
        least_confidence(confidence, wrong, alpha=alpha, delta=delta)
