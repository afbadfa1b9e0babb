"""A sheet on which people label samples: an offline page, or a table for a spreadsheet.

Neither shows the judge's verdicts, other people's labels, or anything that reveals them.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from judgekit.analysis.labels import DISPLAY_COLUMNS, LABEL_COLUMNS
from judgekit.analysis.sampling import DrawnSample
from judgekit.errors import ConfigError
from judgekit.reports.csv_export import csv_table
from judgekit.reports.detail import sample_detail
from judgekit.reports.document import render_page, script_json
from judgekit.runs.columns import CellValue
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.traces.rendering import compact_json
from judgekit.traces.sample import Sample
from judgekit.traces.sample_path import ValuePath, sample_value, value_text
from judgekit.traces.trace import Trace
from judgekit.traces.turns import Turn, find_turns, sample_until

SCRIPTS = ("dom", "markdown", "conversation", "label")
SERVED_SCRIPTS = ("dom", "markdown", "conversation", "served", "queue", "label")
_STYLES = ("report", "label")
_CONVERSATION = ("messages", "baseline", "unlinked")
NONE_VISIBLE = "none_visible"
"""The label without a failure; a scale that has it is about failures, whose messages people can mark."""
_LONGEST_CELL = 32_000  # characters; spreadsheets cut cells off at 32,767
_YES_OR_NO = {0.0, 1.0}
_OF_PAIRS = {0.0, 0.5, 1.0}
_PAIR = {"better": "the first is better", "tie": "a tie", "worse": "the second is better"}
"""The labels of `Pairwise`, in words for people who see both answers."""
_MARK = "\ufeff"  # byte order mark, by which spreadsheets recognize UTF-8

Choice = tuple[str, str]
"""A choice as people see it, and the label that is written for it."""


@dataclass(frozen=True)
class LabelSheet:
    """Samples of a run to be labeled for one of its scorers.

    With ``includes_skipped``, some of them may be samples to which the question does not apply according to the judge,
    and people can say so too.

    Raises:
        ConfigError: The run stores no conversations.
    """

    run: Run
    scorer: ScorerRecord
    drawn_samples: Sequence[DrawnSample]
    includes_skipped: bool = False

    def __post_init__(self) -> None:
        if not self.run.record.keeps_text:
            raise ConfigError(
                f"run {self.run.number} stores no conversations (store_text = false), so there is nothing to read: "
                "label from your own copy, in a file with the columns sample, scorer, value"
            )

    @cached_property
    def samples(self) -> Mapping[int, Sample]:
        """The samples that were stored, by number, with what the scorer looks at."""
        wanted = {drawn.number for drawn in self.drawn_samples}
        samples = dict(self.run.conversations(wanted.__contains__))
        if self.scorer.scope == "own":
            return {number: sample.without_sub_agents() for number, sample in samples.items()}
        return samples

    @cached_property
    def parts(self) -> Sequence[tuple[DrawnSample, Turn | None]]:
        """The samples, or if the scorer judges each turn, their turns, in the order in which people label them."""
        turns = {number: find_turns(sample.trace) for number, sample in self.samples.items() if self.scorer.per_turn}
        return [(drawn, turn) for drawn in self.drawn_samples for turn in turns.get(drawn.number, (None,))]

    @cached_property
    def choices(self) -> Sequence[Choice]:
        """The labels to choose from; empty if any number in [0, 1] may be given."""
        choices = self._graded
        if choices and self.includes_skipped and "skipped" not in self.scorer.scale.values():
            return [*choices, ("does not apply", "n/a")]
        return choices

    @property
    def _graded(self) -> Sequence[Choice]:
        if self.scorer.scale:
            names: Mapping[str, str] = _PAIR if self.scorer.scale.keys() == _PAIR.keys() else {}
            return [(names.get(name, name), name) for name in self.scorer.scale]
        values = {row.score.value for row in self.run.rows(scorer=self.scorer.name, statuses=["scored"])}
        if values <= _OF_PAIRS and any(sample.baseline for sample in self.samples.values()):
            return [(_PAIR["better"], "1"), (_PAIR["tie"], "0.5"), (_PAIR["worse"], "0")]
        return [("yes", "yes"), ("no", "no")] if self.scorer.per_turn or values <= _YES_OR_NO else []

    @property
    def question(self) -> str:
        """The question in a sentence."""
        return self.scorer.question or f"How would you score {self.scorer.name} here?"

    def page(self, write_token: str = "") -> Iterator[str]:
        """Yield the sheet as one static page, which works offline; with a token, it sends each label to its server."""
        contents = [script_json(self._content(drawn.number)) for drawn in self.drawn_samples]
        about: dict[str, JsonValue] = {
            "run": self.run.number,
            "recordings": self.run.recordings,
            "scorer": self.scorer.name,
            "columns": list(LABEL_COLUMNS),
            "question": self.question,
            "instructions": self.scorer.instructions,
            "choices": [list(drawn) for drawn in self.choices],
            "marks": NONE_VISIBLE if NONE_VISIBLE in self.scorer.scale else None,
            "samples": [[*drawn, self.drawn_samples.index(drawn), turn and list(turn)] for drawn, turn in self.parts],
            "served": bool(write_token),
        }
        # The key tells the labels that a browser stores from those of another sheet.
        about["key"] = hashlib.sha256("".join((script_json(about), *contents)).encode()).hexdigest()
        return render_page(
            "label.html.j2",
            _STYLES,
            SERVED_SCRIPTS if write_token else SCRIPTS,
            served=write_token,
            title=f"Label run {self.run.number}: {self.scorer.name}",
            version=self.run.record.version,
            head=script_json(about),
            marks=about["marks"],
            samples=contents,
        )

    def _content(self, number: int) -> JsonValue:
        sample = self.samples.get(number)
        details = sample_detail((), (), sample, {})
        inputs: JsonValue = [[name, text] for name, text in self._known(sample)] if sample else []
        return {**{name: details[name] for name in _CONVERSATION}, "known": inputs}

    def _known(self, sample: Sample) -> Iterator[tuple[str, str]]:
        """Yield what the judge was given apart from the conversation, such as the reference, by name."""
        for name in dict.fromkeys(("reference", *self.scorer.inputs)):
            if name.startswith("fields.") and (text := value_text(sample_value(sample, ValuePath.parse(name)))):
                yield name, text
            elif name in _KNOWN and (text := _KNOWN[name](sample)):
                yield name.replace("_", " "), text

    def table(self) -> Iterator[str]:
        """Return the sheet as lines of CSV with a column for the labels, for people who prefer a spreadsheet."""
        question = self.question
        if self.scorer.instructions:
            question = f"{question}\n\n{self.scorer.instructions}"
        choices = "; ".join(choice if choice == text else f"{choice}: {text}" for text, choice in self.choices)

        def rows() -> Iterator[Sequence[CellValue]]:
            names = (*LABEL_COLUMNS[:2], *DISPLAY_COLUMNS, *LABEL_COLUMNS[2:])
            yield names
            for drawn, turn in self.parts:
                sample = self.samples.get(drawn.number)
                sample = sample if sample is None or turn is None else sample_until(sample, turn.last)
                row: dict[str, CellValue] = {
                    "sample": drawn.id,
                    "scorer": self.scorer.name,
                    "run": self.run.number,
                    "number": drawn.number,
                    "message": turn and turn.first,
                    "recordings": self.run.recordings,
                    "selection": drawn.selection,
                    "probability": drawn.probability,
                    "role": drawn.role,
                    "question": question,
                    "choices": choices or "a number from 0 (worst) to 1 (best), or n/a: does not apply",
                    "conversation": _rendered(sample.trace)
                    if sample
                    else "the conversation is not stored, or is damaged",
                    "baseline": _rendered(sample.baseline) if sample and sample.baseline else None,
                    "reference": "\n\n".join(f"{name}: {text}" for name, text in self._known(sample)) if sample else "",
                }
                yield [_cut(row.get(name)) for name in names]

        return (f"{'' if index else _MARK}{line}" for index, line in enumerate(csv_table(rows())))


def _rendered(trace: Trace) -> str:
    try:
        return trace.render(budget_tokens=_LONGEST_CELL // 4)
    except ValueError:  # too many messages for even their headers to fit
        return trace.render()


def _cut(cell: CellValue) -> CellValue:
    """Return the cell, shortened to what a spreadsheet holds, with a note of how much was cut."""
    if not isinstance(cell, str) or len(cell) <= _LONGEST_CELL:
        return cell
    return f"{cell[:_LONGEST_CELL]} [... {len(cell) - _LONGEST_CELL:,} characters omitted ...]"


def _lines(texts: Sequence[str] | None) -> str:
    return "\n".join(filter(None, texts or ()))


_KNOWN: Mapping[str, Callable[[Sample], str]] = {
    "reference": lambda sample: _lines(sample.all_references),
    "reference_topics": lambda sample: _lines(sample.reference_topics),
    "documents": lambda sample: "\n\n".join(filter(None, sample.documents or ())),
    "fields": lambda sample: compact_json(sample.fields) if sample.fields else "",
    "tools": lambda sample: _lines([f"{one.name}: {one.description or ''}" for one in sample.trace.tools]),
}
