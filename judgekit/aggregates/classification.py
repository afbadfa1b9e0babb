"""Accuracy, precision, recall and F1 of answers and of labels."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from judgekit.aggregates.total import Total
from judgekit.errors import join_limited, short_repr
from judgekit.score import Score

_CLASSES_NAMED = 5
HASHED_PREFIX = "unlisted "
"""The prefix of the mark that replaces a prediction when a run keeps no text. A label's mark is ``details["mark"]``."""


def answer_match(scores: Sequence[Score]) -> Total:
    """Return the total of answers that are ``matched`` (positive), ``wrong`` or ``no_answer``.

    A match is a true positive, a wrong answer a false positive and a false negative, no answer a false negative.
    """
    if isinstance(measure := _requested_measure(scores), Total):
        return measure
    labels = Counter(score.label for score in scores)
    matched, wrong, none = labels["matched"], labels["wrong"], labels["no_answer"]
    figures = {
        "accuracy": matched / len(scores),
        "precision": matched / (matched + wrong) if matched + wrong else None,
        "recall": matched / (matched + wrong + none),
        "f1": 2 * matched / (2 * matched + 2 * wrong + none),
    }
    note = "" if matched + wrong else "precision is undefined (0/0): no response has an answer"
    return Total(figures[measure[0]], measure[0], note, figures)


def classification(scores: Sequence[Score]) -> Total:
    """Return the total of true and predicted labels by scikit-learn, with a confusion matrix without zeros.

    An empty prediction is no answer: a false negative of its class, and a false positive of none. Precision, recall and
    F1 are those of the positive class, or averages (macro if only accuracy is requested). A value that is 0/0 is
    ``None``; within a macro or weighted average, a class whose value is 0/0 counts as 0, which is scikit-learn's
    default. The note names such classes.
    """
    if isinstance(requested := _requested_measure(scores), Total):
        return requested
    measure, positive = requested
    average = measure.partition("_")[2] or "macro"
    pooled = positive is not None or average == "micro"
    true = [str(score.details["true"]) for score in scores]
    own_labels = {score.details.get("mark"): str(score.details["true"]) for score in scores}
    predictions = (str(score.details["predicted"]) for score in scores)
    predicted = [
        own_labels.get(prediction, prediction) for prediction in predictions
    ]  # marks of labels are these labels
    classes = sorted({*true, *predicted} - {""})
    code = {name: number for number, name in enumerate(classes)}
    # Codes, because an array of strings would drop trailing NULs and pad each string to the longest.
    coded = [code[name] for name in true], [code.get(name, -1) for name in predicted]
    metrics: Any = import_module("sklearn.metrics")  # has no types
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        *coded,
        labels=range(len(classes)) if positive is None else [code.get(positive, len(classes))],
        average="micro" if pooled else average,  # over one class, this is the class's own value
        zero_division=math.nan if pooled else 0.0,
    )
    suffix = f"_{average}" if positive is None else ""
    figures: dict[str, float | None] = {"accuracy": float(metrics.accuracy_score(*coded))}
    for name, value in (("precision", precision), ("recall", recall), ("f1", f1)):
        figures[name + suffix] = None if math.isnan(value) else float(value)
    counts = {name: dict[str, int]() for name in classes}
    no_answer = "no answer"
    while no_answer in code:
        no_answer = f"({no_answer})"
    for (row, column), times in sorted(Counter(zip(true, predicted, strict=True)).items()):
        counts[row][column or no_answer] = times
    notes = [*_notes(classes, set(true), set(predicted), positive, average)]
    sessions = {label.partition("-")[0] for label in classes if label.startswith(HASHED_PREFIX)}
    if len(sessions) > 1:  # each session has marks of its own
        notes.append(f"{len(sessions)} sessions without text: one prediction may count as {len(sessions)} classes")
    return Total(figures[measure], measure, "; ".join(notes), figures, counts)


def _requested_measure(scores: Sequence[Score]) -> tuple[str, str | None] | Total:
    """Return the measure that the scores ask for and its positive class, or an undefined total if they disagree."""
    measures = list(dict.fromkeys((str(score.details["measure"]), score.details.get("positive")) for score in scores))
    if len(measures) > 1:
        several = (measure if positive is None else f"{measure} of {positive}" for measure, positive in measures)
        return Total(None, "undefined", f"its scores have different measures: {join_limited(several, separator=', ')}")
    measure, positive = measures[0]
    return measure, None if positive is None else str(positive)


def _notes(
    classes: Sequence[str], true: set[str], predicted: set[str], positive: str | None, average: str
) -> Iterator[str]:
    """Yield notes on what the figures describe, and on which of them are 0/0 or contain a 0/0."""
    if positive is None and average == "micro":
        if predicted == {""}:
            yield "precision is undefined (0/0): nothing was predicted"
        return
    if positive is not None:
        yield f"positive class {short_repr(positive)}"
    becomes = "is undefined (0/0)" if positive is not None else "of a class counts as 0 where it is 0/0"
    for name, missing, there in (("precision", "never predicted", predicted), ("recall", "never true", true)):
        lacking = [short_repr(label) for label in (classes if positive is None else [positive]) if label not in there]
        if lacking:
            yield f"{name} {becomes}: {join_limited(lacking, _CLASSES_NAMED, ', ')} {'is' if len(lacking) == 1 else 'are'} {missing}"
    if positive is not None and positive not in classes:
        yield "f1 is undefined (0/0)"
