"""PPI++, held against ppi-python, statsmodels, scipy, cases worked by hand, and how often it covers what people say."""

import gzip
import json
from math import sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from judgekit.stats.intervals import mean_interval, t_interval
from judgekit.stats.prediction_powered import Stratum, ppi_mean, stratified_ppi_mean
from judgekit.stats.units import Units
from judgekit.stats.wilson import wilson

VALUES = st.lists(st.tuples(*[st.integers(0, 4).map(lambda quarter: quarter / 4)] * 2), min_size=2, max_size=40)


def near(interval):
    return pytest.approx(interval[:2], rel=1e-9, abs=1e-9)


def uneven(n, others, cut):
    """Labels and judged values that are spread over [0, 1], and go together in part; 1 above ``cut`` and 0 below."""
    rows = np.arange(n + others)
    said = rows * 37 % 101 / 100
    judged = np.clip(said + rows * 53 % 97 / 97 - 0.5, 0, 1)
    if cut is not None:
        said, judged = (said > cut).astype(float), (judged > cut).astype(float)
    return said[:n], judged[:n], judged[n:]


@pytest.mark.parametrize(
    ("n", "others", "cut", "value", "low", "high"),
    [  # ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3, which find lambda themselves
        (30, 30, None, 0.49396249170008527, 0.40518266502871303, 0.5827423183714575),
        (25, 25, 0.5, 0.46290909090909094, 0.2858270246067589, 0.639991157211423),
        (40, 200, None, 0.5055320241701966, 0.4373248713064898, 0.5737391770339034),
        (60, 400, 0.5, 0.5024351883367371, 0.388529729024867, 0.6163406476486071),
    ],
)
def test_the_mean_is_that_of_ppi_python(n, others, cut, value, low, high):
    labels, judged, unlabeled = uneven(n, others, cut)
    found = ppi_mean(labels, judged, unlabeled, bounded=False)
    assert found.value == pytest.approx(value, abs=1e-9)
    # theirs has z for t, and variances without Bessel's correction
    t_for_z = scipy.stats.t.isf(0.025, n - 1) / scipy.stats.norm.isf(0.025)
    errors, rest = labels - found.weight * judged, found.weight * unlabeled
    variances = [errors.var() / n + rest.var() / others, errors.var(ddof=1) / n + rest.var(ddof=1) / others]
    half = (high - low) / 2 * t_for_z * sqrt(variances[1] / variances[0])
    assert found.interval == (pytest.approx(value - half, abs=1e-9), pytest.approx(value + half, abs=1e-9), "PPI++")


def test_a_judge_that_says_the_opposite_is_left_out():
    labels, judged, unlabeled = uneven(50, 50, None)
    found = ppi_mean(labels, 1 - judged, 1 - unlabeled, bounded=False)
    assert (found.value, found.weight, found.interval.method) == (labels.mean(), 0, "labels alone")
    assert found.interval[:2] == near(scipy.stats.ttest_1samp(labels, 0).confidence_interval())
    assert found.effective_labels == pytest.approx(50)


@given(st.integers(2, 200), st.data(), st.sampled_from([0.8, 0.95]))
def test_labels_alone_have_the_interval_of_wilson_with_t_for_z(n, data, level):
    ones = data.draw(st.integers(0, n))
    found = ppi_mean([1] * ones + [0] * (n - ones), [1] * n, [], level=level)
    alpha = 2 * scipy.stats.norm.sf(scipy.stats.t.isf((1 - level) / 2, n - 1))
    theirs = (ones / n, ones / n) if alpha == 0 else proportion_confint(ones, n, alpha, "wilson")
    assert found.value == ones / n
    if alpha:
        assert found.interval[:2] == pytest.approx(theirs, abs=1e-9)
    assert (found.weight, found.interval.method) == (0, "labels alone")
    assert found.effective_labels == pytest.approx(n)


def test_groups_are_summed_as_by_statsmodels():
    random = np.random.default_rng(4)
    groups, others = random.integers(0, 12, 60), random.integers(20, 60, 300)
    human = random.random(60)
    shifts = random.normal(0, 0.3, 60)
    judged = random.random(360) + np.concatenate([human + shifts[groups], shifts[others]])
    found = ppi_mean(human, judged[:60], judged[60:], groups=groups, unlabeled_groups=others, bounded=False)

    def variance(values, groups):
        return OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups}).bse[0] ** 2

    error = sqrt(variance(human - found.weight * judged[:60], groups) + found.weight**2 * variance(judged[60:], others))
    half = scipy.stats.t.isf(0.025, 11) * error
    assert 0 < found.weight < 1
    assert found.interval[:2] == pytest.approx((found.value - half, found.value + half), abs=1e-9)
    assert found.interval.method == "PPI++, 12 groups"


