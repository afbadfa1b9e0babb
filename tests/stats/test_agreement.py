"""Agreement, held against scikit-learn, krippendorff and published tables."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv
from sklearn.metrics import cohen_kappa_score

from judgekit.stats.agreement import (
    AgreementTables,
    bootstrap_items,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    table_ac1,
    table_agreement,
    table_kappa,
)
from judgekit.stats.intervals import bootstrap

METRICS = ("nominal", "ordinal", "interval")
NONE = np.nan
ANSWERS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


def raters(table, names):
    """What two raters said of each item, from how often they said the one thing and the other."""
    cells = [(a, b, n) for a, row in zip(names, table, strict=True) for b, n in zip(names, row, strict=True)]
    return zip(*((a, b) for a, b, n in cells for _ in range(n)), strict=True)


@pytest.mark.parametrize(
    ("table", "names", "published"),
    [
        (  # the R package irrCAC on its data cont3x3abstractors: overview of version 1.0
            [[13, 0, 0], [0, 20, 7], [0, 4, 56]],
            ["ectopic", "AIU", "NIU"],
            (0.7964094, 0.8493305, 0.7972585),
        ),
        ([[118, 5], [2, 0]], [1, 0], (-0.0234, 0.9408, None)),  # Gwet 2002: hardly any disagreement, no kappa
    ],
)
def test_tables_that_others_worked_out(table, names, published):
    a, b = raters(table, names)
    codes = [[names.index(answer) for answer in one] for one in (a, b)]
    found = cohen_kappa(a, b), gwet_ac1(a, b), krippendorff_alpha(codes, metric="nominal")
    for ours, theirs in zip(found, published, strict=True):
        if theirs is not None:
            assert ours == pytest.approx(theirs, abs=5e-5 if len(names) == 2 else 5e-8)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
@pytest.mark.parametrize("values", [None, [0, 0.25, 0.5, 0.75, 1]])
def test_kappa_is_that_of_scikit_learn(weights, values):
    random = np.random.default_rng(7)
    scale = [0, 0.25, 0.5, 1]  # 0.75 is never said, so that a rank lies between 0.5 and 1 if it could have been
    for n in (2, 5, 60):
        a, b = random.choice(scale, (2, n))
        b = np.where(random.random(n) < 0.5, a, b)
        codes = [[(values or sorted({*a, *b})).index(answer) for answer in one] for one in (a, b)]  # it takes no floats
        labels = None if values is None else range(len(values))
        theirs = cohen_kappa_score(*codes, labels=labels, weights=None if weights == "none" else weights)
        assert cohen_kappa(a, b, weights=weights, values=values) == pytest.approx(theirs, abs=1e-9)


def test_weights_go_by_the_order_that_is_given_for_names_as_for_numbers():
    a, b = ["good", "poor", "fair", "good"], ["fair", "poor", "fair", "poor"]
    order = ["poor", "fair", "good"]
    theirs = cohen_kappa_score(a, b, labels=order, weights="quadratic")
    assert cohen_kappa(a, b, weights="quadratic", values=order) == pytest.approx(theirs, abs=1e-9)
    assert cohen_kappa(a, b, weights="quadratic") != pytest.approx(theirs)  # fair, good, poor


@pytest.mark.parametrize("metric", METRICS)
def test_alpha_is_that_of_krippendorff(metric):
    random = np.random.default_rng(8)
    for raters_, items, missing in ((2, 8, 0), (3, 40, 0.2), (6, 25, 0.7)):
        truth = random.choice([0, 1, 2.5, 7], items)
        size = (raters_, items)
        ratings = np.where(random.random(size) < 0.6, truth, random.choice([0, 1, 2.5, 7], size))
        ratings[random.random(ratings.shape) < missing] = NONE
        ratings[0] = ratings[0] if missing < 0.5 else NONE  # a rater without any
        theirs = krippendorff.alpha(ratings, level_of_measurement=metric)
        assert krippendorff_alpha(ratings, metric=metric) == pytest.approx(theirs, abs=1e-9)


def test_alpha_of_the_example_of_its_author():
    """Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": four observers, twelve units."""
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
    assert [round(krippendorff_alpha(ratings, metric=metric), 3) for metric in METRICS] == [0.743, 0.815, 0.849]


