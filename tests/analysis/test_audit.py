"""Audits: judges held against human labels."""

import random
from math import inf

import pytest
from sklearn.metrics import cohen_kappa_score

from judgekit.analysis.audit import audit
from judgekit.analysis.correction import corrected_mean
from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.sampling import draw_samples
from judgekit.errors import ConfigError
from judgekit.runs.results import Run
from judgekit.runs.rows import Input
from judgekit.score import JudgeCall, Score
from judgekit.stats.wilson import wilson
from tests.analysis.conftest import TONE, drawn_from, imperfect

pytestmark = pytest.mark.usefixtures("quick")
FAILED = Score.failed("tone", "broken", error="OverloadError")


def tone(found):
    (scorer,) = found.scorers
    return scorer


def test_a_binary_judge_is_held_against_a_random_sample(judged):
    truth, verdicts = imperfect(400)
    run = judged(verdicts)
    labels = drawn_from(run, truth, 100)
    found = tone(audit(run, labels))
    human = [truth[one.number] for one in labels]
    said = [verdicts[one.number] for one in labels]
    assert (found.kind, found.sample_count, found.labels) == ("binary", 100, 100)
    assert (found.annotators, found.selection) == (1, "random")
    assert list(found.agreement) == ["kappa", "agreement", "AC1", "sensitivity", "specificity"]
    kappa = found.agreement["kappa"]
    assert kappa.value == pytest.approx(cohen_kappa_score(human, said))
    assert kappa.low < kappa.value < kappa.high
    pairs = list(zip(human, said, strict=True))
    tp, fn, fp, tn = (pairs.count(pair) for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))
    assert found.counts.model_dump() == {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    assert found.confusion == {"lacking": {"lacking": tn, "fitting": fp}, "fitting": {"lacking": fn, "fitting": tp}}
    sensitivity = found.agreement["sensitivity"]
    assert (sensitivity.value, (sensitivity.low, sensitivity.high)) == (tp / (tp + fn), wilson(tp, tp + fn)[:2])
    assert found.judge_mean.value == sum(verdicts) / 400
    assert found.correction.method == "PPI++"
    assert found.correction.assumptions == found.correction.unavailable_reason == ""
    corrected = found.correction.corrected
    assert corrected.low < sum(truth) / 400 < corrected.high
    assert found.correction.effective_labels > 100
    assert len(found.disagreements) == fn + fp
    assert {one.reason for one in found.disagreements} == {f"as {one.index}" for one in found.disagreements}
    assert {*found.opinions} == {one.number for one in labels}


def test_where_all_samples_are_labeled_the_corrected_mean_is_that_of_the_labels(judged, said):
    found = tone(audit(judged([1.0] * 12), said({index: index % 4 > 0 for index in range(12)})))
    assert (found.selection, found.correction.method, found.correction.corrected.value) == ("all", "labels alone", 0.75)
    assert found.agreement["kappa"].value == 0  # a judge that passes everything
    assert found.judge_mean.value == 1


def test_labels_drawn_by_the_verdict_count_for_all_of_their_verdict(judged):
    truth, verdicts = imperfect(1_000, share=0.9, sensitivity=0.98, specificity=0.7)
    run = judged(verdicts)
    found = tone(audit(run, drawn_from(run, truth, 200, by_verdict=True)))
    assert (found.selection, found.correction.method) == ("stratified", "stratified PPI++")
    assert found.correction.corrected.low < sum(truth) / 1_000 < found.correction.corrected.high
    whole = cohen_kappa_score(truth, verdicts)
    assert found.agreement["kappa"].low < whole < found.agreement["kappa"].high
    table = found.counts
    in_sheet = table.tp / (table.tp + table.fn)
    sensitivity = sum(a == b == 1 for a, b in zip(truth, verdicts, strict=True)) / sum(truth)
    assert abs(found.agreement["sensitivity"].value - sensitivity) < abs(in_sheet - sensitivity)


def test_of_a_frequent_verdict_that_is_never_seen_to_be_wrong_few_errors_are_ruled_out_for_other_runs(judged, tmp_path):
    verdicts = [1.0] * 100 + [0.0] * 900
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    drawn = draw_samples(run, "tone", 60, by_verdict=True)
    passed = [one.id for one in drawn if verdicts[one.number]]
    truth = [one and f"s{index}" not in passed[:3] for index, one in enumerate(verdicts)]
    audit(run, drawn_from(run, truth, 60, by_verdict=True))
    counts = run.audits["tone"].record.counts
    # None of 30 is wrong, so that 1 in 10 of the 900 may be: people may pass 90 that the judge passes, and 90 that it fails.
    assert wilson(counts.tp, counts.tp + counts.fn).low < 0.55
    # 3 of 30 are wrong, so that 26 of the 100 may be: then the judge fails 900 of 926 that people fail.
    assert wilson(counts.tn, counts.tn + counts.fp).low == pytest.approx(900 / 926, abs=0.005)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (lambda index, verdict: not verdict or index % 12 == 0, "verdicts"),
        (lambda index, verdict: index % 5 == 0 and index < 300, "messages"),
        (lambda index, verdict: index < 60, "domains ('air'"),
    ],
)
def test_labels_chosen_by_something_that_shows_are_refused(chosen, said, judged):
    truth, verdicts = imperfect(400)
    run = judged(verdicts, domains=["air"] * 60 + ["retail"] * 340)
    labels = [
        HumanLabel(sample=f"s{index}", scorer="tone", value=truth[index])
        for index in range(400)
        if chosen(index, verdicts[index])
    ]
    found = tone(audit(run, labels, guarantee=0.2))
    assert found.selection == "unknown"
    assert found.correction.corrected is None
    assert found.correction.unavailable_reason.startswith("the labeled samples differ from the others: ")
    assert said in found.correction.unavailable_reason
    assert "judgekit label 1 draws a random sample" in found.correction.unavailable_reason
    blank = tone(audit(run, [*labels, HumanLabel(sample="s1", scorer="tone")]))
    assert blank.correction.unavailable_reason.endswith("judgekit label 1 draws a random sample")
    assert found.guarantee.unavailable_reason == found.correction.unavailable_reason
    assert any("only for the labeled samples, which differ from the others" in note for note in found.notes)


