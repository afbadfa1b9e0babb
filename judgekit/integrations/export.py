"""Exports: the scores of a run, written into the system that has their traces."""

import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Literal, TypeAlias, get_args

from judgekit.errors import ConfigError, check_choice
from judgekit.integrations.destination import Destination, ExportResult, ExportTally
from judgekit.integrations.exported import exported_scores
from judgekit.runs.results import Run
from judgekit.scoring import run_sync
from judgekit.threads import run_in_thread
from judgekit.traces.sample import Sample

ExportTarget: TypeAlias = Literal["langfuse", "phoenix", "mlflow"]
"""A system that scores are exported to."""
_HOMES: dict[ExportTarget, str] = {
    "langfuse": "judgekit.integrations.langfuse:Langfuse",
    "phoenix": "judgekit.integrations.phoenix:Phoenix",
    "mlflow": "judgekit.integrations.mlflow:MLflow",
}
_BATCH = 100


def export(run: Run, *, to: ExportTarget, samples: Iterable[Sample] | None = None) -> ExportResult:
    """Write the scores of a run into the system that has their traces.

    Each score has a fixed id, so a second export changes nothing, and one of a run that was resumed adds what is new.
    Addresses and keys are those of the system's own environment variables, and nothing else is sent than the scores.

    Args:
        run: The run.
        to: The system.
        samples: The samples that were scored, by whose ids the spans of their traces and the times are found; if not
            given, those that the run kept. Without them, only the id of the trace is known.

    Returns:
        How many scores were exported. A warning counts those that were not.

    Raises:
        ConfigError: The system is unknown, or what it needs is not installed.
        AuthenticationError: The environment has no key, or the system refuses it.
        ExportError: The system refuses the scores, or cannot be reached; what was sent before is kept there.
    """
    exported = run_sync(lambda: send_scores(run, to=to, samples=samples))
    _warn(exported)
    return exported


async def aexport(run: Run, *, to: ExportTarget, samples: Iterable[Sample] | None = None) -> ExportResult:
    """Write the scores of a run into the system that has their traces; see `export`."""
    exported = await send_scores(run, to=to, samples=samples)
    _warn(exported)
    return exported


async def send_scores(run: Run, *, to: ExportTarget, samples: Iterable[Sample] | None = None) -> ExportResult:
    """Return the result of an export, without a warning; see `export`."""
    if not isinstance(run, Run):  # pyright: ignore[reportUnnecessaryIsInstance] - users may pass anything
        raise ConfigError(f"expected a Run, found {type(run).__name__}: its scores have no ids that stay the same")
    check_choice("to", to, get_args(ExportTarget))
    module, _, name = _HOMES[to].partition(":")
    destination: Destination = getattr(import_module(module), name)()
    tally, scores = ExportTally(), exported_scores(run, samples)

    try:
        while batch := await run_in_thread(lambda: list(islice(scores, _BATCH))):
            await destination.send(batch, tally)
    finally:
        await destination.aclose()
    return ExportResult(system=destination.system, **vars(tally))


def result_lines(exported: ExportResult) -> Iterator[str]:
    """Yield what became of the scores that were not exported, a line for each reason."""
    for reason, count in exported.left_out.items():
        yield f"{count:,} not exported: {reason}"
    if exported.unscored:
        yield f"{exported.unscored:,} not exported: skipped, failed and abstained scores have no value"


def _warn(exported: ExportResult) -> None:
    if lines := [*result_lines(exported)]:
        warnings.warn(f"{exported.system}: {'; '.join(lines)}", stacklevel=3)
