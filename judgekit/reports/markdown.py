"""A run in Markdown, for the pages of CI. Text of recordings is escaped and cannot act as markup."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from judgekit.analysis.corrected_means import (
    corrected_means,
    describe_correction,
    gate_fitness,
    mean_bounds,
    run_corrections,
)
from judgekit.analysis.gates import GateResults
from judgekit.analysis.losses import run_losses
from judgekit.errors import ConfigError, truncated
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run
from judgekit.runs.summary_table import column_rows, summary_columns
from judgekit.terminal import printable

_LOWEST = 5
_LOSSES = 10
_LONGEST = 300
_ROOM = 1 << 20  # bytes that GitHub shows for a step
_CUT = "\nThe rest does not fit on this page.\n"


def markdown_report(run: Run, gates: GateResults) -> Iterator[str]:
    """Yield gates, a line for each scorer, notes, and the lowest scores with their reasons."""
    corrected, bounds = run_corrections(run), mean_bounds(run)
    yield f"### judgekit, run {run.number}\n\n"
    for gate in gates.gates:
        yield f"- {'✅ met' if gate.met else '❌ **not met**'}: {_code(gate.text)}: {_code(gate.explanation)}\n"
    for note in gates.notes:
        yield f"- ❌ {_code(note)}\n"
    if unfinished := run.record.unfinished:
        yield f"- ❌ {_code(unfinished)}. Only what was scored until then is counted.\n"
    yield "\n"
    yield from _table(run, corrected_means(corrected))
    yield "\n"
    if run.usage.conversations:
        yield f"{run.usage}\n\n"
    if imported := run.summary.imported:
        yield f"- {_code(imported)}\n"
    for note in filter(None, (run.summary.prices, *run.notes)):
        yield f"- {_code(note)}\n"
    for line in run.summary:
        if (correction := corrected.get(line.scorer)) is not None:
            fitness = gate_fitness(correction, bounds.get(line.scorer)).text
            for text in filter(
                None, (fitness, "" if fitness and not correction.corrected else describe_correction(correction))
            ):
                yield f"- {_code(line.scorer)}: {_code(text)}\n"
        few = gates.low_coverage.get(line.scorer)
        notes = (*([f"too few samples: {few}"] if few else []), *line.notes())
        yield from (f"- {_code(line.scorer)}: {_code(note)}\n" for note in notes)
        for times, reason in line.unscored_reasons():
            yield f"- {_code(line.scorer)}: {_code(f'{times}: {reason}')}\n"
    for line in run.summary:
        rows = [row for row in run.lowest(line.scorer, _LOWEST) if row.score.value != 1]
        if rows:
            yield f"\n<details><summary>The lowest scores of <code>{_in_html(line.scorer)}</code></summary>\n\n"
            for row in rows:
                reason = _code(row.score.reason or "no reason given")
                yield f"- **{row.score.value:.2f}** {_code(row.sample_id)}: {reason}\n"
            yield "\n</details>\n"
    for scorer, losses in run_losses(run).items():
        yield f"\n<details><summary>Losses of <code>{_in_html(scorer)}</code></summary>\n\n"
        yield _row(("loss", "samples", "share")) + _row(("---", "--:", "--:"))
        for loss in losses[:_LOSSES]:
            yield _row((cell_text(loss.text), f"{len(loss.samples):,} of {loss.total:,}", str(loss.share)))
        if (more := len(losses) - _LOSSES) > 0:
            yield f"\nand {more:,} more\n"
        yield "\n</details>\n"


def append_summary(run: Run, gates: GateResults, path: Path) -> None:
    """Append the Markdown of a run to the step summary of GitHub Actions, as far as it fits.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary.
    """
    try:
        with path.open("ab") as file:
            room = _ROOM - os.fstat(file.fileno()).st_size - len(_CUT.encode())
            for line in map(str.encode, chain(markdown_report(run, gates), "\n")):
                if len(line) > room:
                    file.write(_CUT.encode())
                    return
                file.write(line)
                room -= len(line)
    except OSError as error:
        raise ConfigError(f"GITHUB_STEP_SUMMARY={path}: cannot be written: {error}") from error


def _table(run: Run, corrected: Mapping[str, Estimate]) -> Iterator[str]:
    columns = summary_columns(run.summary, corrected)
    yield _row([column.name for column in columns])
    yield _row(["---" if column.is_text else "--:" for column in columns])
    escaped = [
        text_column._replace(cells=tuple(map(cell_text, text_column.cells))) if text_column.is_text else text_column
        for text_column in columns
    ]
    yield from map(_row, column_rows(escaped))


def cell_text(text: str) -> str:
    """Return text as code for a cell of a table, in which nothing is markup; a bar would end the cell, even in code."""
    return _code(text.replace("|", "¦")) if text else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    """Return text as code on one line, in which nothing is markup, a link or a mention.

    It is enclosed in more backticks than it contains in a row.
    """
    text = truncated(printable(text).strip() or " ", _LONGEST)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _in_html(text: str) -> str:
    """Return text for use among HTML tags, where Markdown would still interpret its marks."""
    return "".join(char if char.isalnum() else f"&#{ord(char)};" for char in printable(text))
