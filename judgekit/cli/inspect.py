"""``judgekit inspect``: show the contents of a file of recordings."""

from collections import Counter
from collections.abc import Iterator, Mapping

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.errors import count_text
from judgekit.formats.inspection import Inspection
from judgekit.formats.reading import Recordings
from judgekit.terminal import console, printable, printable_lines
from judgekit.traces.trace import Trace

_SHOWN = 20
_CONVERSATION_TOKENS = 2_000


@app.command()
def inspect(
    file: options.RecordingsArgument,
    format: options.Format = None,
    column: options.ColumnOption = None,
    encoding: options.Encoding = None,
) -> None:
    """Show what is in a file, and how judgekit reads it.

    Lists what is left out, and why.
    """
    recordings = Recordings(file, format, columns=options.parse_columns(column), encoding=encoding)
    found = Inspection()
    for sample in recordings.samples(found.add_problem):
        found.add(sample)
    found.must_have_any()
    for head, said in _lines(recordings, found):
        console().print(f"{head:<14} {printable(said)}", soft_wrap=True)
    if found.first_sample is not None:
        console().print(f"\nthe first conversation, {printable(found.first_sample.id)}:", soft_wrap=True)
        console().print(printable_lines(_rendered(found.first_sample.trace)), soft_wrap=True)
    if found.unread_records or recordings.failed:
        raise typer.Exit(1)


def _lines(recordings: Recordings, found: Inspection) -> Iterator[tuple[str, str]]:
    formats = recordings.formats
    names = Counter(formats.values())
    files = "" if len(formats) == 1 else f" in {len(formats):,} files"
    shown = ", ".join(f"{name} ({times:,})" if len(names) > 1 else name for name, times in names.items())
    yield "format", shown + files
    yield "conversations", f"{found.conversations:,}{_more(found.duplicate_ids, 'repeat an earlier id')}"
    if found.children:
        yield "sub-agents", f"{found.children:,}"
    yield "messages", _counted(found.messages) or "none"
    if calls := found.calls.total():
        said = f"{found.calls['assistant']:,} by the agent, {found.calls['user']:,} by the user"
        said += _more(found.unparsable, "with arguments that cannot be parsed")
        yield "tool calls", said + _more(found.unanswered_calls, "without a result")
    if results := found.results.total():
        said = f"{results:,}{_more(found.unpaired, 'without a call')}"
        if errors := found.results["error"]:
            said += f"; {count_text(errors, 'error')}"
        said += _more(found.results["unknown"], "whose success is unknown")
        yield "tool results", said
    elif calls:
        yield "tool results", "none"
    yield "usage", _usage(found)
    if labels := found.labels.counts:
        shown = _counted(dict(labels.most_common(_SHOWN)))
        more = len(labels) - _SHOWN
        yield "labels", f"{shown} and {more:,} more" if more > 0 else shown
    yield "references", _counted(found.references) or "none"
    warnings = found.warnings
    yield "warnings", f"{warnings.counts.total():,}" if warnings.counts else "none"
    width = len(f"{max(warnings.counts.values(), default=0):,}")
    for words, times in warnings.counts.most_common(_SHOWN):
        yield "", f"{times:>{width},}  {words} (first: {warnings.first_paths[words]})"
    if (more := len(warnings.counts) - _SHOWN) > 0:
        yield "", f"and {more:,} other kinds"
    if found.problem_count:
        files = f"; {count_text(len(recordings.failed), 'file')}" if recordings.failed else ""
        yield "not read", count_text(found.unread_records, "record") + files
        for problem in found.problems:
            yield "", str(problem).partition("\n")[0]
        if (more := found.problem_count - len(found.problems)) > 0:
            yield "", f"and {more:,} more"


def _more(count: int, noun: str) -> str:
    return f"; {count:,} {noun}" if count else ""


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {times:,}" for name, times in sorted(counts.items(), key=lambda one: -one[1]))


def _usage(found: Inspection) -> str:
    said = [
        f"{tokens.input:,} tokens in, {tokens.output:,} out, reported by {tokens.reports:,} of {total:,} {what if total == 1 else many}"
        for tokens, total, what, many in (
            (found.message_usage, found.messages["assistant"], "agent message", "agent messages"),
            (found.trace_usage, found.conversations, "whole conversation", "whole conversations"),
        )
        if tokens.reports
    ]
    if found.costs:
        said.append(
            f"${found.cost_usd:,.4f} reported by {found.costs:,} {'conversation' if found.costs == 1 else 'conversations'}"
        )
    return "; ".join(said) or "none reported"


def _rendered(trace: Trace) -> str:
    try:
        return trace.render(budget_tokens=_CONVERSATION_TOKENS)
    except ValueError as error:  # no room even for the headers
        return f"not shown: {error}"
