"""What answers and labels come to over a run."""

from collections.abc import Sequence
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from judgekit.aggregates.classification import answer_match, classification
from judgekit.aggregates.total import Total
from judgekit.score import Score
from judgekit.scorers.classification.answers import AnswerMatch
from judgekit.scorers.classification.labels import Classification
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

MEASURES = ("precision", "recall", "f1")
AVERAGES = ("macro", "micro", "weighted")
CLASSES = st.sampled_from(["a", "b", "c", "退款"])
PAIRS = st.lists(st.tuples(CLASSES, CLASSES), min_size=1)
PAIRS_WITH_NO_ANSWER = st.lists(st.tuples(CLASSES, CLASSES | st.just("")), min_size=1)


def answers(measure: str, matched: int = 0, wrong: int = 0, none: int = 0) -> Total:
    scorer = AnswerMatch(measure=measure)
    responses = ["Paris"] * matched + ["Rome"] * wrong + [""] * none
    return answer_match([scorer.score(Sample.of([AIMessage(one)], label="Paris")) for one in responses])


def labels(pairs: Sequence[tuple[str, str]], measure: str = "accuracy", positive: str | None = None) -> Total:
    details = {"measure": measure, "positive": positive}
    return classification(
        [Score.scored("c", float(a == b), details={"true": a, "predicted": b, **details}) for a, b in pairs]
    )


def test_answers_come_to_measures_in_which_to_be_correct_is_positive():
    undefined = "precision is undefined (0/0): no response has an answer"
    for counts, expected, note in [
        ((6, 3, 1), {"accuracy": 6 / 10, "precision": 6 / 9, "recall": 6 / 10, "f1": 12 / 19}, ""),
        ((0, 0, 2), {"accuracy": 0, "precision": None, "recall": 0, "f1": 0}, undefined),
    ]:
        for measure, value in expected.items():
            total = answers(measure, *counts)
            assert (total.name, total.value, total.metrics, total.note) == (measure, value, expected, note)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_measures_of_answers_are_those_of_scikit_learn_for_each_answer_given_or_not(matched, wrong, none):
    # A wrong answer is two things: something said that is not true, and something true that is not said.
    true = [1] * matched + [0, 1] * wrong + [1] * none
    said = [1] * matched + [1, 0] * wrong + [0] * none
    if not true:
        return
    expected = metrics.precision_recall_fscore_support(true, said, average="binary", zero_division=nan)[:3]
    figures = answers("f1", matched, wrong, none).metrics
    for name, value in zip(MEASURES, expected, strict=True):
        assert figures[name] == (None if isnan(value) else pytest.approx(value, abs=1e-12))


@pytest.mark.parametrize("average", AVERAGES)
@given(pairs=PAIRS)
def test_averages_over_classes_are_those_of_scikit_learn(average, pairs):
    true, predicted = zip(*pairs, strict=True)
    expected = metrics.precision_recall_fscore_support(true, predicted, average=average, zero_division=0)[:3]
    for name, value in zip(MEASURES, expected, strict=True):
        total = labels(pairs, f"{name}_{average}")
        assert total.name == f"{name}_{average}"
        assert total.value == total.metrics[total.name] == pytest.approx(value, abs=1e-12)
        assert total.metrics["accuracy"] == pytest.approx(metrics.accuracy_score(true, predicted), abs=1e-12)


@given(PAIRS_WITH_NO_ANSWER)
def test_an_empty_prediction_is_a_false_negative_of_its_class_and_a_false_positive_of_none(pairs):
    true, predicted = zip(*pairs, strict=True)
    classes = sorted({*true, *predicted} - {""})
    expected = metrics.precision_recall_fscore_support(
        true, predicted, labels=classes, average="macro", zero_division=0
    )
    figures = labels(pairs).metrics
    assert [figures[f"{name}_macro"] for name in MEASURES] == pytest.approx(expected[:3], abs=1e-12)
    assert figures["accuracy"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs), abs=1e-12)


