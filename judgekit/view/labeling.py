"""LabelQueues of samples to label: the sheet of ``judgekit label``, whose labels are stored as they are given."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from pydantic import JsonValue, ValidationError

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.sampling import draw_samples
from judgekit.analysis.stored_labels import add_labels, stored_labels
from judgekit.errors import ConfigError, check_choice, validation_message
from judgekit.reports.sheet import LabelSheet
from judgekit.runs.results import Run

_FILE = "judgekit view"  # stands for the name of the file of these labels
_HALF_WIDTH = 0.05
_DEFAULT_SAMPLES = 60
_MOST_SAMPLES = 500


@dataclass(frozen=True)
class LabelQueue:
    """Samples that people label, drawn at random: all people get the same ones in the same order.

    ``planned`` is the number of labels that a corrected mean within 0.05 of people's needs; ``None`` if none is enough, or
    if nothing is known of how well the judge agrees with people.
    """

    sheet: LabelSheet
    planned: int | None

    @classmethod
    def of(cls, run: Run, scorer: str, n: int | None, seed: int) -> "LabelQueue":
        """Return the queue of a scorer, with as many samples as are planned if no number is given."""
        from judgekit.analysis.label_plan import plan_labels  # noqa: PLC0415 - loads numpy

        judged = {record.name: record for record in run.scorers if record.judged}
        check_choice("scorer of the run that asks a judge", scorer, [*judged])
        planned, draw_count = None, None
        with suppress(ConfigError):  # it does not know how well the judge agrees with people
            plan = plan_labels(run, scorer, half_width=_HALF_WIDTH)
            planned, draw_count = plan.labels, plan.draw_count
        drawn = draw_samples(run, scorer, min(n or draw_count or _DEFAULT_SAMPLES, _MOST_SAMPLES), seed=seed)
        return cls(LabelSheet(run, judged[scorer], drawn), planned)

    def state(self, annotator: str) -> dict[str, JsonValue]:
        """Return the labels that one person gave to these samples, and how many samples people have labeled."""
        scorer, labels = self.sheet.scorer.name, stored_labels(self.sheet.run)
        key = "{0.number}:{0.message}" if self.sheet.scorer.per_turn else "{0.number}"
        numbers = {drawn.number for drawn in self.sheet.drawn_samples}
        given = [label for label in labels if label.scorer == scorer and label.value is not None]
        own = [label for label in given if label.annotator == annotator and label.number in numbers]
        return {
            "question": self.sheet.question,
            "samples": [[drawn.number, drawn.id] for drawn in self.sheet.drawn_samples],
            "own": {key.format(label): _written(label) for label in own},
            "labeled": len({label.number for label in given}),
            "planned": self.planned,
        }

    def add(self, sent: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Store a label, and return the state: the label is in the file when this returns."""
        run, annotator = self.sheet.run, str(sent.get("annotator") or "").strip()
        drawn = next((drawn for drawn in self.sheet.drawn_samples if drawn.number == sent.get("number")), None)
        if drawn is None or not annotator or sent.get("value") in (None, ""):
            raise ConfigError("a label needs a sample that was drawn, a value, and the name of who gives it")
        about = {"scorer": self.sheet.scorer.name, "run": run.number, "recordings": run.recordings, "file": _FILE}
        given = {"value": sent["value"], "message": sent.get("message") or None, "reason": sent.get("reason") or ""}
        of_sample = {"sample" if name == "id" else name: part for name, part in drawn._asdict().items()}
        try:
            label = HumanLabel.model_validate({**of_sample, **about, **given, "annotator": annotator})
        except ValidationError as error:
            raise ConfigError(validation_message(error)) from error
        if add_labels(run, [label]).get("not stored"):
            raise ConfigError(f"the label is not stored: {annotator!r} is the name of a judge or a model")
        return self.state(annotator)


class LabelQueues:
    """The queues of a file of runs, of which the last one is kept, as drawing its samples reads all scores."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._last: tuple[Sequence[object], LabelQueue] | None = None

    @contextmanager
    def use(self, run: int, scorer: str, n: int | None, seed: int) -> Generator[LabelQueue]:
        """Yield a queue, for one thread at a time."""
        with self._lock:
            stored = Run.stored(run, self._path)
            key = (stored.record, stored.store.counts(run), scorer, n, seed)
            if self._last is None or self._last[0] != key or not self._last[1].sheet.run.store.is_current:
                self._last = key, LabelQueue.of(stored, scorer, n, seed)
            yield self._last[1]


def _written(label: HumanLabel) -> JsonValue:
    """Return a label as the page writes it."""
    given = label.value
    text = (
        ("yes" if given else "no") if isinstance(given, bool) else f"{given:g}" if isinstance(given, float) else given
    )
    return {"value": text, "reason": label.reason, "message": "" if label.message is None else str(label.message)}
