"""Differences of runs, corrected by labels on both, on other samples of each, or on one alone."""

import numpy as np
import pytest

from judgekit import Sample, run, scorer
from judgekit.analysis.compare import compare
from judgekit.analysis.labels import HumanLabel
from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.stats.corrected_difference import LabeledTasks, corrected_difference
from tests.analysis.conftest import drawn_from, imperfect

N = 300


def outcomes(share, sensitivity, specificity, seed):
    return imperfect(N, share, sensitivity, specificity, seed)


@pytest.fixture
def runs(judged, tmp_path):
    """Two runs, what is so in each, and a judge that passes much more of what is wrong in B."""
    before, after = outcomes(0.6, 0.9, 0.9, 1), outcomes(0.6, 0.9, 0.4, 2)
    store = tmp_path / "runs.sqlite"
    return judged(before[1], store=store), judged(after[1], store=store), before[0], after[0]


def labels_of(run, truth, numbers, **fields):
    return [
        HumanLabel(sample=f"s{one}", number=one, scorer="tone", value=truth[one], run=run.number, **fields)
        for one in numbers
    ]


def values(run):
    return np.array([row.score.value for row in run])


def known(truth, labels):
    return np.array([truth[one] if one in {label.number for label in labels} else np.nan for one in range(N)])


def test_labels_of_both_runs_correct_the_difference(runs):
    a, b, truth_a, truth_b = runs
    first, second = drawn_from(a, truth_a, 80, seed=1), drawn_from(b, truth_b, 80, seed=2)
    (one,) = compare(a, b, labels=[*first, *second])
    found = one.correction
    theirs = corrected_difference(
        LabeledTasks(values(a), known(truth_a, first)), LabeledTasks(values(b), known(truth_b, second))
    )
    assert (found.a, found.b, *found.interval[:2]) == pytest.approx((theirs.a, theirs.b, *theirs.interval[:2]))
    assert found.interval.low < sum(truth_b) / N - sum(truth_a) / N < found.interval.high
    assert found.interval.high < one.difference  # the judge alone says that B is much better
    assert (one.verdict, one.by_scores.verdict) == ("no evidence", "better")
    both = {label.number for label in first} & {label.number for label in second}
    assert (found.labels_a, found.labels_b, found.labels_both) == (80, 80, len(both))
    assert (found.unavailable_reason, found.assumptions, found.notes) == ("", "", [])


def test_labels_drawn_by_verdict_stand_for_their_verdict(runs):
    a, b, truth_a, truth_b = runs
    first, second = drawn_from(a, truth_a, 60, by_verdict=True), drawn_from(b, truth_b, 60, by_verdict=True)
    (one,) = compare(a, b, labels=[*first, *second])
    theirs = corrected_difference(
        LabeledTasks(values(a), known(truth_a, first), strata=values(a).astype(int)),
        LabeledTasks(values(b), known(truth_b, second), strata=values(b).astype(int)),
    )
    assert one.correction.interval[:2] == pytest.approx(theirs.interval[:2])
    assert one.correction.assumptions == ""


def test_what_is_assumed_of_labels_of_unknown_selection_is_said(runs):
    a, b, truth_a, truth_b = runs
    labels = [*labels_of(a, truth_a, range(0, N, 4)), *labels_of(b, truth_b, range(0, N, 4), source="unknown")]
    (one,) = compare(a, b, labels=labels)
    assert one.correction.assumptions == (
        "the labeled samples of each verdict are a random sample of run 1; no label is the verdict of a judge (their "
        "source is unknown), and the labeled samples of each verdict are a random sample of run 2"
    )


def test_labels_of_one_run_give_the_tipping_point_and_the_labels_needed(runs):
    a, b, truth_a, _ = runs
    labels = drawn_from(a, truth_a, 100)
    (one,) = compare(a, b, labels=labels)
    found = one.correction
    assert (found.a, found.b, found.difference, found.interval) == (None, None, None, None)
    assert found.unavailable_reason == "there are no human labels of B, where the judge may err differently than on A"
    trusted = corrected_difference(LabeledTasks(values(a), known(truth_a, labels)), LabeledTasks(values(b), values(b)))
    tipping, needed = found.notes
    assert tipping.startswith(
        f"tipping point: people would find no difference if the judge overrates B by {trusted.b - trusted.a:.3f} on "
        f"average (95 % interval {trusted.interval.low:.3f} to {trusted.interval.high:.3f}); it "
    )
    assert needed.startswith("about ")
    assert needed.endswith(f"labels on B would likely show a difference of {one.difference:.3f}, which the judge sees")


