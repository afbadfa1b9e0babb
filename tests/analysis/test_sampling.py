"""Which samples people are to label."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from judgekit import AIMessage, Run, Sample, Score, run, scorer
from judgekit.analysis.sampling import draw_samples, strata
from judgekit.errors import ConfigError
from judgekit.runs.rows import Row
from judgekit.stats.prediction_powered import ppi_mean


def scored(*verdicts: tuple[float | None, str | None]) -> Run:
    """A run with a score of each value and label; without a value it is skipped."""
    samples = [Sample.of([AIMessage(f"Hi {number}")], id=f"s{number}") for number in range(len(verdicts))]
    said = dict(zip((one.id for one in samples), verdicts, strict=True))

    @scorer
    def kind(sample: Sample) -> Score:
        value, label = said[sample.id]
        return Score.skipped("kind", "no") if value is None else Score.scored("kind", value, label=label)

    return run(samples, [kind])


YES, NO, NONE = (1.0, "yes"), (0.0, "no"), (None, None)


def test_a_random_draw_is_of_scored_samples_each_once_with_its_probability():
    drawn = draw_samples(scored(*[YES] * 30, *[NONE] * 10), "kind", 12)
    assert len({one.number for one in drawn}) == 12
    assert max(one.number for one in drawn) < 30
    assert {(one.selection, one.probability) for one in drawn} == {("random", 0.4)}
    assert all(one.id == f"s{one.number}" for one in drawn)


def test_the_seed_draws_the_same_samples_and_another_one_others():
    made = scored(*[YES] * 40)
    assert draw_samples(made, "kind", 10) == draw_samples(made, "kind", 10) != draw_samples(made, "kind", 10, seed=1)


@pytest.mark.parametrize("by_verdict", [False, True])
def test_a_larger_draw_holds_a_smaller_one_of_the_same_seed(by_verdict):
    made = scored(*[YES] * 30, *[NO] * 7)
    draws = [{one.number for one in draw_samples(made, "kind", n, by_verdict=by_verdict)} for n in (4, 10, 25, 36)]
    assert all(smaller < larger for smaller, larger in pairwise(draws))


@pytest.mark.simulations
def test_every_sample_is_as_likely_as_its_probability_says():
    """Each of 20 samples in 5 of 20 places: over 2,000 repeats 500 times, within five standard deviations."""
    made = scored(*[YES] * 4, *[NO] * 16)
    counted = Counter(one.number for seed in range(2_000) for one in draw_samples(made, "kind", 5, seed=seed))
    assert len(counted) == 20
    assert all(abs(times - 500) < 5 * (2_000 * 0.25 * 0.75) ** 0.5 for times in counted.values())


def test_a_draw_by_verdict_has_as_many_of_each_and_tells_nothing_of_it():
    made = scored(*[YES] * 100, *[NO] * 6, *[(0.5, "partly")] * 30)
    drawn = draw_samples(made, "kind", 40, by_verdict=True)
    labels = {row.index: row.score.label for row in made}
    assert Counter(labels[one.number] for one in drawn) == {"yes": 17, "no": 6, "partly": 17}
    assert {(one.selection, one.probability) for one in drawn} == {("stratified", None)}
    places = [place for place, one in enumerate(drawn) if labels[one.number] == "no"]
    assert places not in ([*range(6)], [*range(34, 40)])
    draws = (draw_samples(made, "kind", 40, by_verdict=True, seed=seed) for seed in range(9))
    assert len({tuple(labels[one.number] for one in drawn) for drawn in draws}) == 9


def test_where_all_are_drawn_the_verdict_plays_no_part():
    drawn = draw_samples(scored(*[YES] * 3, NO, NONE), "kind", 9, by_verdict=True)
    assert len(drawn) == 4
    assert {(one.selection, one.probability) for one in drawn} == {("random", 1.0)}


def test_strata_are_labels_or_values_or_parts_of_many_values():
    cases = [
        ([YES] * 3 + [NO] * 2 + [NONE], [2, 3]),
        ([(1.0, None)] * 3 + [(0.5, None)] * 2 + [(0.0, "no")] * 2, [2, 2, 3]),
        ([YES] * 3 + [(0.5, "partly")] * 2 + [NO], [3, 3]),
        ([YES] + [(0.5, "partly")] * 2 + [NO] * 2, [2, 3]),
        ([YES], [1]),
        ([(place / 100, None) for place in range(100)], [25, 25, 25, 25]),
        ([(0.0, None)] * 90 + [(place / 10, None) for place in range(1, 11)], [100]),
        ([(place / 40, f"f1 {place}") for place in range(40)], [10, 10, 10, 10]),
        ([NONE], []),
    ]
    for verdicts, sizes in cases:
        parts = strata(scored(*verdicts))
        assert [len(part) for part in parts] == sizes
        ranges = sorted((min(values), max(values)) for part in parts if (values := [row.score.value for row in part]))
        assert all(one[1] < other[0] for one, other in pairwise(ranges))


def test_what_cannot_be_drawn_is_refused():
    made = scored(*[YES] * 9, *[NO] * 9)
    for run_, name, n, by_verdict, said in (
        (made, "kin", 3, False, "no scorer of the run is called 'kin'. Did you mean 'kind'"),
        (made, "kind", 0, False, "expected at least one sample to label, found 0"),
        (made, "kind", 3, True, "kind has 2 kinds of verdicts, and each needs at least 2 samples: draw 4 or more"),
        (scored(NONE), "kind", 3, False, "kind scored no sample of run 1"),
    ):
        with pytest.raises(ConfigError, match=said):
            draw_samples(run_, name, n, by_verdict=by_verdict)
    with pytest.raises(ConfigError, match="have no confidence, by which samples to read are chosen: use repeats=5"):
        draw_samples(made, "kind", 10, train=5)


def unsure(n: int, seed: int = 0) -> tuple[Run, list[float]]:
    """A run of a judge that is right on 60 % of the 30 % of samples that are hard, and on 95 % of the others, and knows it."""
    dice = np.random.default_rng(seed)
    truth = (dice.random(n) < 0.7).astype(float)
    right = np.where(dice.random(n) < 0.3, 0.6, 0.95)
    said = np.where(dice.random(n) < right, truth, 1 - truth)
    confidence = np.clip(right + dice.normal(0, 0.05, n), 0, 1)

    @scorer
    def kind(sample: Sample) -> Score:
        number = int(sample.id)
        return Score.scored("kind", said[number], confidence=confidence[number])

    return run([Sample.of([AIMessage(f"Hi {one}")], id=str(one)) for one in range(n)], [kind]), truth.tolist()


def test_sure_and_unsure_samples_of_each_verdict_are_drawn_apart():
    made, _ = unsure(200)
    rows = [*made]
    parts = strata(rows, by_confidence=True)
    assert [len({row.score.value for row in part}) for part in parts] == [1] * 4
    for less, more in (parts[:2], parts[2:]):
        assert max(row.score.confidence for row in less) < min(row.score.confidence for row in more)
        assert len(less) / (len(less) + len(more)) == pytest.approx(0.4, abs=0.02)
    drawn = {one.number for one in draw_samples(made, "kind", 40, by_verdict=True)}
    assert [len(drawn & {row.index for row in part}) for part in parts] == [10] * 4
    assert len(strata(rows)) == 2


def test_samples_with_one_confidence_stay_together():
    rows = [
        Row.of(number, Sample.of([], id=str(number)), Score.scored("kind", 1.0, confidence=0.8)) for number in range(9)
    ]
    assert len(strata(rows, by_confidence=True)) == 1
    rows[0] = Row.of(0, Sample.of([], id="0"), Score.scored("kind", 1.0))
    assert len(strata(rows, by_confidence=True)) == 1


@pytest.mark.simulations
def test_labels_drawn_apart_tell_as_much_as_many_more_at_random():
    """1,000 repeats of 60 from 400: the variance of the mean that people would give is at least 1.25 times as large at random."""
    made, truth = unsure(400)
    rows, human = [*made], np.array(truth)
    said = np.array([row.score.value for row in rows])
    parts = [np.array([row.index for row in part]) for part in strata(rows, by_confidence=True)]
    dice, apart, together = np.random.default_rng(1), [], []
    for _ in range(1_000):
        places = [dice.choice(part, 60 // len(parts), replace=False) for part in parts]
        apart.append(sum(len(part) / 400 * human[one].mean() for part, one in zip(parts, places, strict=True)))
        one = dice.choice(400, 60, replace=False)
        rest = np.setdiff1d(range(400), one)
        together.append(ppi_mean(human[one], said[one], said[rest]).value)
    assert np.mean(apart) == pytest.approx(human.mean(), abs=0.005)
    assert np.var(together) > 1.25 * np.var(apart)


def test_samples_to_read_are_the_least_sure_of_those_that_are_not_drawn():
    made, _ = unsure(200)
    drawn = draw_samples(made, "kind", 60, train=15)
    roles = Counter(one.role for one in drawn)
    assert roles["train"] == 15
    assert roles["validation"] + roles["test"] == 60
    assert 8 <= roles["validation"] <= 30
    confidence = {row.index: row.score.confidence for row in made}
    read = {one.number for one in drawn if one.role == "train"}
    left = set(range(200)) - {one.number for one in drawn}
    assert max(confidence[one] for one in read) <= min(confidence[one] for one in left)
    assert {(one.selection, one.probability) for one in drawn if one.role == "train"} == {("convenience", None)}
    assert {(one.selection, one.probability) for one in drawn if one.role != "train"} == {("random", 0.3)}
    assert {one.number for one in draw_samples(made, "kind", 60)} == {one.number for one in drawn} - read
    assert [one.role == "train" for one in drawn] != sorted(one.role == "train" for one in drawn)