@given(PAIRS_WITH_NO_ANSWER, CLASSES)
def test_measures_of_one_class_are_those_of_scikit_learn_with_all_others_as_negative(pairs, positive):
    true, predicted = ([one == positive for one in side] for side in zip(*pairs, strict=True))
    expected = metrics.precision_recall_fscore_support(true, predicted, labels=[True], average=None, zero_division=nan)
    for name, (value,) in zip(MEASURES, expected[:3], strict=True):
        total = labels(pairs, name, positive)
        assert total.value == total.metrics[name] == (None if isnan(value) else pytest.approx(value, abs=1e-12))
        assert f"positive class {positive!r}" in total.note
        assert (f"{name} is undefined (0/0)" in total.note) == isnan(value)


@given(PAIRS_WITH_NO_ANSWER)
def test_the_table_is_the_confusion_matrix_of_scikit_learn(pairs):
    true, predicted = zip(*pairs, strict=True)
    names = [*sorted({*true, *predicted} - {""}), "no answer"]
    expected = metrics.confusion_matrix(true, [one or "no answer" for one in predicted], labels=names)
    table = labels(pairs).table
    assert list(table) == names[:-1]
    assert [[table.get(row, {}).get(column, 0) for column in names] for row in names] == expected.tolist()


def test_a_class_called_no_answer_is_not_mixed_up_with_one():
    total = labels([("no answer", "no answer"), ("no answer", ""), ("(no answer)", "no answer")])
    assert total.table == {"(no answer)": {"no answer": 1}, "no answer": {"no answer": 1, "((no answer))": 1}}


@pytest.mark.parametrize(
    ("pairs", "measure", "positive", "note"),
    [
        ([("a", "a"), ("b", "b")], "f1_macro", None, ""),
        (
            [("a", "b"), ("c", "b")],
            "f1_macro",
            None,
            (
                "precision of a class counts as 0 where it is 0/0: 'a', 'c' are never predicted; "
                "recall of a class counts as 0 where it is 0/0: 'b' is never true"
            ),
        ),
        ([("a", "")], "precision_micro", None, "precision is undefined (0/0): nothing was predicted"),
        ([("a", "b")], "precision", "a", "positive class 'a'; precision is undefined (0/0): 'a' is never predicted"),
        (
            [("a", "b")],
            "f1",
            "A",
            (
                "positive class 'A'; precision is undefined (0/0): 'A' is never predicted; "
                "recall is undefined (0/0): 'A' is never true; f1 is undefined (0/0)"
            ),
        ),
    ],
)
def test_the_note_says_what_is_0_divided_by_0(pairs, measure, positive, note):
    total = labels(pairs, measure, positive)
    assert total.note == note
    assert (total.value is None) == ("undefined" in note)


def test_scores_for_several_measures_come_to_nothing():
    scores = [
        scorer.score(Sample.of([AIMessage("a")], label="a"))
        for scorer in (Classification("f1", positive="a"), Classification("f1_macro"))
    ]
    total = classification(scores)
    assert (total.value, total.note) == (None, "its scores have different measures: f1 of a, f1_macro")
    answered = [AnswerMatch(measure=one).score(Sample.of([AIMessage("a")], label="a")) for one in ("recall", "f1")]
    assert answer_match(answered).note == "its scores have different measures: recall, f1"


def test_a_mark_in_place_of_a_prediction_is_the_label_that_it_is_the_mark_of():
    pairs = [("spam", "x1"), ("ham", "x1")]
    scores = [Score.scored("c", 0.0, details={"true": a, "predicted": b, "measure": "accuracy"}) for a, b in pairs]
    marked = [one.model_copy(update={"details": {**one.details, "mark": f"x{at}"}}) for at, one in enumerate(scores)]
    assert classification(marked).table == {"ham": {"ham": 1}, "spam": {"ham": 1}}


def test_labels_are_told_apart_by_every_character_and_may_be_long():
    pairs = [("a\0", "a"), ("a", "a"), ("b" * 100_000, "c")]
    assert labels(pairs).value == 1 / 3
    assert labels([(str(n), f"response {n}") for n in range(3_000)]).value == 0
