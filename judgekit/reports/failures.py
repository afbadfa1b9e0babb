"""The failures of a run for people: on a terminal, and as Markdown for a ticket."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from judgekit.failures.comparison import IssueChange
from judgekit.failures.report import Failure, FailureReport, RunIssue
from judgekit.reports.markdown import cell_text
from judgekit.runs.intervals import Estimate
from judgekit.terminal import printable, text_table

_EXAMPLES = 3
_LOSSES = 10


def show_failures(report: FailureReport, changes: Sequence[IssueChange], show: int, console: Console) -> None:
    """Print the issues of a run, what changed, and ``show`` messages to open of each issue."""
    console.print(printable(report.headline()), soft_wrap=True)
    if report.issues:
        columns = ("issue", "id", "state", "samples", "share")
        rows = [
            (printable(_name(issue)), issue.issue.id, issue.state, f"{len(issue.failures):,}", share_text(issue))
            for issue in report.issues
        ]
        console.print(text_table(columns, rows, words=2))
    for change in changes:
        console.print(printable(str(change)), soft_wrap=True)
    for issue in report.issues if show else ():
        console.print(f"\n{printable(_name(issue))}", soft_wrap=True)
        if issue.fix:
            console.print(f"  to change: {printable(issue.fix)}", soft_wrap=True)
        for failure in issue.failures[:show]:
            console.print(f"  {printable(message_text(failure))}", soft_wrap=True)
        if len(issue.failures) > show:
            console.print(f"  and {len(issue.failures) - show:,} more")
    lines = _loss_lines(report)
    if lines and show:
        console.print("\nlost by tool calls, without a judge:")
        for line in lines:
            console.print(f"  {printable(line)}", soft_wrap=True)


def failures_markdown(report: FailureReport, changes: Sequence[IssueChange] = ()) -> Iterator[str]:
    """Yield the issues of a run as Markdown. Recorded text is escaped."""
    yield f"# Failures of run {report.run.number}\n\n{cell_text(report.headline())}\n"
    if report.issues:
        yield "\n| issue | state | samples | share | what to change |\n|---|---|---|---|---|\n"
    for issue in report.issues:
        cells = (_name(issue), issue.state, f"{len(issue.failures):,}", share_text(issue), issue.fix)
        yield f"| {' | '.join(map(cell_text, cells))} |\n"
    if changes:
        yield "\n## Changes\n\n"
        yield from (f"- {cell_text(str(change))}\n" for change in changes)
    for issue in report.issues:
        yield f"\n## {cell_text(_name(issue))}\n\n"
        yield from (f"- {cell_text(message_text(failure))}\n" for failure in issue.failures[:_EXAMPLES])
        if len(issue.failures) > _EXAMPLES:
            yield f"- and {len(issue.failures) - _EXAMPLES:,} more\n"
    if lines := _loss_lines(report):
        yield "\n## Lost by tool calls, without a judge\n\n"
        yield from (f"- {cell_text(line)}\n" for line in lines)
    yield from (f"\n{cell_text(note)}\n" for note in report.notes)


def _loss_lines(report: FailureReport) -> Sequence[str]:
    """Return the most frequent losses, each once, although several scorers may have it."""
    losses = sorted((loss for those in report.losses.values() for loss in those), key=lambda loss: -len(loss.samples))
    return [*dict.fromkeys(map(str, losses))][:_LOSSES]


def share_text(issue: RunIssue) -> str:
    """Return the share of an issue with its interval, corrected by human labels if they support that."""
    if (figure := issue.corrected.corrected) is not None:
        return f"{_percent(figure)} corrected, {_percent(issue.share)} by the judge"
    return _percent(issue.share)


def message_text(failure: Failure) -> str:
    """Return where a failure began, what went wrong, and the passage that shows it."""
    quote = f': "{failure.quote}"' if failure.quote else ""
    return f"{failure.place}: {failure.symptom}{quote}"


def _name(issue: RunIssue) -> str:
    return f"{issue.issue.name}{' (loose)' if issue.is_loose else ''}"


def _percent(figure: Estimate) -> str:
    if figure.value is None:
        return "-"
    bounds = "" if figure.low is None or figure.high is None else f" [{figure.low:.1%}, {figure.high:.1%}]"
    return f"{figure.value:.1%}{bounds}"
