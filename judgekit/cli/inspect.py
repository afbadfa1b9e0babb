"""``judgekit inspect``: show the contents of a file of recordings."""

from collections import Counter
from collections.abc import Iterator, Mapping

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_json
from judgekit.errors import count_text
from judgekit.formats.inspection import Inspection, WarningCounts
from judgekit.formats.reading import Recordings
from judgekit.runs.hashes import recording_hash
from judgekit.runs.units import CopiedRecording, count_copies
from judgekit.terminal import console, printable, printable_lines
from judgekit.traces.trace import Trace

_SHOWN = 20
_MOST_TOKENS, _TOKENS_PER_MESSAGE = 2_000, 30


@app.command()
def inspect(
    file: options.RecordingsArgument,
    format: options.Format = None,
    column: options.ColumnOption = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is in a file, and how judgekit reads it.

    Lists what is left out, and why.
    """
    recordings = Recordings(file, format, columns=options.parse_columns(column), encoding=encoding)
    inspection = Inspection()
    counted = Counter[tuple[int, str | None]]()
    for sample in recordings.samples(inspection.add_problem):
        inspection.add(sample)
        if (recording := recording_hash(sample, "")) is not None:
            counted[recording, sample.group] += 1
    inspection.must_have_any()
    copies = count_copies(CopiedRecording(*key, samples, 0) for key, samples in counted.items())
    if as_json:
        print_json({"formats": dict(Counter(recordings.formats.values())), "copies": copies, **inspection.as_json()})
    else:
        _show(recordings, inspection, copies)
    if inspection.unread_records or recordings.failed:
        raise typer.Exit(1)


def _show(recordings: Recordings, inspection: Inspection, copies: int) -> None:
    for head, text in _lines(recordings, inspection, copies):
        console().print(f"{head:<14} {printable(text)}", soft_wrap=True)
    if inspection.first_sample is not None:
        console().print(f"\nthe first conversation, {printable(inspection.first_sample.id)}:", soft_wrap=True)
        trace = inspection.first_sample.trace
        tokens = min(_MOST_TOKENS, (len(trace.messages) + 4) * _TOKENS_PER_MESSAGE)
        console().print(printable_lines(rendered(trace, tokens)), soft_wrap=True)


def _lines(recordings: Recordings, inspection: Inspection, copies: int) -> Iterator[tuple[str, str]]:
    formats = recordings.formats
    names = Counter(formats.values())
    files = "" if len(formats) == 1 else f" in {len(formats):,} files"
    shown = ", ".join(f"{name} ({times:,})" if len(names) > 1 else name for name, times in names.items())
    yield "format", shown + files
    repeated = _more(inspection.duplicate_ids, "repeat an earlier id")
    yield "conversations", f"{inspection.conversations:,}{repeated}{_more(copies, 'with the recording of another one')}"
    if unanswered := inspection.gave_up + inspection.no_reply:
        stops = _more(inspection.no_reply, "stop after the user's message, so that a reply may not have been recorded")
        yield "no answer", f"{unanswered:,}{_more(inspection.gave_up, 'where the agent gave up')}{stops}"
    if failures := inspection.errors.counts:
        yield "errors", f"{failures.total():,}"
        yield from _kinds(inspection.errors)
    if inspection.children:
        calls_text = f"; {count_text(inspection.child_calls, 'tool call')}, not counted below"
        yield "sub-agents", f"{inspection.children:,}{calls_text if inspection.child_calls else ''}"
    yield "messages", _counted(inspection.messages) or "none"
    if calls := inspection.calls.total():
        text = f"{inspection.calls['assistant']:,} by the agent, {inspection.calls['user']:,} by the user"
        text += _more(inspection.unparsable, "with arguments that are not valid JSON")
        yield "tool calls", text + _more(inspection.unanswered_calls, "without a result")
    if results := inspection.results.total():
        text = f"{results:,}{_more(inspection.unpaired, 'without a call')}"
        if errors := inspection.results["error"]:
            text += f"; {count_text(errors, 'error')}"
        text += _more(inspection.results["unknown"], "with no recorded status")
        yield "tool results", text
    elif calls:
        yield "tool results", "none"
    yield "usage", _usage(inspection)
    if labels := inspection.labels.counts:
        shown = _counted(dict(labels.most_common(_SHOWN)))
        more = len(labels) - _SHOWN
        yield "labels", f"{shown} and {more:,} more" if more > 0 else shown
    yield "references", _counted(inspection.references) or "none"
    warnings = inspection.warnings
    yield "warnings", f"{warnings.counts.total():,}" if warnings.counts else "none"
    yield from _kinds(warnings)
    if inspection.problem_count:
        files = f"; {count_text(len(recordings.failed), 'file')}" if recordings.failed else ""
        yield "not read", count_text(inspection.unread_records, "record") + files
        for problem in inspection.problems:
            yield "", str(problem).partition("\n")[0]
        if (more := inspection.problem_count - len(inspection.problems)) > 0:
            yield "", f"and {more:,} more"


def _kinds(messages: WarningCounts) -> Iterator[tuple[str, str]]:
    """Yield a line for each of the most frequent messages."""
    width = len(f"{max(messages.counts.values(), default=0):,}")
    for words, times in messages.counts.most_common(_SHOWN):
        yield "", f"{times:>{width},}  {words} (first: {messages.first_paths[words]})"
    if (more := len(messages.counts) - _SHOWN) > 0:
        yield "", f"and {more:,} other kinds"


def _more(count: int, noun: str) -> str:
    return f"; {count:,} {noun}" if count else ""


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {times:,}" for name, times in sorted(counts.items(), key=lambda count: -count[1]))


def _usage(inspection: Inspection) -> str:
    figures = [
        f"{tokens.input:,} tokens in, {tokens.output:,} out, reported by {tokens.reports:,} of {total:,} {what if total == 1 else many}"
        for tokens, total, what, many in (
            (inspection.message_usage, inspection.messages["assistant"], "agent message", "agent messages"),
            (inspection.trace_usage, inspection.conversations, "whole conversation", "whole conversations"),
        )
        if tokens.reports
    ]
    if inspection.costs:
        figures.append(
            f"${inspection.cost_usd:,.4f} reported by {inspection.costs:,} {'conversation' if inspection.costs == 1 else 'conversations'}"
        )
    return "; ".join(figures) or "none reported"


def rendered(trace: Trace, tokens: int) -> str:
    """Return a conversation as text, shortened to about so many tokens, or why it cannot be."""
    try:
        return trace.render(budget_tokens=tokens)
    except ValueError as error:  # no room even for the headers
        return f"not shown: {error}"