def test_labels_of_which_nobody_says_how_they_were_chosen_are_used_if_nothing_speaks_against_it(judged):
    truth, verdicts = imperfect(400)
    labels = [HumanLabel(sample=f"s{index}", scorer="tone", value=truth[index]) for index in range(3, 400, 4)]
    found = tone(audit(judged(verdicts), labels))
    assert found.correction.method == "stratified PPI++"
    assumed = "samples of each verdict are a random sample of those of the run; the drawing is not recorded"
    assert assumed in found.correction.assumptions
    assert any("which may not be a random sample" in note for note in found.notes)


def test_labels_that_were_chosen_by_the_verdict_by_less_than_shows_do_no_harm(judged, said):
    verdicts = [1.0] * 130 + [0.0] * 70
    truth = {index: float(index % 5 > 0) for index in range(15)} | {
        index: float(index % 5 == 0) for index in range(130, 145)
    }
    found = tone(audit(judged(verdicts), said(truth)))
    assert (found.selection, found.correction.unavailable_reason) == ("unknown", "")
    assert found.correction.corrected.value == pytest.approx(0.65 * 12 / 15 + 0.35 * 3 / 15)


def test_where_a_verdict_has_too_few_labels_these_are_held_for_a_random_sample_of_the_run(judged, said):
    verdicts = [0.0] + [1.0] * 99
    found = tone(audit(judged(verdicts), said({index: index % 5 > 0 for index in range(40, 70)})))
    # the judge says the same of all
    assert (found.correction.method, found.correction.effective_labels) == ("labels alone", None)
    assumed = "the labeled samples are a random sample of those of the run; the drawing is not recorded"
    assert assumed in found.correction.assumptions


def test_five_labels_are_refused(judged, said):
    truth, verdicts = imperfect(100)
    run = judged(verdicts)
    found = tone(audit(run, drawn_from(run, truth, 5)))
    assert (found.sample_count, found.correction.corrected) == (5, None)
    assert "only 5 labeled samples" in found.correction.unavailable_reason
    single = tone(audit(judged([1.0] * 20), said({0: 1}))).correction
    assert single.unavailable_reason == "only 1 labeled sample; at least 10 are needed"
    applying = said({at: truth[at] if at < 9 else "n/a" for at in range(60)}, selection="random")
    few = "only 9 labeled samples to which the question applies; at least 10 are needed"
    assert tone(audit(run, applying)).correction.unavailable_reason == few


def test_trials_of_one_task_count_as_one(judged):
    truth, verdicts = imperfect(50)
    single = tone(audit(run := judged(verdicts * 4), drawn_from(run, truth * 4, 200)[:100]))
    groups = [f"task {index % 50}" for index in range(200)]
    run = judged(verdicts * 4, groups=groups)
    grouped = tone(audit(run, drawn_from(run, truth * 4, 200)[:100]))
    for one, other in (
        (grouped.agreement["kappa"], single.agreement["kappa"]),
        (grouped.agreement["agreement"], single.agreement["agreement"]),
        (grouped.correction.corrected, single.correction.corrected),
    ):
        assert one.high - one.low > 1.1 * (other.high - other.low)
        assert "groups" in one.method


def test_ordinal_values_are_held_together_by_weighted_kappa(judged, said):
    scale = {"bad": 0.0, "fair": 0.5, "good": 1.0}
    verdicts = [0.0, 0.5, 1.0, 1.0] * 5
    human = ["bad", "good", "good", "fair"] * 5
    found = tone(audit(judged(verdicts, scale=scale), said(dict(enumerate(human)))))
    worth = [scale[one] for one in human]
    as_ranks = [[int(2 * one) for one in values] for values in (worth, verdicts)]
    assert found.kind == "ordinal"
    assert next(iter(found.agreement)) == "weighted kappa"
    assert found.agreement["weighted kappa"].value == pytest.approx(cohen_kappa_score(*as_ranks, weights="quadratic"))
    assert found.confusion["fair"] == {"bad": 0, "fair": 0, "good": 5}
    assert found.counts is None