def test_what_could_have_been_said_counts_for_ac1():
    a, b = ["x", "x", "y", "y"], ["x", "y", "y", "y"]  # equal 3/4; x is 3/8 of the answers: 2 * 3/8 * 5/8 = 15/32
    assert gwet_ac1(a, b) == pytest.approx((3 / 4 - 15 / 32) / (1 - 15 / 32))
    assert gwet_ac1(a, b, values=["x", "y", "z"]) == pytest.approx((3 / 4 - 15 / 64) / (1 - 15 / 64))


@given(ANSWERS, st.permutations("abc"))
def test_neither_the_order_of_raters_nor_the_names_of_categories_matter(pairs, names):
    a, b = zip(*pairs, strict=True)
    renamed = [[names["abc".index(answer)] for answer in one] for one in (b, a)]
    for measure in (cohen_kappa, gwet_ac1):
        found = measure(a, b)
        assert measure(*renamed) == pytest.approx(found)
        assert found is None or -1 - 1e-12 <= found <= 1
        assert (found == 1) == (a == b) or (found is None and a == b)


def test_what_can_be_said_of_few_answers_and_of_one_category():
    for a, b, found in (
        ([], [], (None, None)),
        ([1], [1], (None, 1)),
        ([1], [0], (0, -1)),
        (["yes"] * 9, ["yes"] * 9, (None, 1)),  # scikit-learn has NaN: chance would do as well
        (["yes"] * 9, ["no"] * 9, (0, -1)),
        ([True, False], [1.0, 0.0], (1, 1)),
    ):
        assert (cohen_kappa(a, b), gwet_ac1(a, b)) == found


def test_alpha_is_undefined_without_pairs_and_without_difference():
    """Where krippendorff raises."""
    cases = [[[]], [[1, 2, 3]], [[1, NONE], [NONE, 2]], [[1, 1], [1, NONE]], [[NONE, NONE]] * 3, np.zeros((0, 4))]
    for ratings in cases:
        for metric in METRICS:
            assert krippendorff_alpha(ratings, metric=metric) is None


def test_answers_that_cannot_be_compared_are_refused():
    cases = [
        ([1, 2], [1], None, "two lists of one length"),
        ([[1, 2]], [[1, 2]], None, "two lists of one length"),
        ([1, NONE], [1, 2], None, "finite numbers or strings from both"),
        ([1, None], [1, 2], None, "finite numbers or strings from both"),
        ([1, 2], ["1", "2"], None, "finite numbers or strings from both"),
        ([1, 2], [1, 3], [1, 2], r"expected answers among \[1, 2\], found 3"),
        ([1, 2], [1, 2], ["a", "b"], "expected answers among"),
    ]
    for a, b, values, told in cases:
        for measure in (cohen_kappa, gwet_ac1):
            with pytest.raises(ValueError, match=told):
                measure(a, b, values=values)


def test_ratings_that_are_no_table_and_measures_that_are_not_known_are_refused():
    with pytest.raises(ValueError, match="none, linear or quadratic, found 'cubic'"):
        cohen_kappa([1, 2], [1, 2], weights="cubic")
    with pytest.raises(ValueError, match="nominal, ordinal or interval, found 'ratio'"):
        krippendorff_alpha([[1, 2], [1, 2]], metric="ratio")
    for wrong in ([1, 2], [[1, np.inf]]):
        with pytest.raises(ValueError, match="a table of numbers, raters x items"):
            krippendorff_alpha(wrong, metric="nominal")


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 6]])
def test_redrawn_is_the_bootstrap_of_values(groups):
    values = np.random.default_rng(9).random(12)
    found = bootstrap_items(lambda at: float(values[at].mean()), len(values), groups)
    theirs = bootstrap(values, groups, draws=2_000)
    assert found == (pytest.approx(theirs.low), pytest.approx(theirs.high), theirs.method)