def test_the_interval_of_a_tipping_point_has_the_sign_of_its_words(runs):
    a, b, _, truth_b = runs
    labels = drawn_from(b, truth_b, 100)
    (one,) = compare(a, b, labels=labels)
    trusted = corrected_difference(LabeledTasks(values(b), known(truth_b, labels)), LabeledTasks(values(a), values(a)))
    tip, low, high = (trusted.b - trusted.a, *trusted.interval[:2])
    words = f"overrates A by {tip:.3f} on average (95 % interval {low:.3f} to {high:.3f}"
    if tip < 0:
        words = f"underrates A by {-tip:.3f} on average (95 % interval {-high:.3f} to {-low:.3f})"
    assert words in one.correction.notes[0]


@pytest.mark.simulations
def test_as_many_labels_as_were_said_to_be_needed_show_a_difference_about_as_often_as_was_said(judged, tmp_path):
    """A judge that errs alike on both, whose difference is therefore less than the true one by a factor of 0.7."""
    before, after = outcomes(0.45, 0.9, 0.8, 3), outcomes(0.78, 0.9, 0.8, 4)
    store = tmp_path / "runs.sqlite"
    a, b = judged(before[1], store=store), judged(after[1], store=store)
    (one,) = compare(a, b, labels=drawn_from(a, before[0], 100))
    needed = int(one.correction.notes[1].split()[1])
    dice, shown = np.random.default_rng(5), 0
    truths = [np.array(before[0]), np.array(after[0])]
    off = truths[1].mean() - truths[0].mean() - one.difference  # the power is for the judge's difference
    for _ in range(100):
        places = [dice.choice(N, n, replace=False) for n in (100, needed)]
        said = [
            np.where(np.isin(range(N), places), truth, np.nan) for truth, places in zip(truths, places, strict=True)
        ]
        found = corrected_difference(LabeledTasks(values(a), said[0]), LabeledTasks(values(b), said[1]))
        shown += found.interval.low - off > 0
    assert needed < 150
    assert 0.7 < shown / 100 < 0.95


def test_too_few_labels_to_tell_anything_say_how_many_there_are(runs):
    a, b, truth_a, truth_b = runs
    labels = [*drawn_from(a, truth_a, 4), *drawn_from(b, truth_b, 60)]
    (one,) = compare(a, b, labels=labels)
    assert one.correction.unavailable_reason == "on A, only 4 labeled samples; at least 10 are needed"
    (one,) = compare(a, b, labels=drawn_from(a, truth_a, 4))
    assert one.correction.notes == []


def test_labels_picked_by_hand_or_of_other_samples_correct_nothing(runs):
    a, b, truth_a, truth_b = runs
    (one,) = compare(
        a, b, labels=[*labels_of(a, truth_a, range(50), selection="convenience"), *drawn_from(b, truth_b, 60)]
    )
    assert one.correction.unavailable_reason.startswith("on A, the labeled samples were picked by hand")
    failures = [number for number, value in enumerate(values(b)) if value == 0]
    (one,) = compare(a, b, labels=[*drawn_from(a, truth_a, 60), *labels_of(b, truth_b, failures)])
    assert one.correction.unavailable_reason.startswith("on B, the labeled samples differ from the others: verdicts")


def test_labels_that_cannot_be_used_are_counted(judged, tmp_path):
    store = tmp_path / "runs.sqlite"
    truth, said = outcomes(0.6, 0.9, 0.9, 6)
    failed = Score.failed("tone", "broken", error="OverloadError")
    a, b, other = judged([*said[:-1], failed], store=store), judged(said[:-9], store=store), judged(said, store=store)
    labels = [
        *labels_of(a, truth, range(N)),
        *labels_of(b, truth, range(0, N, 3)),
        *labels_of(other, truth, range(7), recordings="elsewhere"),
    ]
    (one,) = compare(a, b, labels=labels)
    assert one.correction.notes == [
        "labels of A left out: 1 (failed by the judge)",
        "labels of A left out: 8 (no pair has this sample)",
        "labels of B left out: 3 (run 2 has no score for 's291', 's294', 's297')",
        "7 labels left out: they belong to neither run",
    ]


