"""Queues of samples to label: the sheet of `judgekit label`, whose labels are stored as they are given."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from pydantic import JsonValue, ValidationError

from judgekit.analysis.label_plan import plan_labels
from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.sampling import DrawnSample, draw_samples
from judgekit.analysis.stored_labels import add_labels, stored_labels
from judgekit.errors import ConfigError, validation_message
from judgekit.reports.sheet import LabelSheet
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord

FILE = "judgekit view"
"""Stands for the name of the file of these labels."""
_HALF_WIDTH = 0.05
_DEFAULT_SAMPLES = 60
_MOST_SAMPLES = 500


@dataclass
class Queue:
    """Samples of a run, drawn at random, that people label for one of its scorers.

    Attributes:
        run: The run.
        scorer: The scorer.
        drawn: The samples; all people get the same ones in the same order.
        planned: The number of labels that a corrected mean within 0.05 of people's needs; ``None`` if none is enough, or if
            nothing is known of how well the judge agrees with people.
    """

    run: Run
    scorer: ScorerRecord
    drawn: Sequence[DrawnSample]
    planned: int | None

    @classmethod
    def of(cls, run: Run, scorer: str, n: int | None, seed: int) -> "Queue":
        """Return the queue of a scorer, with as many samples as are planned if no number is given."""
        record = next((record for record in run.scorers if record.name == scorer and record.judged), None)
        if record is None:
            judged = [record.name for record in run.scorers if record.judged]
            raise ConfigError.unknown("scorer of the run that asks a judge", scorer, judged)
        planned, draw_count = None, None
        with suppress(ConfigError):  # nothing is known of how well the judge agrees with people
            plan = plan_labels(run, scorer, half_width=_HALF_WIDTH)
            planned, draw_count = plan.labels, plan.draw_count
        wanted = min(n or draw_count or _DEFAULT_SAMPLES, _MOST_SAMPLES)
        return cls(run, record, draw_samples(run, scorer, wanted, seed=seed), planned)

    def page(self, write_token: str) -> Iterator[str]:
        """Yield the page on which people label."""
        return LabelSheet(self.run, self.scorer, self.drawn).page(write_token)

    def state(self, annotator: str) -> dict[str, JsonValue]:
        """Return the labels that one person gave to these samples, and how many samples people have labeled."""
        labels = [
            label for label in stored_labels(self.run) if label.scorer == self.scorer.name and label.value is not None
        ]
        numbers = {drawn.number for drawn in self.drawn}
        return {
            "run": self.run.number,
            "scorer": self.scorer.name,
            "question": self.scorer.question,
            "samples": [[drawn.number, drawn.id] for drawn in self.drawn],
            "own": {
                str(label.number): {
                    "value": _written(label.value),
                    "reason": label.reason,
                    "message": "" if label.message is None else str(label.message),
                }
                for label in labels
                if label.annotator == annotator and label.number in numbers
            },
            "labeled": len({label.number for label in labels}),
            "planned": self.planned,
        }

    def add(self, given: Mapping[str, JsonValue]) -> None:
        """Store a label. It is in the file when this returns."""
        drawn = next((drawn for drawn in self.drawn if drawn.number == given.get("number")), None)
        if drawn is None:
            raise ConfigError("the sample is not one of those that were drawn")
        annotator = given.get("annotator")
        if not isinstance(annotator, str) or not annotator.strip():
            raise ConfigError("a label needs the name of who gives it")
        try:
            label = HumanLabel.model_validate(
                {
                    "sample": drawn.id,
                    "scorer": self.scorer.name,
                    "value": given.get("value"),
                    "message": given.get("message") or None,
                    "annotator": annotator.strip(),
                    "reason": given.get("reason") or "",
                    "run": self.run.number,
                    "number": drawn.number,
                    "recordings": self.run.recordings,
                    "selection": drawn.selection,
                    "probability": drawn.probability,
                    "file": FILE,
                }
            )
        except ValidationError as error:
            raise ConfigError(validation_message(error)) from error
        if label.value is None:
            raise ConfigError("a label needs a value; one that was given can be changed, and not withdrawn")
        if add_labels(self.run, [label]).get("not stored"):
            raise ConfigError(f"the label is not stored: {annotator!r} is the name of a judge or a model")


class Queues:
    """The queues of a file of runs, of which the last one is kept, as drawing its samples reads all scores."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._last: tuple[object, Queue] | None = None

    @contextmanager
    def use(self, run: int, scorer: str, n: int | None, seed: int) -> Iterator[Queue]:
        """Yield a queue, for one thread at a time."""
        with self._lock:
            stored = Run.stored(run, self._path)
            key = (stored.record, stored.store.counts(run), scorer, n, seed)
            if self._last is None or self._last[0] != key or not self._last[1].run.store.is_current:
                self._last = key, Queue.of(stored, scorer, n, seed)
            yield self._last[1]


def _written(value: bool | float | str | None) -> str:  # noqa: FBT001 - a label
    """Return a label as the page writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
