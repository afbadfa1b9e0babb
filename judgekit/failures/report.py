"""The failures of a run as issues, with their shares, their states and the messages to open."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, JsonValue, ValidationError

from judgekit.analysis.losses import Loss
from judgekit.errors import ConfigError, count_text
from judgekit.failures.issues import Cell, Issue, IssueFile
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.score import JudgeCall

SCORER = "failure_analysis"
"""The scorer whose scores are read, unless another one is named."""
LOOSE = 0.6
"""The stability below which a group is loose."""
NONE_VISIBLE = "none_visible"
_FAILED = 0.5

IssueState: TypeAlias = Literal["new", "back", "known", "rejected", "unsorted"]


class _Root(BaseModel):
    message: int | str | None = None
    label: str
    where: str = "an unknown place"
    symptom: str = ""


class _Candidate(BaseModel):
    message: int | str
    quote: str = ""
    found: bool | None = None


class _Fix(BaseModel):
    where: str
    change: str


class _Details(BaseModel):
    """The details of a score of `judgekit.scorers.failure_analysis`; a run without text keeps none."""

    roots: Sequence[_Root] = ()
    candidates: Sequence[_Candidate] = ()
    fix: _Fix | None = None


class Failure(NamedTuple):
    """A sample that failed, with what the analysis says of it.

    Attributes:
        row: The score of the analysis.
        cell: The label of its first root, and the agent or tool where that is.
        message: The number of the message where it began; ``None`` if the run keeps no text.
        symptom: A few words on what went wrong.
        quote: A passage of that message; empty if there is none.
        fix: The part to change, and how.
    """

    row: Row
    cell: Cell
    message: int | str | None
    symptom: str
    quote: str
    fix: str

    @classmethod
    def of(cls, row: Row) -> "Failure | None":
        """Return the failure that a score describes; ``None`` if the sample did not fail visibly."""
        if row.score.value is None or row.score.value >= _FAILED:
            return None
        try:
            details = _Details.model_validate(row.score.details)
        except ValidationError:  # of another scorer
            details = _Details()
        root = next(iter(details.roots), _Root(label=row.score.label or "unlabeled"))
        quotes = (each.quote for each in details.candidates if each.message == root.message and each.found)
        symptom = " ".join((root.symptom or row.score.reason).split())
        fix = "" if details.fix is None else f"{details.fix.where}: {details.fix.change}"
        return cls(row, Cell(root.label, root.where), root.message, symptom, next(quotes, ""), fix)

    @property
    def place(self) -> str:
        """The sample, and the message if it is known."""
        return f"{self.row.sample_id}{'' if self.message is None else f' message {self.message}'}"


@dataclass(frozen=True)
class RunIssue:
    """An issue as a run shows it.

    Attributes:
        issue: The issue.
        state: ``new`` in this run, ``back`` in it after it was fixed, ``known`` from an earlier run, ``rejected`` by people,
            or ``unsorted``: failures of a cell with several issues that no judge has matched yet.
        failures: Its failures in the run.
        share: Its share of the samples that were analyzed or that nobody called failed, by the judge alone.
        corrected: That share as people would see it, or why their labels do not tell.
        stability: How stable the group is over shuffled orders, in [0, 1]; ``None`` if it was not grouped here.
    """

    issue: Issue
    state: IssueState
    failures: Sequence[Failure]
    share: Estimate
    corrected: Correction
    stability: float | None = None

    @property
    def is_loose(self) -> bool:
        """Whether the judge groups its failures otherwise in another order."""
        return self.stability is not None and self.stability < LOOSE

    @property
    def fix(self) -> str:
        """The change that most analyses would make: instructions, a tool or other parts, in the words of the first of them."""
        fixes = [failure.fix for failure in self.failures if failure.fix]
        places = Counter(fix.partition(":")[0] for fix in fixes)
        return next((fix for fix in fixes if fix.partition(":")[0] == places.most_common(1)[0][0]), "")

    def as_json(self) -> dict[str, JsonValue]:
        """Return the issue as JSON."""
        return {
            **self.issue.model_dump(mode="json", include={"id", "name", "label", "where", "status"}),
            "state": self.state,
            "first_seen": self.issue.first_seen.isoformat(),
            "samples": len(self.failures),
            "share": self.share.model_dump(),
            "corrected": self.corrected.model_dump(),
            "stability": self.stability,
            "loose": self.is_loose,
            "fix": self.fix,
            "failures": [
                {"sample": failure.row.sample_id, "number": failure.row.index}
                | {name: getattr(failure, name) for name in ("message", "symptom", "quote", "fix")}
                for failure in self.failures
            ],
        }


@dataclass(frozen=True)
class FailureReport:
    """The failures of a run.

    Attributes:
        run: The run.
        scorer: The scorer that analyzed them.
        agent: The name under which the issues are kept.
        issues: Its issues, the most frequent first.
        samples: The number of samples that shares are of.
        left_out: The number of samples whose analysis failed, abstained or is missing.
        unseen: The share of further failures that would belong to no issue seen here, by Good and Turing; ``None`` without
            failures.
        losses: What tool scorers found wrong, by scorer; no judge is asked.
        calls: The requests to the judge that grouped them.
        notes: What was not grouped, and why.
        path: The file of issues; ``None`` for a run in memory.
    """

    run: Run
    scorer: str
    agent: str
    issues: Sequence[RunIssue]
    samples: int
    left_out: int
    unseen: float | None
    losses: Mapping[str, Sequence[Loss]]
    calls: Sequence[JudgeCall] = ()
    notes: Sequence[str] = ()
    path: Path | None = None

    @property
    def scale(self) -> Collection[str]:
        """The labels that the scorer may give."""
        return next((record.scale for record in self.run.scorers if record.name == self.scorer), ())

    @property
    def failed(self) -> int:
        """The number of samples with a visible failure."""
        return sum(len(issue.failures) for issue in self.issues)

    def labels(self) -> Mapping[str, int]:
        """Return the number of samples by the label of their failure; rejected issues do not count."""
        counted = [issue for issue in self.issues if issue.state != "rejected"]
        return Counter(failure.cell.label for issue in counted for failure in issue.failures)

    def in_state(self, state: IssueState) -> Sequence[RunIssue]:
        """Return the issues in a state."""
        return [issue for issue in self.issues if issue.state == state]

    def headline(self) -> str:
        """Return the result in a line."""
        if not self.samples:
            return "no sample was analyzed"
        states = Counter(issue.state for issue in self.issues)
        counts = ", ".join(f"{count} {state}" for state, count in states.items())
        unseen = (
            ""
            if self.unseen is None
            else f"; about {self.unseen:.0%} of further failures would be of kinds not seen here"
        )
        left_out = f", {count_text(self.left_out, 'sample')} not analyzed" if self.left_out else ""
        return (
            f"{self.failed:,} of {count_text(self.samples, 'sample')} failed visibly{left_out}: "
            f"{count_text(len(self.issues), 'issue')}{f' ({counts})' if counts else ''}{unseen}"
        )

    def edit(self, statuses: Mapping[str, str], names: Mapping[str, str]) -> None:
        """Give issues another status or name, by their ids, in the file that keeps them.

        Raises:
            ConfigError: There is no such issue or status, a name is too long, or the run is in memory.
            StoreError: The file cannot be used.
        """
        if self.path is None:
            raise ConfigError("the issues of a run in memory are not kept; give the run a store")
        IssueFile.read(self.path, self.agent, self.scorer).edited(statuses, names).write(self.path)

    def as_json(self) -> dict[str, JsonValue]:
        """Return the report as JSON."""
        return {
            "run": self.run.number,
            "run_id": self.run.record.id,
            **{name: getattr(self, name) for name in ("scorer", "agent", "samples", "failed", "left_out", "unseen")},
            "notes": list(self.notes),
            "issues": [issue.as_json() for issue in self.issues],
            "losses": {scorer: [loss.as_json() for loss in losses] for scorer, losses in self.losses.items()},
        }