def test_groups_of_one_are_no_groups_and_labels_alone_with_groups_have_the_clustered_interval():
    labels, judged, unlabeled = uneven(40, 90, None)
    alone = ppi_mean(labels, judged, unlabeled, groups=np.arange(40), unlabeled_groups=[None] * 90)
    assert alone == ppi_mean(labels, judged, unlabeled)
    groups = np.arange(40) // 4
    found = ppi_mean(labels, judged, [], groups=groups, bounded=False)
    assert found.interval[:2] == near(t_interval(Units.of(labels, groups)))
    assert ppi_mean(labels, judged, unlabeled, unlabeled_groups=[1] * 90).weight == 0


def test_a_stratified_mean_by_hand():
    # 70 % of the samples, of which 4 labels say 3/4; 30 %, of which 2 say 1/2; the judge says the same of all of each
    strata = [
        Stratum([1, 1, 1, 0], [1] * 4, [1] * 10, 0.7),
        Stratum([0, 1], [0] * 2, [0] * 4, 0.3),
        Stratum([], [], [], 0),
    ]
    found = stratified_ppi_mean(strata, bounded=False)
    assert found.value == pytest.approx(0.7 * 0.75 + 0.3 * 0.5) == pytest.approx(0.675)
    within = 0.7**2 * 0.25 / 4 + 0.3**2 * 0.5 / 2  # share**2 * s**2 / n
    between = (0.7 * 0.075) ** 2 / 14 + (0.3 * 0.175) ** 2 / 6  # of the shares, which 14 and 6 samples tell
    half = scipy.stats.t.isf(0.025, 4) * sqrt(within + between)
    assert found.interval[:2] == pytest.approx((0.675 - half, 0.675 + half), abs=1e-9)
    assert found.interval.method == "PPI++, 2 strata"
    of_one = 0.675 * 0.325 * 6 / 5  # the variance of a label that is drawn from all samples
    assert found.effective_labels == pytest.approx(of_one / (within + between))
    bounded = stratified_ppi_mean(strata)
    assert 0 < bounded.interval.low < bounded.value == found.value < bounded.interval.high < 1


def test_strata_whose_labels_are_all_alike_share_the_labels_that_no_judge_foresaw():
    found = stratified_ppi_mean(
        [Stratum([1] * 10, [1] * 10, [1] * 290, 0.75), Stratum([0] * 5, [0] * 5, [0] * 95, 0.25)]
    )
    added = scipy.stats.norm.isf(0.025) ** 2
    within = sum(share**2 * (share * added / 2) / (n * (n - 1 + share * added)) for share, n in ((0.75, 10), (0.25, 5)))
    between = (0.75 * 0.25) ** 2 / 300 + (0.25 * 0.75) ** 2 / 100
    of_one = (15 * 0.75 * 0.25 + added / 2 * (0.75**2 + 0.25**2)) / (14 + added)
    worth = of_one / (within + between)
    alpha = 2 * scipy.stats.norm.sf(scipy.stats.t.isf(0.025, 13))
    theirs = proportion_confint(0.75 * worth, worth, alpha, "wilson")
    assert found.interval[:2] == pytest.approx(theirs, abs=1e-9)
    assert found.effective_labels == pytest.approx(worth)


@given(VALUES, st.lists(st.integers(0, 4).map(lambda quarter: quarter / 4), max_size=40), st.randoms())
def test_the_mean_lies_in_an_interval_with_a_width_within_0_and_1_from_either_end(pairs, unlabeled, random):
    random.shuffle(pairs)
    labels, judged = np.transpose(pairs)
    found = ppi_mean(labels, judged, unlabeled)
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
    assert found.interval.high - found.interval.low > 0
    assert 0 <= found.weight <= 1
    assert found.effective_labels > 0
    mirrored = ppi_mean(1 - labels, 1 - judged, 1 - np.asarray(unlabeled))
    assert (1 - mirrored.interval.high, 1 - mirrored.interval.low) == near(found.interval)


