"""Labels and the samples that they are of."""

import pytest

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.matching import labels_by_run, match_labels
from judgekit.errors import ConfigError
from judgekit.runs.rows import Input
from judgekit.score import Score

FAILED = Score.failed("tone", "broken", error="OverloadError")
SKIPPED = Score.skipped("tone", "no words")


def matched(run, labels):
    return match_labels(run, run.scorers[0], list(run.rows(scorer="tone")), labels)


def with_inputs(run, sha256):
    inputs = (Input(path="x.jsonl", sha256=sha256, size=1, modified_at=0),)
    return type(run)(run.store, run.store.change(run.record.model_copy(update={"inputs": inputs})))


def test_what_several_people_say_of_a_sample_has_a_mean_over_those_to_whom_the_question_applies(judged, said):
    run = judged([1.0] * 4)
    labels = [
        one
        for name, values in {"ann": (1, 0, 1, "n/a"), "bob": (1, 1, 0, "n/a"), "cem": (1, "n/a", None, "n/a")}.items()
        for one in said(dict(enumerate(values)), annotator=name)
    ]
    found = matched(run, labels)
    shares = [(len(one.opinions), one.applicable_share, one.mean) for one in found.samples]
    assert shares == [(3, 1, 1), (3, 2 / 3, 0.5), (2, 1, 0.5), (3, 0, None)]
    assert found.unused_labels == {"drawn and left blank": 1}


def test_each_label_that_is_of_no_use_is_counted_with_the_reason(judged, said):
    run = judged([1.0, FAILED, SKIPPED, 0.0, 1.0], ids=["s0", "s1", "s2", "twice", "twice"])
    labels = said({0: "fitting", 1: "fitting", 2: "lacking", 8: 1, 9: 0})
    labels.append(HumanLabel(sample="twice", scorer="tone", value=1))
    found = matched(run, labels)
    assert [one.row.index for one in found.samples] == [0]
    assert found.unused_labels == {"failed by the judge": 1, "skipped by the scorer, which did not ask the judge": 1}
    assert found.unmatched == {"run 1 has no score for 's8', 's9'": 2, "several samples have this id: 'twice'": 1}


def test_the_number_of_a_sample_tells_those_of_one_id_apart_and_must_be_of_that_id(judged):
    run = judged([0.0, 1.0], ids=["twice", "twice"])
    labels = [HumanLabel(sample="twice", scorer="tone", value=1, run=1, number=1)]
    labels += [HumanLabel(sample="other", scorer="tone", value=1, run=1, number=0)]
    found = matched(run, labels)
    assert [(one.row.index, one.mean) for one in found.samples] == [(1, 1.0)]
    assert found.unmatched == {
        "the sample with this number in run 1 has another id (spreadsheets change ids: restore them): "
        "'other' is 'twice' there": 1
    }


def test_one_person_who_says_two_things_of_a_sample_is_refused(judged, said):
    with pytest.raises(ConfigError, match="'ann' gives sample 's1' two labels for tone: 'lacking' and 'fitting'"):
        matched(judged([1.0, 1.0]), [*said({1: "lacking"}, annotator="ann"), *said({1: "fitting"}, annotator="ann")])


def test_how_samples_were_drawn_is_believed_where_it_can_be(judged, said):
    cases = [
        (10, {}, "all"),
        (9, {}, "unknown"),
        (4, {}, "unknown"),
        (4, {"selection": "random"}, "random"),
        (4, {"selection": "random", "probability": 0.4}, "random"),
        (4, {"selection": "random", "probability": 0.8}, "unknown"),  # of 10 samples 8 would have been drawn
        (7, {"selection": "random", "probability": 0.4}, "random"),  # two sheets
        (4, {"selection": "stratified"}, "stratified"),
    ]
    for labeled, fields, drawn in cases:
        run = judged([1.0, 0.0] * 5)
        assert matched(run, said(dict.fromkeys(range(labeled), 1), **fields)).selection == drawn


def test_samples_drawn_by_their_verdict_stand_for_all_of_that_verdict(judged, said):
    run = judged([1.0] * 8 + [0.0] * 2)
    found = matched(run, said(dict.fromkeys([0, 1, 8, 9], 1), selection="stratified"))
    assert [(one.judge_value, one.weight) for one in found.samples] == [(1.0, 4), (1.0, 4), (0.0, 1), (0.0, 1)]


def test_labels_of_another_run_are_of_use_where_it_asked_the_very_same_judge(judged, said, tmp_path):
    path = tmp_path / "runs.sqlite"
    same, other, run = (judged([1.0] * 4, store=path, model=model) for model in ("m-1", "m-2", "m-1"))
    labels = [one for number in (1, 2, 9) for one in said({0: 1}, run=number)]
    found, left_out = labels_by_run(run, run.scorers[0], labels)
    assert {home.number: len(those) for home, those in found.items()} == {run.number: 0, same.number: 1}
    assert left_out == {
        f"run {other.number} has another judge: judge.model was 'm-2' and is 'm-1'": 1,
        "run 9 is not kept": 1,
    }


def test_labels_say_which_recordings_they_are_of_whatever_the_number_of_the_run(judged, said, tmp_path):
    run, other = (with_inputs(judged([1.0] * 4, store=tmp_path / f"{sha}.sqlite"), sha) for sha in ("ab", "cd"))
    found, left_out = labels_by_run(run, run.scorers[0], said({0: 1}, run=1, recordings=other.recordings))
    assert (list(found.values()), left_out) == ([[]], {"they belong to another run 1, on other recordings": 1})
    for number in (1, 9):
        found, left_out = labels_by_run(run, run.scorers[0], said({0: 1}, run=number, recordings=run.recordings))
        assert ([len(those) for those in found.values()], left_out) == ([1], {})


def test_labels_of_the_same_recordings_hold_for_another_judge(judged, said, tmp_path):
    path = tmp_path / "runs.sqlite"
    before, run = (with_inputs(judged([1.0] * 4, store=path, model=model), "ab") for model in ("m-1", "m-2"))
    found, left_out = labels_by_run(
        run, run.scorers[0], said({0: 1, 1: 0}, run=before.number, number=None, selection="stratified")
    )
    assert [(home.number, [one.selection for one in those]) for home, those in found.items()] == [(2, [None, None])]
    assert not left_out