def test_samples_that_were_picked_to_be_read_correct_nothing_and_are_counted(runs):
    a, b, truth_a, truth_b = runs
    drawn = [*drawn_from(a, truth_a, 80), *drawn_from(b, truth_b, 80)]
    known = {label.number for label in drawn}
    unsure = [number for number in range(N) if number not in known][:9]
    picked = labels_of(a, truth_a, unsure, selection="convenience", role="train")
    (one,) = compare(a, b, labels=[*drawn, *picked])
    (without,) = compare(a, b, labels=drawn)
    assert one.correction.notes == ["9 labels left out: picked for judgekit align to read, not at random"]
    assert one.correction.interval == without.correction.interval


def test_a_label_must_tell_its_run_and_a_scorer_of_both(runs, judged):
    a, b, truth_a, _ = runs
    (label,) = labels_of(a, truth_a, [0])
    with pytest.raises(
        ConfigError, match="sample 's0' does not say which run's answer it is about; add the column run"
    ):
        compare(a, b, labels=[label.model_copy(update={"run": None})])
    with pytest.raises(ConfigError, match="scorer of both runs"):
        compare(a, b, labels=[label.model_copy(update={"scorer": "other"})])
    with pytest.raises(ConfigError, match="both runs have the number 1, so labels cannot name one"):
        compare(judged([1.0, 0.0]), judged([1.0, 1.0]), labels=[label])


def test_where_judge_and_labels_disagree_on_what_is_decided_the_first_sentence_says_so(runs):
    a, b, truth_a, truth_b = runs
    comparison = compare(a, b, labels=[*drawn_from(a, truth_a, 80), *drawn_from(b, truth_b, 80)])
    (one,) = comparison
    found = one.correction
    sentence = (
        "tone: the judge and human labels disagree: corrected by the labels, there is no evidence of a difference "
        f"({found.difference:+z.3f}, {found.interval.low:+z.3f} to {found.interval.high:+z.3f}); by the judge alone, B is "
        f"better ({one.difference:+z.3f}, {one.interval.low:+z.3f} to {one.interval.high:+z.3f})"
    )
    assert " ".join(str(comparison).split()).startswith(sentence)
    assert comparison.as_json()["contradictions"] == [sentence]
    corrected, alone = (line.split() for line in str(comparison).splitlines() if " tone, " in line)
    assert corrected[:4] == ["tone,", "corrected", "no", "evidence"]
    assert alone[:8] == [*("tone,", "by", "the", "judge", "alone", "better"), f"{one.a:.3f}", f"{one.b:.3f}"]
    assert "tone: by the judge alone: " in str(comparison)


def test_where_labels_decide_otherwise_or_what_the_judge_does_not_see_they_decide(judged, tmp_path):
    store = tmp_path / "runs.sqlite"
    high, low = ([float(number % 10 < share) for number in range(N)] for share in (8, 4))
    for judge_a, judge_b, alone in ((low, high, "B is better (+0.400"), (low, low, "no score changed (+0.000")):
        a, b = judged(judge_a, store=store), judged(judge_b, store=store)
        labels = [*drawn_from(a, high, 60, seed=1), *drawn_from(b, low, 60, seed=2)]
        comparison = compare(a, b, labels=labels, gates=["tone.difference.corrected.upper < 0"])
        (sentence,) = comparison.contradictions
        assert comparison["tone"].verdict == "worse"
        assert "corrected by the labels, B is worse (-0." in sentence
        assert f"by the judge alone, {alone}" in sentence
        assert comparison.gates.met


def test_judge_and_labels_that_agree_contradict_nothing(judged, tmp_path):
    store = tmp_path / "runs.sqlite"
    truths = [outcomes(share, 0.9, 0.9, seed) for share, seed in ((0.2, 1), (0.8, 2))]
    a, b = (judged(said, store=store) for _, said in truths)
    comparison = compare(a, b, labels=[*drawn_from(a, truths[0][0], 80), *drawn_from(b, truths[1][0], 80)])
    assert comparison["tone"].verdict == comparison["tone"].by_scores.verdict == "better"
    assert comparison.contradictions == []
    assert str(comparison).startswith("A is run 1 ")
    assert compare(a, b).contradictions == []