def test_a_judge_that_agrees_on_all_labels_may_yet_differ_on_as_many_others_as_wilson_allows():
    for n in [10, 20, 60, 150]:
        for share in [0.1, 0.5, 0.8]:
            ones = round(n * share)
            labels = [1] * ones + [0] * (n - ones)
            found = ppi_mean(labels, labels, labels * 10)
            differ = wilson(0, n).high  # that many at most, were these all 1, or all 0
            assert found.interval.high - found.interval.low > differ
            assert found.interval.low < found.value - differ * share
            assert n < found.effective_labels < 11 * n


def test_where_nothing_can_be_said_there_is_no_mean():
    assert ppi_mean([], [], [0, 1]) is None
    assert ppi_mean([1], [1], [0, 1]) is None
    assert ppi_mean([1, 0, 1], [1, 0, 0], [0, 1], groups=list("aaa")) is None
    assert ppi_mean([0.1] * 3, [0.2] * 3, [0.2] * 9, bounded=False) is None
    assert stratified_ppi_mean([Stratum([1, 0], [1, 1], [], 0.5), Stratum([1], [0], [0], 0.5)]) is None
    crossed = [Stratum([1, 0], [1, 1], [], 0.5, list("ab")), Stratum([1, 1], [0, 0], [], 0.5, list("ab"))]
    assert stratified_ppi_mean(crossed) is None
    assert ppi_mean([1, 0], [1, 1], [], groups=list("ab")) is not None


