"""Scores in Langfuse: https://api.reference.langfuse.com/#tag/scores."""

import os
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import to_json

from judgekit.errors import ExportError, join_limited
from judgekit.integrations.destination import ExportTally
from judgekit.integrations.exported import ExportedScore
from judgekit.integrations.json_client import JsonClient
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
        for part in _requests(items):
            response = await self._client.post("/api/public/scores", [*part])
            reply = self._reply(response.content) if response.status_code == 207 else _Reply()
            tally.exported += len(part) - reply.rejected
            if reply.rejected:
                why = join_limited(dict.fromkeys(exported.message for exported in reply.errors)) or "without a reason"
                tally.left_out[f"Langfuse rejects them: {why}"] += reply.rejected

    def _reply(self, content: bytes) -> _Reply:
        try:
            return _Reply.model_validate_json(content)
        except ValidationError as error:
            raise ExportError(f"{self.system}: the response cannot be read") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _requests(items: Sequence[dict[str, JsonValue]]) -> Iterator[Sequence[dict[str, JsonValue]]]:
    """Yield the items in parts that fit into a request, as far as single items do."""
    part: list[dict[str, JsonValue]] = []
    size = 0
    for item in items:
        more = len(to_json(item)) + 1
        if part and size + more > _LARGEST:
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part


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