def test_values_of_one_label_and_labels_of_one_value_are_told_apart_in_the_confusion(judged, said):
    told = [(0.25, "partly"), (0.75, "partly"), (1.0, "done"), (1.0, "more than done")] * 5
    verdicts = [Score.scored("tone", value, label=label) for value, label in told]
    found = tone(audit(judged(verdicts, scale={}), said({index: value for index, (value, _) in enumerate(told)})))
    names = ["partly (0.25)", "partly (0.75)", "done or more than done"]
    rows = [{name: n for name, n in row.items() if n} for row in found.confusion.values()]
    assert rows == [{names[0]: 5}, {names[1]: 5}, {names[2]: 10}]
    assert [*found.confusion] == names


def test_continuous_values_are_held_together_by_alpha_and_a_rank_correlation(judged, said):
    verdicts = [index / 20 for index in range(20)]
    human = {index: min(1, verdict + 0.04) for index, verdict in enumerate(verdicts)}
    found = tone(audit(judged(verdicts, scale={}), said(human)))
    assert (found.kind, [*found.agreement]) == ("continuous", ["alpha", "rank correlation"])
    assert found.agreement["rank correlation"].value == pytest.approx(1)
    assert found.agreement["alpha"].value > 0.9
    assert found.confusion == {}


def test_several_people_are_held_against_each_other_too(judged, said):
    truth, verdicts = imperfect(120)
    dice = random.Random(1)  # noqa: S311 - no secret
    labels = []
    for name in ("ann", "bob", "cem"):
        opinions = {index: abs(value - (dice.random() < 0.1)) for index, value in enumerate(truth)}
        labels += said(opinions, annotator=name)
    found = tone(audit(judged(verdicts), labels))
    among = found.human_agreement
    assert (among.samples, found.annotators, found.labels) == (120, 3, 360)
    assert among.agreement["two people"].value == pytest.approx(0.82, abs=0.08)  # 0.9**2 + 0.1**2
    assert among.agreement["judge with one person"].value > 0.75
    assert "a sample that several people labeled counts once, split among their labels" in found.notes


def test_people_who_differ_on_a_rare_verdict_alone_hardly_differ_on_the_run(judged):
    verdicts = [1.0] * 180 + [0.0] * 20
    run = judged(verdicts)
    ann, bob, eve = (drawn_from(run, verdicts, 20, by_verdict=True, annotator=name) for name in ("ann", "bob", "eve"))
    split = [one if one.value else one.model_copy(update={"value": float(at % 2)}) for at, one in enumerate(bob)]
    found = tone(audit(run, [*ann, *split, *eve])).human_agreement
    share = sum(one.value == 1 and not verdicts[one.number] for one in split) / 10
    assert found.agreement["judge with one person"].value == pytest.approx(0.9 + 0.1 * (1 - share / 3))
    assert found.agreement["two people"].value == pytest.approx(0.9 + 0.1 * (1 - share * 2 / 3))


def test_a_sample_on_which_people_differ_is_shared_among_what_they_say(judged, said):
    verdicts = [1.0] * 12 + [0.0] * 8
    labels = said({index: int(index < 10) for index in range(20)}, annotator="ann")
    labels += said({0: 0, 1: 0}, annotator="bob")
    found = tone(audit(judged(verdicts), labels))
    assert (found.sample_count, found.labels, found.unused_labels) == (20, 22, {})
    # Of the 10 that ann passes, bob fails 2, so that people pass 9 and fail 11; the judge passes 2 that ann fails.
    assert found.counts.model_dump() == {"tp": 9, "fp": 3, "fn": 0, "tn": 8}
    assert found.confusion == {"lacking": {"lacking": 8, "fitting": 3}, "fitting": {"lacking": 0, "fitting": 9}}
    assert found.agreement["agreement"].value == pytest.approx(17 / 20)
    assert found.agreement["specificity"].value == pytest.approx(8 / 11)
    human, judge = [1] * 18 + [0] * 22, [1] * 18 + [1] * 6 + [0] * 16
    assert found.agreement["kappa"].value == pytest.approx(cohen_kappa_score(human, judge))
    assert found.correction.corrected.value == pytest.approx(9 / 20)
    assert [(one.index, one.human_value) for one in found.disagreements] == [(10, 0.0), (11, 0.0), (0, 0.5), (1, 0.5)]


def test_two_people_who_split_count_in_the_errors_that_a_later_run_is_corrected_by(judged, said, tmp_path):
    run = judged([1.0, 0.0] * 20, store=tmp_path / "runs.sqlite")
    labels = said({at: (at + 1) % 2 for at in range(40)}, annotator="a")
    audit(run, [*labels, *said(dict.fromkeys(range(4), 0), annotator="b")])
    # Samples 0 and 2, which the judge passes, are passed by one of two.
    assert run.audits["tone"].record.counts.model_dump() == pytest.approx({"tp": 19, "fp": 1, "fn": 0, "tn": 20})


NOT_APPLICABLE = {**TONE, "not_applicable": "skipped"}