def test_items_said_again_in_a_group_tell_nothing_more():
    a, b = np.random.default_rng(10).integers(0, 2, (2, 40))
    once = bootstrap_items(lambda at: cohen_kappa(a[at], b[at]), 40, draws=400)
    again = bootstrap_items(lambda at: cohen_kappa(a[at % 40], b[at % 40]), 120, np.arange(120) % 40, draws=400)
    assert again == (pytest.approx(once.low), pytest.approx(once.high), "bootstrap, 40 groups")


@pytest.mark.simulations
def test_with_trials_of_tasks_only_the_clustered_interval_covers_kappa_as_often_as_it_says():
    random = np.random.default_rng(14)
    runs, tasks, trials = 60, 50, 4
    human = np.repeat(random.integers(0, 2, (runs, tasks)), trials, 1)
    wrong = np.repeat(random.random((runs, tasks)) < 0.2, trials, 1) ^ (random.random((runs, tasks * trials)) < 0.02)
    kappa = 1 - 2 * (0.2 * 0.98 + 0.8 * 0.02)  # of two raters who say yes half of the time

    def estimated(a, off):
        yes, judged = a.mean(), (a ^ off).mean()
        return 1 - off.mean() / (yes * (1 - judged) + judged * (1 - yes))

    assert estimated(human[0], wrong[0]) == pytest.approx(cohen_kappa(human[0], human[0] ^ wrong[0]))

    def coverage(groups):
        found = [
            bootstrap_items(lambda at, a=a, off=off: estimated(a[at], off[at]), tasks * trials, groups, draws=150)
            for a, off in zip(human, wrong, strict=True)
        ]
        return np.mean([one.low <= kappa <= one.high for one in found])

    assert coverage(np.repeat(np.arange(tasks), trials)) > 0.86  # three standard errors of 60 runs below 0.95
    assert coverage(None) < 0.8


def test_undefined_draws_widen_the_interval_and_too_many_leave_none():
    values = np.random.default_rng(11).random(40)

    def unless_without(rare):
        """Undefined in a draw without an item below ``rare``: (1 - rare / 40)**40 of them."""
        found = []

        def statistic(at):
            found.append(float(values[at].mean()) if (at < rare).any() else None)
            return found[-1]

        return statistic, found

    statistic, found = unless_without(4)
    interval = bootstrap_items(statistic, 40)
    undefined = found.count(None)
    assert undefined == pytest.approx(0.9**40 * 2_000, abs=20)
    defined = np.array([one for one in found if one is not None])
    for outside in (defined < interval.low, defined > interval.high):
        assert outside.sum() + undefined == pytest.approx(0.025 * 2_000, abs=1)

    assert bootstrap_items(unless_without(2)[0], 40) is None  # 13 % of the draws
    assert bootstrap_items(lambda at: None, 40) is None


@pytest.mark.parametrize(("n", "groups"), [(0, None), (1, None), (9, ["one"] * 9)])
def test_of_one_unit_and_of_raters_that_never_differ_there_is_no_interval(n, groups):
    assert bootstrap_items(lambda at: float(at.mean()), n, groups) is None
    assert bootstrap_items(lambda at: 1.0, 9) is None


def test_drawn_tables_are_those_of_dirichlet_s_distribution():
    a, b = raters([[40, 2], [5, 13]], (0, 1))
    tables = AgreementTables.of(a, b, values=(0, 1), draws=20_000)
    for statistic, right, wrong in ((table_agreement, 53, 7), (lambda table: table_agreement(table, 1), 13, 5)):
        value, interval = tables.figure(statistic)
        assert value == right / (right + wrong)
        added = 1 if statistic is table_agreement else 0.5  # a half in each cell
        theirs = betaincinv(right + added, wrong + added, [0.025, 0.975])
        assert interval[:2] == (pytest.approx(theirs[0], abs=0.006), pytest.approx(theirs[1], abs=0.006))
    assert tables.figure(table_kappa)[0] == pytest.approx(cohen_kappa_score(a, b))
    assert tables.figure(table_ac1)[0] == pytest.approx(gwet_ac1(a, b))