def test_values_and_shares_that_cannot_be_are_refused():
    for arguments, message in (
        (([0, 1], [1], [1]), "expected one judged value for each of 2 labels, found 1"),
        (([0, 1], [1, 1], [1, 1.5]), r"expected values in \[0, 1\], found 1\.5"),
        (([0, -1], [1, 1], [1]), r"expected values in \[0, 1\], found -1"),
        (([0, float("nan")], [1, 1], [1]), "expected a list of finite numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            ppi_mean(*arguments)
    for shares in ((0.5, 0.4), (1.5, -0.5), ()):
        with pytest.raises(ValueError, match="expected shares of 0 or more that sum to 1, found"):
            stratified_ppi_mean([Stratum([0, 1], [0, 1], [], share) for share in shares])


def verdicts(random, runs, n, share, sensitivity, specificity):
    human = random.random((runs, n)) < share
    judged = np.where(human, random.random((runs, n)) < sensitivity, random.random((runs, n)) >= specificity)
    return human.astype(float), judged.astype(float)


def covered(intervals, truth):
    return np.mean([one.low <= truth <= one.high for one in intervals])


@pytest.mark.simulations
def test_it_covers_the_share_that_people_would_count():
    cases_1 = [(0.5, 0.9, 0.9), (0.8, 0.9, 0.6), (0.95, 0.97, 0.7), (0.3, 0.8, 0.97), (0.7, 0.99, 0.8), (0.5, 0.5, 0.5)]
    for n in [20, 60]:
        for share, sensitivity, specificity in cases_1:
            human, judged = verdicts(np.random.default_rng(1), 200, n + 500, share, sensitivity, specificity)
            found = [ppi_mean(said[:n], one[:n], one[n:]).interval for said, one in zip(human, judged, strict=True)]
            assert covered(found, share) >= 0.93


@pytest.mark.simulations
@pytest.mark.parametrize("n", [20, 60])
def test_it_covers_it_from_strata_of_the_verdict_of_which_the_rarer_has_as_many_labels(n):
    human, judged = verdicts(np.random.default_rng(2), 400, 600, 0.8, 0.9, 0.8)
    found = []
    for said, one in zip(human, judged, strict=True):
        kinds = [np.flatnonzero(one == verdict) for verdict in (0, 1)]
        strata = [
            Stratum(said[kind[: n // 2]], one[kind[: n // 2]], one[kind[n // 2 :]], len(kind) / 600) for kind in kinds
        ]
        found.append(stratified_ppi_mean(strata).interval)
        labeled = np.concatenate([kind[: n // 2] for kind in kinds])
    assert covered(found, 0.8) >= 0.93
    assert abs(human[-1][labeled].mean() - 0.8) > 0.05  # the labels themselves are far from it


@pytest.mark.simulations
@pytest.mark.parametrize("labeled", [5, 2], ids=["tasks", "trials of each task"])
def test_with_trials_of_tasks_only_groups_make_it_cover_the_mean(labeled):
    random = np.random.default_rng(3)
    runs, tasks, trials = 400, 30 if labeled == 5 else 40, 5
    others = 100 if labeled == 5 else 0
    hard = random.beta(0.5, 0.5, (runs, tasks + others, 1))
    human = random.random((runs, tasks + others, trials)) < hard
    strict = random.beta(8, 2, (runs, tasks + others, 1))
    right = random.random(human.shape) < np.where(human, 0.9, strict)
    judged = np.where(right, human, ~human).astype(float)
    chosen = np.zeros(human.shape[1:], bool)
    chosen[:tasks, :labeled] = True
    groups = np.broadcast_to(np.arange(tasks + others)[:, np.newaxis], chosen.shape)
    known, rest = groups[chosen], groups[~chosen]
    data = [(said[chosen].astype(float), one[chosen], one[~chosen]) for said, one in zip(human, judged, strict=True)]
    found = [ppi_mean(*one, groups=known, unlabeled_groups=rest).interval for one in data]
    assert covered(found, 0.5) >= 0.93
    assert covered([ppi_mean(*one).interval for one in data], 0.5) < 0.88


BEST_FIRST = ("gpt-4", "gpt-3.5-turbo", "claude-v1", "vicuna-13b-v1.2", "alpaca-13b", "llama-13b")  # by their scores


@pytest.fixture
def votes(shared_data):
    """A line for each vote of an expert in the first turn: 1 for the better model, 0.5 for a tie; and what GPT-4 says."""
    with gzip.open(shared_data / "judges" / "mtbench_votes.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    by_item = {"expert": [], "gpt4": []}
    for row in rows:
        pair = sorted((row["model_a"], row["model_b"]), key=BEST_FIRST.index)
        value = float(row.get(row["winner"]) == pair[0]) if row["winner"] in row else 0.5
        who = row["judge"].partition("_")[0]
        if who in by_item and row["turn"] == 1:
            by_item[who].append(((*pair, row["question_id"]), value))
    said = dict(by_item["gpt4"])
    return np.array([(value, said[item]) for item, value in by_item["expert"]])


@pytest.mark.simulations
@pytest.mark.parametrize(("n", "ties"), [(20, False), (60, True), (150, False)])
def test_it_covers_what_all_experts_say_by_the_labels_of_some_where_gpt_4_alone_never_does(votes, n, ties):
    human, judged = (votes if ties else votes[(votes != 0.5).all(axis=1)]).T
    truth, random = human.mean(), np.random.default_rng(0)
    assert len(human) == (1343 if ties else 859)  # as in table 5 of https://arxiv.org/abs/2306.05685
    assert mean_interval(judged).low > truth  # the whole interval is beside it, however few labels there are
    drawn = [np.split(random.permutation(len(human)), [n]) for _ in range(1_000)]
    found = [ppi_mean(human[some], judged[some], judged[others]) for some, others in drawn]
    assert 0.93 <= covered([one.interval for one in found], truth) <= 0.98
    width = np.mean([one.interval.high - one.interval.low for one in found])
    assert np.mean([one.value for one in found]) == pytest.approx(truth, abs=0.1 * width)
    assert np.mean([one.effective_labels for one in found]) > 1.1 * n


@pytest.mark.simulations
@pytest.mark.parametrize(("applying", "n", "mean"), [(0.2, 60, 0.9), (0.2, 60, 0.5), (0.5, 20, 0.97), (0.8, 60, 0.9)])
def test_a_mean_over_samples_to_which_the_question_applies_is_covered_however_few_these_are(applying, n, mean):
    random = np.random.default_rng(1)
    covered = given = 0
    for _ in range(300):
        applies = (random.random(300) < applying).astype(float)
        said = (random.random(300) < mean).astype(float)
        judged = np.where(random.random(300) < np.where(said, 0.9, 0.8), said, 1 - said)
        found = stratified_ppi_mean([Stratum(said[:n], judged[:n], judged[n:], 1, applicable=applies[:n])])
        if found is not None:
            given += 1
            covered += found.interval.low <= mean <= found.interval.high
    assert given > 280
    assert covered / given >= 0.93


def test_labels_that_the_question_does_not_apply_to_tell_as_little_as_if_they_were_not_there():
    said, judged = np.ones(60), np.ones(60)
    applies = np.arange(60) < 15
    ratio = stratified_ppi_mean([Stratum(said, judged, [1.0] * 60, 1, applicable=applies)])
    alone = stratified_ppi_mean([Stratum(said[:15], judged[:15], [1.0] * 60, 1)])
    assert ratio.interval.low == pytest.approx(alone.interval.low, abs=0.03)