def test_labels_that_say_the_question_does_not_apply_count_in_agreement_and_leave_the_mean(judged, said):
    verdicts = [1.0] * 12 + [0.0] * 8
    human = dict(enumerate([1] * 8 + ["not_applicable"] * 4 + [0] * 8))
    found = tone(audit(judged(verdicts, scale=NOT_APPLICABLE), said(human)))
    assert (found.sample_count, found.unused_labels) == (20, {})
    assert found.correction.corrected.value == 0.5  # 8 of 16
    assert found.judge_mean.value == 0.6
    assert found.agreement["agreement"].value == 0.8
    human_verdicts = ["pass"] * 8 + ["none"] * 4 + ["fail"] * 8
    kappa = cohen_kappa_score(human_verdicts, ["pass" if one else "fail" for one in verdicts])
    assert found.agreement["kappa"].value == pytest.approx(kappa)
    assert found.confusion["not_applicable"] == {"lacking": 0, "fitting": 4, "not_applicable": 0}
    note = "according to people, the question does not apply to 4 of the 20 labeled samples that the judge scored"
    assert note in found.notes
    assert "the corrected mean covers the samples to which the question applies according to people" in found.notes
    assert {one.index for one in found.disagreements} == {*range(8, 12)}


def test_the_corrected_mean_of_a_random_sample_leaves_out_what_the_question_does_not_apply_to(judged):
    truth, verdicts = imperfect(2_000, share=0.6, sensitivity=0.9, specificity=0.8)
    truth = ["n/a" if at % 5 == 0 else one for at, one in enumerate(truth)]
    run = judged(verdicts)
    found = tone(audit(run, drawn_from(run, truth, 400)))
    applying = [one for one in truth if one != "n/a"]
    assert found.correction.method == "PPI++"
    assert found.correction.corrected.low < sum(applying) / len(applying) < found.correction.corrected.high
    assert found.correction.corrected.high - found.correction.corrected.low < 0.12


def test_people_who_say_of_all_samples_that_the_question_does_not_apply_leave_no_mean(judged, said):
    found = tone(audit(judged([1.0] * 20), said(dict.fromkeys(range(20), "n/a"))))
    none = "according to people, the question applies to none of the labeled samples"
    assert found.correction.unavailable_reason == none


def test_ordinal_values_are_as_far_from_does_not_apply_as_they_can_be_from_each_other(judged, said):
    scale = {"bad": 0.0, "fair": 0.5, "good": 1.0, "none": "skipped"}
    verdicts, human = [0.0, 0.5, 1.0] * 10, ["bad", "fair", "none"] * 10
    found = tone(audit(judged(verdicts, scale=scale), said(dict(enumerate(human)))))
    # A third is as far off as can be. By chance: of 9 pairs of equal chance, 0 and 0.25 and 1 of the greatest distance.
    by_chance = (0 + 0.25 + 1 + 0.25 + 0 + 0.25 + 1 + 1 + 1) / 9
    assert found.agreement["weighted kappa"].value == pytest.approx(1 - (1 / 3) / by_chance)


def test_where_values_are_continuous_applicability_is_a_figure_of_its_own(judged, said):
    human = {at: "n/a" if at < 5 else at / 20 for at in range(20)}
    found = tone(audit(judged([at / 20 for at in range(20)], scale={}), said(human)))
    assert found.agreement["alpha"].value == pytest.approx(1)
    assert found.agreement["agreement on whether it applies"].value == 0.75
    assert found.correction.corrected.value == pytest.approx(sum(at / 20 for at in range(5, 20)) / 15)


def test_that_people_say_one_thing_only_is_said_of_the_samples_to_which_the_question_applies(judged, said):
    found = tone(audit(judged([1.0, 0.0] * 20), said({at: "n/a" if at < 20 else 0 for at in range(40)})))
    assert any("people give all labeled samples to which the question applies a 0," in note for note in found.notes)
    ordinal = tone(audit(judged([0.5, 1.0] * 20, scale={"fair": 0.5, "good": 1.0}), said(dict.fromkeys(range(40), 1))))
    assert not any("people give" in note for note in ordinal.notes)


CALL = JudgeCall(judge="openai/m-1", prompt="tone@1")


def test_samples_that_the_judge_skipped_can_be_drawn_and_count(judged):
    skipped = Score.skipped("tone", "no question", label="not_applicable", calls=[CALL])
    scores = [1.0] * 150 + [0.0] * 50 + [skipped] * 100 + [Score.skipped("tone", "no reference")] * 50
    run = judged(scores, scale=NOT_APPLICABLE)
    assert {one.number for one in draw_samples(run, "tone", 400)} == {*range(200)}
    drawn = draw_samples(run, "tone", 400, include_skipped=True)
    assert {one.number for one in drawn} == {*range(300)}
    # Half of what the judge skipped should have been judged, and would have failed.
    truth = [1.0] * 150 + [0.0] * 50 + ["n/a", 0.0] * 50
    labels = drawn_from(run, truth, 120, include_skipped=True, seed=3)
    found = tone(audit(run, labels))
    assert (found.selection, found.sample_count, found.unused_labels) == ("random", 120, {})
    assert found.judge_mean.value == 0.75
    assert found.correction.corrected.low < 150 / 250 < found.correction.corrected.high < 0.75
    assert found.confusion["lacking"]["not_applicable"] > 5
    idle = [one for one in found.disagreements if one.judge_value is None]
    assert {(one.label, one.reason, one.human_value) for one in idle} == {("not_applicable", "no question", 0.0)}
    assert "the raw mean covers the samples that the judge scored: 200 of 350." in found.notes
    assert any(
        note.endswith("applies according to people, among the 300 of 350 that the judge scored or skipped")
        for note in found.notes
    )


