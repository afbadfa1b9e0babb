"""Labels in the score files of other systems, which name traces, spans and people instead of samples and scorers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from judgekit.errors import ConfigError, TraceError, count_text, join_limited, short_repr
from judgekit.formats.score_records import ScoreRecord
from judgekit.formats.spans import outermost_ids
from judgekit.runs.results import Run
from judgekit.traces.recording import Label


class ExportedLabel(NamedTuple):
    """A score that is an answer to a scorer's question about a sample, and its line in the file."""

    line: int | None
    sample: str
    scorer: str
    label: Label


@dataclass(frozen=True)
class ExportedLabels:
    """The selection of scores that are human labels on samples of a run.

    A score is about a whole sample if it belongs to the sample's trace or to its outermost span. Scores of people count
    if they have the name of a scorer, or one that is assigned to a scorer. Scores whose origin is unknown or code count
    only if they are assigned, and those of judges never.

    Attributes:
        names: By the name of a score, the scorer whose question it answers.
        run: The run, which knows its scorers and the spans of its samples. Without a run, every name counts as a
            scorer's, and scores of spans are left out.
        left_out: The number of scores that are left out, by reason.
    """

    names: Mapping[str, str]
    run: Run | None = None
    left_out: Counter[str] = field(default_factory=Counter[str])

    def select(self, scores: Iterable[tuple[int | None, ScoreRecord]]) -> list[ExportedLabel]:
        """Return the labels, and count what is left out.

        Raises:
            ConfigError: All scores of an assigned name are verdicts of judges.
            TraceError: None of the scores is a label.
        """
        scores = list(scores)
        self._must_not_be_judged(scores)
        labels = [label for line, score in scores if (label := self._label(line, score)) is not None]
        if not labels:
            why = join_limited(self.notices(), separator=", ") or "no scores"
            raise TraceError(f"contains no label that this run can use: {why}")
        return labels

    def notices(self) -> Sequence[str]:
        """Return what was left out, and why."""
        return [f"{count_text(count, 'score')} {why}" for why, count in self.left_out.items()]

    def _label(self, line: int | None, score: ScoreRecord) -> ExportedLabel | None:
        label, sample = score.label, self._sample(score)
        if label is None:
            why = "without a value, or with a correction in its place"
        elif label.source == "judge":
            why = "of judges"
        elif label.source != "human" and label.name not in self.names:
            why = f"not known to be of people (named {short_repr(label.name)}): --label {label.name}=SCORER uses them"
        elif (scorer := self._scorer(label.name)) is None:
            why = f"named {short_repr(label.name)}, like no scorer of the run: --label {label.name}=SCORER uses them"
        elif sample is None:
            why = "of sessions, experiments or single steps, not of whole conversations"
        else:
            return ExportedLabel(line, sample, scorer, label)
        self.left_out[why] += 1
        return None

    def _scorer(self, name: str) -> str | None:
        if name in self.names or self.run is None:
            return self.names.get(name, name)
        is_scorer = name in {scorer.name for scorer in self.run.scorers} and name not in self.names.values()
        return name if is_scorer else None

    def _sample(self, score: ScoreRecord) -> str | None:
        """Return the sample of a score; a trace that is in no sample counts as one, so that it is reported as unknown."""
        if score.span is not None:
            return self._samples_by_span[1].get(score.span)
        if score.trace is None or score.trace in self._ids:
            return score.trace
        return self._samples_by_span[0].get(score.trace, score.trace)

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(row.sample_id for row in self.run or ())

    @cached_property
    def _samples_by_span(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The sample of each trace, and of each outermost span. A sample of several traces is that of none of them."""
        by_trace: dict[str, str] = {}
        by_span: dict[str, str] = {}
        for _, sample in self.run.conversations() if self.run is not None else ():
            traces, spans = outermost_ids(sample.trace.extra.get("spans"))
            if len(traces) == 1:
                by_trace |= dict.fromkeys(traces, sample.id)
                by_span |= dict.fromkeys(spans, sample.id)
        return by_trace, by_span

    def _must_not_be_judged(self, scores: Iterable[tuple[int | None, ScoreRecord]]) -> None:
        sources: dict[str, set[str]] = {}
        for _, score in scores:
            if score.label is not None:
                sources.setdefault(score.label.name, set()).add(score.label.source)
        for name, scorer in self.names.items():
            if sources.get(name) == {"judge"}:
                raise ConfigError(
                    f"the score {short_repr(name)} is the verdict of a judge, and cannot show whether {scorer} is right; "
                    "name scores of people or of a benchmark"
                )
