"""Issues: kinds of failures with a life, in a file next to the audit records that people may edit and commit."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import AwareDatetime, Field, StringConstraints, ValidationError

from judgekit.atomic import atomic_write
from judgekit.errors import ConfigError, StoreError, check_choice, validation_message
from judgekit.runs.rows import RunRecord
from judgekit.traces.message import FrozenModel, Many

IssueStatus: TypeAlias = Literal["open", "fixed", "rejected"]
STATUSES: tuple[IssueStatus, ...] = ("open", "fixed", "rejected")
MAX_NAME = 200
_MOST_BYTES = 2**26
_NAME_KEPT = 100

_Text: TypeAlias = Annotated[str, StringConstraints(max_length=MAX_NAME)]


class Cell(NamedTuple):
    """The first level of failures: what went wrong, and the agent or tool where it began."""

    label: str
    where: str

    def __str__(self) -> str:
        return f"{self.label} at {self.where}"


class Issue(FrozenModel):
    """A kind of failure.

    Attributes:
        id: Eight hexadecimal digits that never change.
        name: What people call it, and may change.
        label: The label of its failures.
        where: The agent or tool where they begin.
        status: Whether it is ``open``, ``fixed`` or ``rejected`` (no failure, or not worth a repair).
        symptoms: Some of its failures in words, by which a judge recognizes it; none for those of a cell that belong to no
            other issue.
        first_run: The id of the first run that has it.
        first_seen: When that run began.
        last_run: The id of the last run that has it.
        last_seen: When that run began.
        back_run: The id of the run in which it came back after it was fixed.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]
    name: _Text
    label: _Text
    where: _Text
    status: IssueStatus = "open"
    symptoms: Many[_Text] = ()
    first_run: str
    first_seen: AwareDatetime
    last_run: str
    last_seen: AwareDatetime
    back_run: str | None = None

    @classmethod
    def new(cls, cell: Cell, name: str, symptoms: Iterable[str], run: RunRecord) -> "Issue":
        """Return the issue of a cell that a run is the first to have; without symptoms, that of all its other failures."""
        shown = [symptom[:MAX_NAME] for symptom in symptoms]
        identity = "\0".join([*cell, *([name, *shown, run.id] if shown else [])])
        return cls(
            id=hashlib.sha256(identity.encode()).hexdigest()[:8],
            name=name[:MAX_NAME],
            label=cell.label,
            where=cell.where,
            symptoms=shown,
            first_run=run.id,
            first_seen=run.started_at,
            last_run=run.id,
            last_seen=run.started_at,
        )

    @property
    def cell(self) -> Cell:
        """Its label and where it begins."""
        return Cell(self.label, self.where)

    def seen_in(self, run: RunRecord) -> "Issue":
        """Return the issue after a run that has it. One that was fixed is open again if the run is later than its last one."""
        update: dict[str, object] = {}
        if run.started_at < self.first_seen:
            update |= {"first_run": run.id, "first_seen": run.started_at}
        if run.started_at > self.last_seen:
            update |= {"last_run": run.id, "last_seen": run.started_at}
            if self.status == "fixed":
                update |= {"status": "open", "back_run": run.id}
        return self.model_copy(update=update)


class IssueFile(FrozenModel):
    """The issues of one agent, as one scorer found them.

    Attributes:
        agent: The name of the agent.
        scorer: The name of the scorer.
        issues: The issues, in the order in which they were found.
    """

    schema_version: Literal[1] = 1
    agent: str
    scorer: str
    issues: Many[Issue] = Field(default=())

    @classmethod
    def read(cls, path: Path, agent: str, scorer: str) -> "IssueFile":
        """Return the issues in a file; none if there is no file yet.

        Raises:
            StoreError: The file cannot be read, or holds issues of another agent or scorer.
        """
        try:
            if not path.exists():
                return cls(agent=agent, scorer=scorer)
            if path.stat().st_size > _MOST_BYTES:
                raise StoreError(f"{path}: larger than {_MOST_BYTES:,} bytes, so it is no file of issues")
            file = cls.model_validate_json(path.read_bytes())
        except (ValidationError, ValueError) as error:
            why = validation_message(error) if isinstance(error, ValidationError) else error
            raise StoreError(f"{path}: not a valid file of issues: {why}; mend it, or move it away") from error
        except OSError as error:
            raise StoreError(f"{path}: the issues cannot be read: {error}") from error
        if (file.agent, file.scorer) != (agent, scorer):
            raise StoreError(
                f"{path}: holds issues of {file.agent!r} found by {file.scorer!r}; name the agent otherwise"
            )
        ids = [issue.id for issue in file.issues]
        if twice := next((issue for issue in ids if ids.count(issue) > 1), None):
            raise StoreError(f"{path}: two issues have the id {twice}; delete one of them")
        return file

    def write(self, path: Path) -> None:
        """Write the issues; what stands in the file until then is replaced.

        Raises:
            StoreError: The file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(f"{self.model_dump_json(indent=2, exclude_defaults=False)}\n".encode())
        except OSError as error:
            raise StoreError(f"{path}: the issues cannot be written: {error}") from error

    def with_issues(self, issues: Iterable[Issue]) -> "IssueFile":
        """Return the file with issues that are new or have changed."""
        changed = {issue.id: issue for issue in issues}
        merged = {issue.id: issue for issue in self.issues} | changed
        return self.model_copy(update={"issues": tuple(merged.values())})

    def edited(self, statuses: Mapping[str, str], names: Mapping[str, str]) -> "IssueFile":
        """Return the file with what people decide: the status and the name of issues, by their ids.

        Raises:
            ConfigError: There is no such issue or status, or a name is empty or too long.
        """
        by_id = {issue.id: issue for issue in self.issues}
        for identifier, status in statuses.items():
            check_choice("status", status, STATUSES)
            check_choice("issue", identifier, list(by_id))
            by_id[identifier] = by_id[identifier].model_copy(update={"status": status})
        for identifier, name in names.items():
            check_choice("issue", identifier, list(by_id))
            if not name.strip() or len(name) > MAX_NAME:
                raise ConfigError(f"the name of an issue has 1 to {MAX_NAME} characters, found {len(name):,}")
            by_id[identifier] = by_id[identifier].model_copy(update={"name": name})
        return self.with_issues(by_id.values())


def issues_path(folder: Path, agent: str, scorer: str) -> Path:
    """Return the path of the issues of an agent."""
    names = (re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_NAME_KEPT] for name in (agent, scorer))
    return folder / f"{'.'.join(names)}.json"


def issue_state(issue: Issue, run: RunRecord) -> Literal["new", "back", "known", "rejected"]:
    """Return what an issue is in a run that has it."""
    if issue.status == "rejected":
        return "rejected"
    if issue.back_run == run.id:
        return "back"
    return "new" if issue.first_run == run.id else "known"
