"""Scores as annotations of traces in Phoenix: https://arize.com/docs/phoenix/sdk-api-reference/rest-api."""

import os
import re
from collections.abc import Sequence
from itertools import groupby

from pydantic import JsonValue

from judgekit.integrations.destination import ExportTally
from judgekit.integrations.exported import ExportedScore
from judgekit.integrations.json_client import JsonClient
from judgekit.judges.providers.secrets import read_secret

_ADDRESSES = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL")
_OTLP_PATH = re.compile(r"/+v1/traces/?\Z")


class Phoenix:
    """The server at ``PHOENIX_COLLECTOR_ENDPOINT`` or ``PHOENIX_BASE_URL``, with the key in ``PHOENIX_API_KEY``, if any."""

    def __init__(self) -> None:
        address = next(filter(None, map(os.environ.get, _ADDRESSES)), "http://localhost:6006")
        key = read_secret("PHOENIX_API_KEY", "Phoenix") if os.environ.get("PHOENIX_API_KEY", "").strip() else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = JsonClient(_OTLP_PATH.sub("", address), headers=headers, secrets=[key])
        self.system = f"Phoenix at {self._client.address}"

    async def send(self, scores: Sequence[ExportedScore], tally: ExportTally, /) -> None:
        """Send the scores that have an OpenTelemetry trace."""
        traced = [
            (exported.place.trace_id.lower(), exported) for exported in scores if exported.place.trace_id is not None
        ]
        if absent := len(scores) - len(traced):
            tally.left_out["the recording has no OpenTelemetry trace id"] += absent
        if not traced or await self._sent([_item(trace_id, exported) for trace_id, exported in traced], tally):
            return
        for trace_id, those in groupby(traced, key=lambda pair: pair[0]):  # one trace that is missing refuses them all
            items = [_item(trace_id, exported) for _, exported in those]
            if not await self._sent(items, tally):
                tally.left_out["Phoenix has no trace of this id"] += len(items)

    async def _sent(self, items: Sequence[dict[str, JsonValue]], tally: ExportTally) -> bool:
        """Send annotations, and return whether Phoenix has all of their traces; otherwise, none is kept."""
        body: JsonValue = {"data": list(items)}
        response = await self._client.post("/v1/trace_annotations?sync=true", body, accepted=[404])
        if response.status_code == 404:
            if "do not exist" in response.text:
                return False
            await self._client.post("/v1/trace_annotations?sync=true", body)  # another 404 is an error
        tally.exported += len(items)
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _item(trace_id: str, exported: ExportedScore) -> dict[str, JsonValue]:
    score = exported.score
    label = score.label if score.status == "scored" else score.status
    return {
        "trace_id": trace_id,
        "name": score.scorer,
        "annotator_kind": "LLM" if score.calls else "CODE",
        "result": {"score": score.value, "label": label, "explanation": score.reason or None},
        "metadata": exported.metadata,
        "identifier": str(exported.id),
    }
