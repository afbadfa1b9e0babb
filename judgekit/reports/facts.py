"""Facts about a run that its page shows without counting scores."""

from datetime import UTC

from pydantic import JsonValue

from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord


def run_facts(run: Run) -> dict[str, JsonValue]:
    """Return the facts of a run."""
    started, ended = (
        None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        for moment in (run.started_at, run.ended_at)
    )
    return {
        "number": run.number,
        **run.description._asdict(),
        "started": started,
        "ended": ended,
        "stopped": run.stop_reason,
        "inputs": [file.model_dump(mode="json") for file in run.inputs],
        "notes": list(run.notes),
        "version": run.record.version,
    }


def scorer_facts(scorer: ScorerRecord) -> dict[str, JsonValue]:
    """Return the facts of one of its scorers."""
    return scorer.model_dump(include={"name", "signature", "identity", "per_turn"})
