"""Scores in Langfuse: https://api.reference.langfuse.com/#tag/scores."""

import os
from collections.abc import Sequence

from pydantic import BaseModel, JsonValue

from judgekit.errors import join_limited
from judgekit.integrations.destination import ExportTally
from judgekit.integrations.exported import ExportedScore
from judgekit.integrations.json_client import JsonClient, split_by_size
from judgekit.judges.providers.secrets import read_secret

_LARGEST = 900_000
"""The most bytes of a request, of which Langfuse takes 1 MiB."""


class _Error(BaseModel):
    message: str = ""


class _Reply(BaseModel):
    rejected: int = 0
    errors: list[_Error] = []


class Langfuse:
    """The project whose keys are in ``LANGFUSE_PUBLIC_KEY`` and ``LANGFUSE_SECRET_KEY``."""

    def __init__(self) -> None:
        address = os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST") or "https://cloud.langfuse.com"
        keys = tuple(read_secret(name, "Langfuse") for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"))
        self._client = JsonClient(address, auth=(keys[0], keys[1]), secrets=keys)
        self.system = f"Langfuse at {self._client.address}"

    async def send(self, scores: Sequence[ExportedScore], tally: ExportTally, /) -> None:
        """Send the scores that have a value and a trace."""
        items: list[dict[str, JsonValue]] = []
        for exported in scores:
            trace_id = exported.place.trace_id or exported.row.trace_id
            if trace_id is None:
                tally.left_out["the recording has no trace id"] += 1
            elif exported.score.value is None:
                tally.unscored += 1
            else:
                items.append(_item(exported, trace_id, exported.score.value))
        for part in split_by_size(items, _LARGEST):
            response = await self._client.post("/api/public/scores", list(part))
            reply = self._client.parsed(response, _Reply) if response.status_code == 207 else _Reply()
            tally.exported += len(part) - reply.rejected
            if reply.rejected:
                why = join_limited(dict.fromkeys(exported.message for exported in reply.errors)) or "without a reason"
                tally.left_out[f"Langfuse rejects them: {why}"] += reply.rejected

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _item(exported: ExportedScore, trace_id: str, value: float) -> dict[str, JsonValue]:
    return {
        "id": str(exported.id),
        "traceId": trace_id,
        "name": exported.score.scorer,
        "value": value,
        "dataType": "NUMERIC",
        "comment": exported.score.reason or None,
        "metadata": exported.metadata,
        "timestamp": exported.at.isoformat(),  # Langfuse only replaces a score of the same id and time
    }