def test_items_drawn_by_what_one_rater_says_count_for_what_they_stand_for():
    human, judged = [1] * 30 + [0] * 27 + [1] * 3, [1] * 30 + [0] * 30
    weights = [10 / 3] * 30 + [30] * 30
    tables = AgreementTables.of(human, judged, values=(0, 1), weights=weights, draws=20_000)
    kappa, interval = tables.figure(table_kappa)
    assert kappa == pytest.approx(cohen_kappa_score(human, judged, sample_weight=weights))
    assert interval.low < kappa < interval.high
    # the judge's verdicts are all known
    assert tables.resampled.sum(1) == pytest.approx(np.tile([900, 100], (20_000, 1)))
    for right, n, verdict in ((30, 30, 1), (27, 30, 0)):
        shares = tables.resampled[:, verdict, verdict] / tables.resampled[:, :, verdict].sum(1)
        theirs = betaincinv(right + 0.5, n - right + 0.5, [0.025, 0.975])
        assert np.quantile(shares, [0.025, 0.975]) == pytest.approx(theirs, abs=0.004)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_tables_of_several_categories_have_the_kappa_of_their_items(weights):
    a, b = np.random.default_rng(15).integers(0, 4, (2, 50))
    value, interval = AgreementTables.of(a, b, values=range(4)).figure(lambda table: table_kappa(table, weights))
    assert value == pytest.approx(cohen_kappa_score(a, b, weights=None if weights == "none" else weights))
    assert interval.low < value < interval.high


def test_tables_of_items_said_again_in_a_group_tell_nothing_more():
    a, b = np.random.default_rng(10).integers(0, 2, (2, 40))
    _, once = AgreementTables.of(a, b, values=(0, 1)).figure(table_kappa)
    groups = np.arange(120) % 40
    _, again = AgreementTables.of(a[groups], b[groups], values=(0, 1), groups=groups).figure(table_kappa)
    assert again == (pytest.approx(once.low), pytest.approx(once.high), "smoothed bootstrap, 40 groups")
    assert AgreementTables.of([1, 0], [1, 0], values=(0, 1), groups=["one"] * 2).figure(table_kappa) == (1, None)
    assert AgreementTables.of([0], [0], values=(0, 1)).figure(table_kappa) == (None, None)


@pytest.mark.simulations
@pytest.mark.parametrize(("positive", "wrong"), [(0.7, 0.1), (0.9, 0.05), (0.7, 0.02)])
@pytest.mark.parametrize("by_verdict", [False, True])
def test_intervals_of_sixty_items_cover_kappa_as_often_as_they_say(positive, wrong, by_verdict):
    random, runs, n, every = np.random.default_rng(16), 150, 60, 1_000
    covered = np.zeros(2)
    for _ in range(runs):
        human = random.random(every) < positive
        judged = human ^ (random.random(every) < wrong)
        parts = [np.flatnonzero(judged), np.flatnonzero(~judged)] if by_verdict else [np.arange(every)]
        chosen = [random.permutation(part)[: n // len(parts)] for part in parts]
        weights = np.concatenate([np.full(len(one), len(of) / len(one)) for one, of in zip(chosen, parts, strict=True)])
        at = np.concatenate(chosen)
        drawn = AgreementTables.of(
            human[at], judged[at], values=(0, 1), weights=weights if by_verdict else None, draws=400
        )
        whole = np.bincount(2 * human + judged, minlength=4).reshape(2, 2)
        for which, statistic in enumerate((table_kappa, table_ac1)):
            _, interval = drawn.figure(statistic)
            covered[which] += interval.low <= statistic(whole) <= interval.high
    assert (covered / runs > 0.89).all()  # three standard errors of 150 runs below 0.95


@pytest.mark.parametrize(("items", "errors", "is_told"), [(30, 0, True), (30, 1, True), (30, 2, False), (60, 0, False)])
def test_of_few_items_on_which_raters_hardly_differ_the_interval_may_be_too_narrow(items, errors, is_told):
    a = [number % 2 for number in range(items)]
    b = [1 - answer if number < errors else answer for number, answer in enumerate(a)]
    _, interval = AgreementTables.of(a, b, values=(0, 1)).figure(table_ac1)
    told = "; it may be too narrow: the raters differ on fewer than 2 of 30 items"
    assert interval.method == "smoothed bootstrap" + told * is_told