def test_versions_of_a_scorer_that_were_audited_on_the_same_recordings_are_counted(judged, said, tmp_path):
    truth, verdicts = imperfect(60)
    labels, notes = said(dict(enumerate(truth))), []
    for model in ("m-1", "m-2", "m-3", "m-3"):
        run = judged(verdicts, store=tmp_path / "runs.sqlite", model=model)
        inputs = (Input(path="x.jsonl", sha256="ab", size=1, modified_at=0),)
        run = Run(run.store, run.store.change(run.record.model_copy(update={"inputs": inputs})))
        notes.append([one for one in tone(audit(run, labels)).notes if "audited on these recordings too" in one])
    assert notes[0] == []
    assert notes[1][0].startswith("1 other version of this scorer was audited on these recordings too (run 1)")
    assert notes[2][0].startswith("2 other versions of this scorer were audited on these recordings too (run 1; run 2)")
    assert notes[3] == notes[2]


def test_one_class_only_leaves_kappa_undefined_and_says_so(judged, said):
    found = tone(audit(judged([1.0, 0.0] * 20), said(dict.fromkeys(range(40), 1))))
    assert found.agreement["specificity"].value is None
    assert found.agreement["kappa"].value == 0
    assert any("people give all labeled samples a 1" in note for note in found.notes)


def test_what_could_not_be_used_is_counted_and_named(judged, said):
    run = judged([1.0] * 20 + [FAILED])
    found = audit(run, said({**dict.fromkeys(range(15), 1), 15: None, 20: 1, 77: 1}))
    assert tone(found).unused_labels == {"drawn and left blank": 1, "failed by the judge": 1}
    assert found.unmatched == {"run 1 has no score for 's77'": 1}
    assert any("the judge scored: 20 of 21." in note for note in tone(found).notes)
    none = audit(run, said({77: 1}))
    assert (tone(none).correction.unavailable_reason, tone(none).sample_count) == ("no label can be used", 0)
    assert none.unmatched == found.unmatched


def test_without_labels_nothing_is_corrected(judged):
    found = tone(audit(judged([1.0] * 20)))
    assert (found.agreement, found.judge_mean.value) == ({}, 1)
    reason = "there are no labels: judgekit label 1 draws samples to label, and --labels FILE reads the labels"
    assert found.correction.unavailable_reason == reason


def test_a_judge_that_favors_long_conversations_is_found_out(judged, said):
    verdicts = [float(index % 10 > 3) for index in range(60)]
    found = tone(audit(judged(verdicts, messages=lambda index: 1 + index % 10), said({i: i % 2 for i in range(60)})))
    assert found.bias["length"].low > 0.2


def test_pairwise_flips_and_the_place_that_they_prefer_are_counted(judged, said):
    def pair(first, other):
        verdicts = [{"shown_first": "trace", "preferred": first}, {"shown_first": "baseline", "preferred": other}]
        details = {"flipped": "tie" not in (first, other) and first != other, "verdicts": verdicts}
        return Score.scored("tone", 0.5, label="position_bias", details=details)

    same = Score.scored("tone", 0.5, label="same", details={"flipped": False, "verdicts": []})
    scores = [pair("trace", "baseline")] * 3 + [pair("baseline", "trace"), pair("trace", "trace")]
    scores += [pair("tie", "baseline"), same]
    bias = tone(audit(judged(scores, scale={}), ())).bias
    assert bias["position"].value == pytest.approx(4 / 6)
    assert bias["first place preferred, where it flips"].value == 0.75
    trials = tone(audit(judged([pair("trace", "baseline")] * 8, scale={}, groups=["a"] * 4 + ["b"] * 4), ())).bias
    assert {figure.method for figure in trials.values()} == {"modified Wilson, 2 groups"}


def test_a_guarantee_says_below_which_confidence_the_judge_must_abstain(judged, said):
    sure = [Score.scored("tone", 1.0, label="fitting", confidence=1.0)] * 150
    unsure = [Score.scored("tone", 1.0, label="fitting", confidence=0.6)] * 50
    human = dict.fromkeys(range(150), 1) | {index: index % 2 for index in range(150, 200)}
    found = tone(audit(judged(sure + unsure), said(human), guarantee=0.05))
    assert 0.6 < found.guarantee.threshold <= 1
    assert (found.guarantee.coverage.value, found.guarantee.risk.value) == (0.75, 0)
    assert found.calibration.value == pytest.approx(0.25 * 0.1)
    assert found.calibration.low is None  # which is of draws that are further off than what was drawn from
    assert tone(audit(judged([1.0] * 200), said(human), guarantee=0.05)).guarantee.unavailable_reason.startswith(
        "no labeled verdict has a confidence"
    )