def test_the_corrected_p_is_where_the_interval_just_contains_0(runs):
    a, b, truth_a, truth_b = runs
    (one,) = compare(a, b, labels=[*drawn_from(a, truth_a, 80), *drawn_from(b, truth_b, 80)])
    p = one.correction.p
    assert one.correction.p_holm == p  # of one scorer
    sides = (
        LabeledTasks(values(run), known(truth, drawn_from(run, truth, 80)))
        for run, truth in ((a, truth_a), (b, truth_b))
    )
    interval = corrected_difference(*sides, level=1 - p).interval
    assert min(abs(interval.low), abs(interval.high)) < 1e-4


def test_corrected_verdicts_are_adjusted_for_the_number_of_scorers(tmp_path):
    names = ["one", "two", "three"]

    def of(name):
        return scorer(name=name)(lambda sample: sample.metadata["passes"])

    truths = [outcomes(share, 0.9, 0.9, seed)[0] for share, seed in ((0.5, 1), (0.62, 2))]
    a, b = (
        run(
            [Sample(id=f"s{number}", metadata={"passes": passes}) for number, passes in enumerate(truth)],
            [of(name) for name in names],
            store=tmp_path / "runs.sqlite",
        )
        for truth in truths
    )
    labels = [
        label.model_copy(update={"scorer": name})
        for side, truth in zip((a, b), truths, strict=True)
        for label in labels_of(side, truth, range(N))
        for name in names[:2]
    ]
    first, second, third = compare(a, b, labels=labels)
    assert first.correction.p_holm == pytest.approx(3 * min(first.correction.p, third.p))
    assert first.correction.p_holm == second.correction.p_holm
    assert first.p_holm == pytest.approx(3 * first.p)  # by the judge alone
    assert third.p_holm >= 3 * min(first.correction.p, third.p)


def test_gates_on_the_corrected_difference_and_what_raw_ones_say(runs):
    a, b, truth_a, truth_b = runs
    labels = [*drawn_from(a, truth_a, 80), *drawn_from(b, truth_b, 80)]
    gates = [
        *("tone.difference.corrected >= 0.2", "tone.difference.corrected.lower >= -0.5"),
        *("tone.difference.corrected.upper <= 0", "tone.difference.lower > 0", "tone.p < 0.05", "tone.pairs >= 300"),
    ]
    comparison = compare(a, b, labels=labels, gates=gates)
    (one,) = comparison
    results = comparison.gates.gates
    assert [gate.met for gate in results] == [False, True, False, True, True, True]
    counts = f"(PPI++, labels of 80 pairs on A, 80 on B, {one.correction.labels_both} on both)"
    assert all(gate.value_text.endswith(counts) for gate in results[:3])
    raw = f"; raw, by the judge alone; corrected by labels, {one.corrected}"
    assert all(gate.value_text.endswith(raw) for gate in results[3:5])
    assert "raw" not in results[5].value_text


def test_gates_on_a_corrected_difference_that_does_not_exist_are_not_met_and_say_why(runs):
    a, b, truth_a, _ = runs
    gates = ["tone.difference.corrected >= -1"]
    for labels, why in (([], "it has no human labels"), (drawn_from(a, truth_a, 80), "there are no human labels of B")):
        (gate,) = compare(a, b, labels=labels, gates=gates).gates.gates
        assert not gate.met
        assert gate.value_text.startswith(f"tone has no corrected difference: {why}")


def test_all_of_it_is_in_the_text_and_the_json(runs):
    a, b, truth_a, truth_b = runs
    comparison = compare(a, b, labels=[*drawn_from(a, truth_a, 80), *drawn_from(b, truth_b, 80)])
    (one,) = comparison
    found = one.correction
    told = " ".join(str(comparison).split())
    assert f"tone: corrected difference {found.difference:+.3f} ({found.interval.low:+.3f} to" in told
    assert f"A {found.a:.3f}, B {found.b:.3f}, by PPI++ and labels of 80 pairs on A, 80 on B" in told
    (made,) = comparison.as_json()["scorers"]
    assert made["correction"]["difference"] == found.difference
    assert made["correction"]["interval"]["low"] == found.interval.low
    (without,) = compare(a, b).as_json()["scorers"]
    assert without["correction"] is None
