"""The failures of a run, sorted into issues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.analysis.losses import run_losses
from judgekit.analysis.matching import match_labels
from judgekit.analysis.stored_labels import stored_labels
from judgekit.errors import STOPS, ConfigError, JudgeError, count_text
from judgekit.failures.grouping import MIN_GROUPED, group_symptoms, match_issues
from judgekit.failures.issues import Cell, Issue, IssueFile, issue_state, issues_path
from judgekit.failures.report import SCORER, Failure, FailureReport, RunIssue
from judgekit.failures.shares import issue_shares
from judgekit.judges.judge import Judge
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.schema import IssueRow
from judgekit.score import JudgeCall, ledger
from judgekit.scoring import run_sync

_UNNAMED_AGENT = "agent"
_SYMPTOMS_KEPT = 3
_LIFE = {"status", "first_run", "first_seen", "last_run", "last_seen", "back_run"}


def find_failures(
    run: Run, *, judge: Judge | None = None, scorer: str = SCORER, agent: str | None = None, keep: bool = True
) -> FailureReport:
    """Return the failures of a run as issues, and keep both the issues and the samples that belong to each.

    Failures are distinguished by label and by the agent or tool where they began. In each of these cells, a judge matches them
    with the issues that the cell has, and groups the others, if there are 8 or more. What it has grouped is kept with the
    run, and not asked again.

    Args:
        run: A run with the scores of a `FailureAnalysis`.
        judge: The judge that groups; without one, failures are distinguished by cells alone.
        scorer: The name of these scores.
        agent: The name by which the issues of this agent are kept; by default, the name that its recordings give, else "agent".
        keep: Whether to keep the issues and the samples of each.

    Raises:
        ConfigError: The run has no such scores, and no tool scorer found anything wrong.
        StoreError: The file of issues, or that of the run, cannot be used.
        JudgeError: The judge cannot be asked.
    """
    return run_sync(lambda: afind_failures(run, judge=judge, scorer=scorer, agent=agent, keep=keep))


async def afind_failures(
    run: Run, *, judge: Judge | None = None, scorer: str = SCORER, agent: str | None = None, keep: bool = True
) -> FailureReport:
    """Return the failures of a run as issues; the async version of `find_failures`, with its arguments."""
    if scorer not in {record.name for record in run.scorers}:
        missing = f"run {run.number} has no scores of {scorer}; judgekit score {run.number} --scorer {scorer} --judge ... adds them"
        if not (losses := run_losses(run)):
            raise ConfigError(missing)
        return FailureReport(run, scorer, agent or "", (), 0, run.samples.samples, None, losses, notes=[missing])
    rows = list(run.rows(scorer=scorer))
    failures = {row.index: failure for row in rows if (failure := Failure.of(row)) is not None}
    name = agent or _agent_name(run)
    path = None if run.store.path is None else issues_path(run.store.path.parent / "failures", name, scorer)
    file = IssueFile(agent=name, scorer=scorer) if path is None else IssueFile.read(path, name, scorer)
    sorting = _Sorting(run, judge if run.record.keeps_text else None, file)
    with ledger() as calls:
        for row in run.store.issue_rows(run.number, scorer):
            sorting.keep(row, failures.get(row.sample))
        by_cell: dict[Cell, dict[int, Failure]] = {}
        for number, failure in failures.items():
            if number not in sorting.assigned:
                by_cell.setdefault(failure.cell, {})[number] = failure
        for cell, unsorted in sorted(by_cell.items()):
            await sorting.sort(cell, unsorted)
    if keep:
        present = {sorting.assigned[number] for number in failures if number in sorting.assigned}
        seen = [at for at in sorting.issues if at in present]
        # People may have edited the file since it was read.
        file = file if path is None else IssueFile.read(path, name, scorer)
        current = {issue.id: issue for issue in file.issues}
        sorting.issues |= {at: current.get(at, sorting.issues[at]).seen_in(run.record) for at in seen}
        file = file.with_issues(sorting.issues[at] for at in seen)
        if path is not None and file.issues:
            file.write(path)
        run.store.write_issues(run.number, scorer, sorting.rows(scorer))
    return _report(run, scorer, rows, failures, sorting, calls, path)


def _agent_name(run: Run) -> str:
    named = (sample.metadata.get("agent", sample.trace.metadata.get("agent")) for _, sample in run.conversations())
    names = {name if isinstance(name, str) else None for name in named}
    return (names.pop() if len(names) == 1 else None) or _UNNAMED_AGENT


@dataclass
class _Sorting:
    """The issue of each failure, as far as it is known.

    Attributes:
        run: The run.
        judge: The judge that matches and groups, if there is one.
        issues: All issues by id: those of the file, and new ones.
        assigned: The id of the issue of each sample.
        stability: The stability of the groups that were made here, by id.
        notes: What was not sorted, and why.
    """

    run: Run
    judge: Judge | None
    file: IssueFile
    issues: dict[str, Issue] = field(init=False)
    assigned: dict[int, str] = field(default_factory=dict[int, str])
    stability: dict[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.issues = {issue.id: issue for issue in self.file.issues}

    def keep(self, row: IssueRow, failure: Failure | None) -> None:
        """Keep what was sorted before, unless the score or the file of issues has changed since."""
        issue = self.issues.get(row.issue)
        if issue is not None and failure is not None and issue.cell == failure.cell:
            self.assigned[row.sample] = issue.id
            if row.stability is not None:
                self.stability[issue.id] = row.stability

    def rows(self, scorer: str) -> Iterator[IssueRow]:
        """Yield what is to be kept."""
        for number, at in sorted(self.assigned.items()):
            yield IssueRow(self.run.number, scorer, number, at, self.stability.get(at))

    async def sort(self, cell: Cell, failures: dict[int, Failure]) -> None:
        """Sort the failures of a cell."""
        here = [issue for issue in self.issues.values() if issue.cell == cell]
        groups = [issue for issue in here if issue.symptoms]
        symptoms = {number: failure.symptom for number, failure in failures.items()}
        if groups and self.judge is None:
            several = count_text(len(groups), "issue")
            self.notes.append(
                f"{cell}: {count_text(len(failures), 'failure')} not matched with its {several}; name a judge"
            )
            return
        try:
            if groups and self.judge is not None:
                for number, issue in (await match_issues(self.judge, cell, groups, symptoms)).items():
                    self.assigned[number] = issue.id
                    del symptoms[number]
            if self.judge is not None and len(symptoms) >= MIN_GROUPED:
                await self._group(self.judge, cell, symptoms)
        except JudgeError as error:
            if isinstance(error, STOPS):
                raise
            self.notes.append(f"{cell}: not grouped: {error}")
            if groups:
                return
        if not symptoms:
            return
        if groups and self.judge is not None:  # of none of the known kinds
            issue = Issue.new(
                cell, next(iter(symptoms.values())), [*symptoms.values()][:_SYMPTOMS_KEPT], self.run.record
            )
        else:
            issue = next(
                (issue for issue in here if not issue.symptoms), Issue.new(cell, str(cell), (), self.run.record)
            )
        self._assign(issue, symptoms)

    async def _group(self, judge: Judge, cell: Cell, symptoms: dict[int, str]) -> None:
        """Make issues of the groups of two and more symptoms, and leave the others."""
        numbers = list(symptoms)
        whole = next((issue for issue in self.issues.values() if issue.cell == cell and not issue.symptoms), None)
        for group in await group_symptoms(judge, cell, [*symptoms.values()]):
            if len(group.members) < 2:
                continue
            members = {numbers[at]: symptoms[numbers[at]] for at in group.members}
            name = group.name or next(iter(members.values()))
            issue = Issue.new(cell, name, [*members.values()][:_SYMPTOMS_KEPT], self.run.record)
            if whole is not None:  # its failures were never told apart, so none of the groups is known to be new
                issue = issue.model_copy(update=whole.model_dump(include=_LIFE))
            self.stability[issue.id] = group.stability
            self._assign(issue, members)
            for number in members:
                del symptoms[number]

    def _assign(self, issue: Issue, numbers: Mapping[int, str]) -> None:
        self.issues.setdefault(issue.id, issue)
        self.assigned |= dict.fromkeys(numbers, issue.id)


def _report(
    run: Run,
    scorer: str,
    rows: Sequence[Row],
    failures: Mapping[int, Failure],
    sorting: _Sorting,
    calls: Sequence[JudgeCall],
    path: Path | None,
) -> FailureReport:
    judged = [row for row in rows if row.score.status in ("scored", "skipped")]
    by_issue: dict[str, list[Failure]] = {}
    unsorted: dict[Cell, list[Failure]] = {}
    for number, failure in failures.items():
        if (at := sorting.assigned.get(number)) is not None:
            by_issue.setdefault(at, []).append(failure)
        else:
            unsorted.setdefault(failure.cell, []).append(failure)
    record = next(record for record in run.scorers if record.name == scorer)
    labels = [label for label in stored_labels(run) if label.scorer == scorer]
    matched = match_labels(run, record, rows, labels) if labels else None
    shown: list[RunIssue] = []
    for at, of_issue in by_issue.items():
        share, corrected = issue_shares(judged, of_issue, matched, record.scale)
        state = issue_state(sorting.issues[at], run.record)
        shown.append(RunIssue(sorting.issues[at], state, of_issue, share, corrected, sorting.stability.get(at)))
    for cell, of_cell in unsorted.items():
        share, corrected = issue_shares(judged, of_cell, matched, record.scale)
        unsaved = Issue.new(cell, f"{cell}, not matched yet", (), run.record)
        shown.append(RunIssue(unsaved, "unsorted", of_cell, share, corrected))
    once = sum(len(issue.failures) == 1 for issue in shown)
    return FailureReport(
        run,
        scorer,
        sorting.file.agent,
        sorted(shown, key=lambda issue: (-len(issue.failures), issue.issue.name)),
        len(judged),
        run.samples.samples - len(judged),
        once / len(failures) if failures else None,
        run_losses(run),
        calls,
        sorting.notes,
        path,
    )