@pytest.mark.parametrize(
    ("scale", "drawn", "confidence", "human", "why"),
    [
        (TONE, "random", None, 1, "no labeled verdict has a confidence"),
        (TONE, "stratified", 0.9, 1, "the samples were drawn by the judge's verdict"),
        ({}, "random", 0.9, 0.3, "continuous values are neither right nor wrong"),
        (TONE, "random", 0.9, 0, "50 most confident labeled verdicts have an error rate of 1"),  # it is always wrong
    ],
)
def test_no_guarantee_is_given_that_labels_cannot_carry(scale, drawn, confidence, human, why, judged, said):
    run = judged([Score.scored("tone", 1.0, confidence=confidence)] * 60, scale=scale)
    found = tone(audit(run, said(dict.fromkeys(range(50), human), selection=drawn), guarantee=0.1)).guarantee
    assert (found.threshold, found.coverage) == (None, None)
    assert why in found.unavailable_reason


def test_a_verdict_of_which_hardly_any_sample_is_labeled_is_named_by_its_label_or_value(judged, said):
    labels = said(dict.fromkeys([*range(20), 60], 1), selection="stratified")
    for scale, name in ((TONE, "'lacking'"), ({}, "0.0")):
        run = judged([1.0] * 50 + [0.0] * 50, scale=scale)
        reason = f"people labeled 1 of the samples with the verdict {name}; each verdict needs at least 2"
        assert tone(audit(run, labels)).correction.unavailable_reason == reason


def test_samples_of_one_task_alone_carry_no_mean(judged, said):
    run = judged([1.0, 0.0] * 50, groups=["the same"] * 20 + [f"task {index}" for index in range(80)])
    found = tone(audit(run, said(dict.fromkeys(range(20), 1), selection="random")))
    assert found.correction.unavailable_reason == "the labeled samples come from too few groups, which count once each"


def test_what_people_cannot_tell_is_no_label(judged, said):
    run = judged([1.0] * 20, scale={**TONE, "unclear": "abstained"})
    found = tone(audit(run, said({**dict.fromkeys(range(19), 1), 19: "unclear"}, selection="random")))
    assert (found.sample_count, found.unused_labels) == (19, {"people cannot tell": 1})
    assert found.correction.assumptions == "samples that people cannot tell about are like the others"


def test_what_cannot_be_audited_says_why(judged):
    unknown = "no scorer of run 1 is called 'tune'. Did you mean 'tone'?"
    for labels, options, reason in (
        ([HumanLabel(sample="s1", scorer="tune", value=1)], {}, unknown),
        ([], {"guarantee": 0}, "guarantee must be between 0 and 1, found 0"),
        ([], {"guarantee": 0.1, "delta": inf}, "delta must be between 0 and 1, found inf"),
    ):
        with pytest.raises(ConfigError) as refused:
            audit(judged([1.0] * 3), labels, **options)
        assert reason in str(refused.value)


def test_an_audit_is_the_same_each_time_and_leaves_an_audit_record(judged, tmp_path):
    truth, verdicts = imperfect(200)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    assert run.audited == {"tone": "not audited"}
    labels = drawn_from(run, truth, 60)
    found = audit(run, labels)
    assert audit(run, labels) == found
    audit_record = run.audits["tone"].record
    assert run.audited == {"tone": f"audited less than a day ago: {audit_record.summary}"}
    assert audit_record.summary.startswith("kappa .")
    assert (audit_record.sample_count, audit_record.selection, audit_record.run) == (60, "random", 1)
    assert audit_record.fingerprint == run.scorers[0].signature
    assert (audit_record.population.samples, audit_record.labeled.samples) == (200, 60)
    assert audit_record.counts == tone(found).counts


def test_the_threshold_may_be_the_confidence_of_a_verdict_that_nobody_labeled(judged, said):
    run = judged([Score.scored("tone", 1.0, confidence=1 - index / 1_000) for index in range(120)])
    labels = said(dict.fromkeys(range(0, 120, 2), 1), selection="random", probability=0.5)
    found = tone(audit(run, labels, guarantee=0.1)).guarantee
    assert (found.threshold, found.coverage.value, found.risk.value) == (1 - 119 / 1_000, 1, 0)


def test_of_each_group_one_sample_counts_for_a_guarantee(judged, said):
    scores, labels = [Score.scored("tone", 1.0, confidence=0.9)] * 60, said(dict.fromkeys(range(60), 1))
    groups = [f"task {index % 10}" for index in range(60)]
    alone, grouped = (judged(scores), judged(scores, groups=groups))
    assert tone(audit(alone, labels, guarantee=0.1)).guarantee.threshold == 0.9
    refused = tone(audit(grouped, labels, guarantee=0.1)).guarantee.unavailable_reason
    assert refused.startswith("10 labeled verdicts are too few")


