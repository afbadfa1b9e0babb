"""The agreement of a failure analysis with people on where failures began, and on what went wrong."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from pydantic import JsonValue

from judgekit.analysis.findings import Opinion
from judgekit.analysis.matching import LabeledSample
from judgekit.errors import count_text, join_limited, short_repr
from judgekit.runs.intervals import Estimate
from judgekit.runs.rows import ScorerRecord
from judgekit.traces.sample import Sample
from judgekit.traces.tree import MessageNumber, find_message

_FAILED = 0.5
Label = TypeVar("Label")


def step_agreement(
    record: ScorerRecord, samples: Sequence[LabeledSample], conversations: Mapping[int, Sample]
) -> tuple[Mapping[str, Estimate], Sequence[str]]:
    """Return how often a judge finds the messages that people marked, by name, and notes on the samples.

    Marks of messages that a stored conversation does not have are left out, which a note says. The constant is the message
    that people mark most often: naming it everywhere reaches the most that a constant can, since it is chosen with the labels
    at hand. Without marks on samples that were analyzed, there are no figures.
    """
    marked: list[tuple[LabeledSample, Sequence[MessageNumber]]] = []
    absent: list[str] = []
    for sample in samples:
        conversation = conversations.get(sample.row.index)
        marks = _marked(sample) if "roots" in sample.row.score.details else ()
        there = [mark for mark in marks if conversation is None or find_message(conversation.trace, mark) is not None]
        absent += [f"message {mark} of {short_repr(sample.row.sample_id)}" for mark in marks if mark not in there]
        if there:
            marked.append((sample, there))
    notes = [f"marked messages that do not exist, which are left out: {join_limited(absent, 3)}"] if absent else []
    if not marked:
        return {}, notes
    constant = Counter(message for _, those in marked for message in those).most_common(1)[0][0]
    sound = [sample for sample in samples if (sample.mean or 0) >= _FAILED and sample.judge_value is not None]
    given = [(sample, [each.label for each in _failed(sample) if each.label in record.scale]) for sample in samples]
    labeled = [(sample, labels) for sample, labels in given if labels]
    groups = record.label_groups

    def share(
        pairs: Sequence[tuple[LabeledSample, Sequence[Label]]], hit: Callable[[LabeledSample, Label], bool]
    ) -> Estimate:
        shares = [fmean(float(hit(sample, label)) for label in those) for sample, those in pairs]
        return Estimate.mean(shares, [sample.row.unit for sample, _ in pairs])

    agreement = {
        "exact step": share(marked, lambda sample, message: _first(sample) == message),
        "within one step": share(marked, lambda sample, message: _is_near(_first(sample), message)),
        "a root among the marked steps": share(marked, lambda sample, message: message in _numbers(sample, "roots")),
        "a candidate among them": share(marked, lambda sample, message: message in _numbers(sample, "candidates")),
        "exact step, by a constant": share(marked, lambda _, message: message == constant),
        "false alarms on sound samples": share(
            [(sample, ("",)) for sample in sound], lambda sample, _: (sample.judge_value or 0) < _FAILED
        ),
        "same label": share(labeled, lambda sample, label: sample.row.score.label == label),
        "same group of labels": share(
            labeled if groups else (),
            lambda sample, label: groups.get(sample.row.score.label or "") == groups.get(label, label),
        ),
    }
    note = (
        f"{count_text(len(marked), 'failed sample')} with a marked message, {len(labeled):,} with a label, {len(sound):,} sound; a "
        f"constant always names message {constant}"
    )
    return {name: figure for name, figure in agreement.items() if figure.value is not None}, [*notes, note]


def _failed(sample: LabeledSample) -> Sequence[Opinion]:
    return [opinion for opinion in sample.opinions if opinion.value is not None and opinion.value < _FAILED]


def _marked(sample: LabeledSample) -> Sequence[MessageNumber]:
    return [opinion.message for opinion in _failed(sample) if opinion.message is not None]


def _numbers(sample: LabeledSample, part: str) -> Sequence[JsonValue]:
    entries = sample.row.score.details.get(part)
    return [entry.get("message") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _first(sample: LabeledSample) -> JsonValue:
    return next(iter(_numbers(sample, "roots")), None)


def _is_near(first: JsonValue, marked: MessageNumber) -> bool:
    """Return whether two messages are the same, or next to each other in one conversation."""
    if first == marked:
        return True
    (*above, last), (*above_marked, last_marked) = (str(number).split(".") for number in (first, marked))
    return above == above_marked and last.isdecimal() and abs(int(last) - int(last_marked)) == 1