def test_of_equal_disagreements_that_comes_first_of_which_the_judge_was_surest(judged, said):
    scores = [Score.scored("tone", 1.0, confidence=confidence) for confidence in (0.6, 1.0, 0.8)]
    found = tone(audit(judged(scores), said(dict.fromkeys(range(3), 0))))
    assert [one.index for one in found.disagreements] == [1, 2, 0]


def test_an_audit_record_counts_no_more_than_independent_samples_would_tell(judged, said, tmp_path):
    truth, verdicts = imperfect(40)
    run = judged(verdicts * 4, store=tmp_path / "runs.sqlite", groups=[f"task {index % 40}" for index in range(160)])
    found = tone(audit(run, said(dict(enumerate(truth * 4)))))
    assert sum(found.counts.model_dump().values()) == 160
    assert sum(run.audits["tone"].record.counts.model_dump().values()) == pytest.approx(40, abs=4)  # 4 alike each


def test_samples_that_were_left_blank_for_what_shows_are_missed(judged):
    truth, verdicts = imperfect(400)
    run = judged(verdicts, messages=lambda index: 1 + index % 40)
    drawn = drawn_from(run, truth, 80)
    honest = [one.model_copy(update={"value": None}) if at % 2 else one for at, one in enumerate(drawn)]
    correction = tone(audit(run, honest)).correction
    assert correction.unavailable_reason == ""
    assert correction.assumptions == "samples that were left blank are like the others"
    short = [one.model_copy(update={"value": None}) if one.number % 40 > 20 else one for one in drawn]
    found = tone(audit(run, short, guarantee=0.2))
    assert found.correction.unavailable_reason.startswith("the labeled samples differ from the others: messages")
    assert found.correction.unavailable_reason.endswith("So samples were not left blank at random: label these too")
    assert found.guarantee.unavailable_reason == found.correction.unavailable_reason


def test_where_people_differ_a_verdict_is_wrong_for_a_guarantee_by_the_share_of_them(judged, said):
    run = judged([Score.scored("tone", 1.0, confidence=0.9)] * 60)
    labels = said(dict.fromkeys(range(60), 1), annotator="ann")
    split = tone(audit(run, [*labels, *said({0: 0, 1: 0}, annotator="bob")], guarantee=0.1)).guarantee
    assert split.risk.value == pytest.approx(1 / 60)


def test_labels_of_which_nobody_says_who_gave_them_give_no_audit_record(judged, said, tmp_path):
    truth, verdicts = imperfect(40)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    found = tone(audit(run, said(dict(enumerate(truth)), source="unknown")))
    assert found.correction.corrected is not None
    assert found.correction.assumptions == "no label is the verdict of a judge (their source is unknown)"
    assert any("the source of 40 labels is unknown: a person, a benchmark, or a judge" in note for note in found.notes)
    assert run.audited == {"tone": "not audited"}
    audit(run, said(dict(enumerate(truth)), source="benchmark"))
    assert run.audited["tone"].startswith("audited less than a day ago: kappa")


def test_labels_picked_by_hand_guarantee_nothing_and_their_audit_says_what_they_are(judged, said):
    run = judged([Score.scored("tone", 1.0, confidence=0.9)] * 200)
    found = tone(audit(run, said(dict.fromkeys(range(150), 1), selection="convenience"), guarantee=0.1))
    assert found.guarantee.unavailable_reason == ("the labeled samples were picked by hand (selection is convenience)")
    assert found.correction.unavailable_reason.startswith("the labeled samples were picked by hand (selection is")
    assert any(note.endswith("only for the labeled samples, which were picked by hand") for note in found.notes)
    assert found.sections[0].notes == ("150 labels on 150 samples labeled by people and by the judge; picked by hand",)


def test_an_audit_of_the_judge_as_it_answers_now_replaces_an_audit_record_that_is_void_whatever_its_labels(
    judged, said, tmp_path
):
    truth, verdicts = imperfect(60)

    def answered_by(model):
        call = JudgeCall(judge="openai/m", prompt="tone@1", model=model)
        scores = [Score.scored("tone", one, calls=[call]) for one in verdicts]
        run = judged(scores, store=tmp_path / "runs.sqlite")
        inputs = (Input(path="x.jsonl", sha256="ab", size=1, modified_at=0),)
        return Run(run.store, run.store.change(run.record.model_copy(update={"inputs": inputs})))

    audit(answered_by("m-2025-04"), said(dict(enumerate(truth))))
    later = answered_by("m-2025-07")
    assert "answered as 'm-2025-04' in the audit and as 'm-2025-07' here" in later.audited["tone"]
    with later.store.transaction() as db:  # as a file of runs without the labels of the first one
        db.execute("DELETE FROM labels")
    audit(later, said(dict(enumerate(truth[:40])), selection="random"))
    assert (later.audits["tone"].record.sample_count, later.audits["tone"].void_reason) == (40, "")


def test_a_sample_that_one_person_left_blank_and_another_labeled_is_not_lost(judged):
    truth, verdicts = imperfect(400)
    run = judged(verdicts, messages=lambda index: 1 + index % 40)
    drawn = drawn_from(run, truth, 80, annotator="ann")
    blank = [one.model_copy(update={"annotator": "bob", "value": None}) for one in drawn]
    found = tone(audit(run, [*drawn, *blank]))
    assert found.unused_labels == {"drawn and left blank": 80}
    assert (found.correction.unavailable_reason, found.correction.assumptions) == ("", "")


def test_labels_of_another_run_may_be_of_verdicts_that_this_run_has_none_of(judged, said, tmp_path):
    scores = [Score.scored("tone", value, label=f"{value}") for value in [0.0, 0.25, 0.5, 1.0] * 5]
    path = tmp_path / "runs.sqlite"
    judged(scores, scale={}, store=path)
    later = judged([scores[0], scores[2], scores[3]] * 5, scale={}, store=path)
    found = tone(audit(later, said(dict.fromkeys(range(20), 0.5), run=1)))
    assert (found.kind, found.sample_count) == ("ordinal", 20)
    assert "0.25" in found.confusion


SKIPPED = Score.skipped("tone", "not applicable", calls=[CALL])


@pytest.mark.parametrize("scale", [NOT_APPLICABLE, {}])
def test_labels_only_of_samples_that_the_judge_skipped_are_not_like_the_others(scale, judged, said):
    run = judged([at / 100 if not scale else float(at % 2) for at in range(60)] + [SKIPPED] * 60, scale=scale)
    found = tone(audit(run, said({at: at % 2 for at in range(60, 100)})))
    assert "verdicts ('s" in found.correction.unavailable_reason


def test_sheets_with_and_without_samples_that_the_judge_skipped_are_no_random_sample_together(judged):
    run = judged([1.0] * 100 + [0.0] * 50 + [SKIPPED] * 150, scale=NOT_APPLICABLE)
    sheets = (*drawn_from(run, [1] * 300, 90, include_skipped=True), *drawn_from(run, [1] * 300, 60, seed=1))
    found = tone(audit(run, {label.number: label for label in sheets}.values()))
    assert found.selection == "unknown"
    assert "several sheets were joined, and some may leave out samples that the judge skipped" in found.notes
    assert "verdicts ('skipped'" in found.correction.unavailable_reason


def test_errors_are_of_samples_that_the_judge_scored_even_if_skipped_ones_were_labeled(judged, said, tmp_path):
    truth, verdicts = imperfect(150)
    scores = [*verdicts, *[SKIPPED] * 150]
    path = tmp_path / "runs.sqlite"
    first, later = (
        judged(scores, scale=NOT_APPLICABLE, store=path, messages=lambda at: 3 + at % 3 if at < 150 else 20)
        for _ in range(2)
    )
    audit(first, said({at: truth[at] if at < 150 else "n/a" for at in range(300)}))
    assert first.audits["tone"].record.labeled.samples == 150
    assert later.audited["tone"].startswith("audited less than a day ago on run 1: ")
    assert corrected_mean(later, "tone").method == "Rogan-Gladen"


def test_people_who_differ_on_whether_ordinal_labels_apply_disagree(judged, said):
    scale = {"bad": 0.0, "fair": 0.5, "good": 1.0, "none": "skipped"}
    run = judged([0.0, 0.5] * 10, scale=scale)
    one = said({at: ("bad", "fair")[at % 2] for at in range(20)}, annotator="ann")
    other = said({at: "none" if at < 5 else ("bad", "fair")[at % 2] for at in range(20)}, annotator="bob")
    among = tone(audit(run, [*one, *other])).human_agreement
    assert among.agreement["two people"].value == 0.75
    assert among.agreement["judge with one person"].value == 0.875
    assert among.agreement["alpha"].value == 1


def test_what_a_corrected_mean_assumes_begins_with_who_gave_the_labels(judged, said):
    truth, verdicts = imperfect(200)
    assumes = tone(audit(judged(verdicts), said(dict(enumerate(truth[:60])), source="unknown"))).correction.assumptions
    unknown = (
        "no label is the verdict of a judge (their source is unknown), and the labeled samples of each verdict are"
    )
    assert assumes.startswith(unknown)


@pytest.mark.parametrize(("model", "is_said"), [(None, True), ("m-2025-04", False)])
def test_a_provider_that_reports_no_model_is_named(model, is_said, judged):
    call = JudgeCall(judge="openai/m", prompt="tone@1", model=model)
    found = tone(audit(judged([Score.scored("tone", 1.0, calls=[call])] * 3)))
    told = any("reports no model for answers of openai/m," in note for note in found.notes)
    assert told == is_said


def test_samples_that_were_picked_to_be_read_are_left_out_and_counted(judged):
    truth, verdicts = imperfect(200)
    run = judged(verdicts)
    drawn = drawn_from(run, truth, 60)
    known = {label.number for label in drawn}
    picked = [
        HumanLabel(sample=f"s{number}", scorer="tone", value=1 - truth[number], selection="convenience", role="train")
        for number in range(200)
        if number not in known
    ][:20]
    found, without = audit(run, [*drawn, *picked]), audit(run, drawn)
    assert found.unmatched == {"picked for judgekit align to read, not at random": 20}
    assert found.scorers[0].correction == without.scorers[0].correction
    assert found.scorers[0].sample_count == 60
