"""Scores as ``gen_ai.evaluation.result`` events of OpenTelemetry, sent as OTLP over HTTP.

https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
"""

import os
from collections.abc import Sequence
from urllib.parse import unquote

from pydantic import BaseModel, Field, JsonValue

from judgekit.distribution import own_version
from judgekit.errors import ExportError
from judgekit.formats.label_sources import JUDGED_MARK
from judgekit.integrations.destination import ExportTally
from judgekit.integrations.exported import ExportedScore
from judgekit.integrations.json_client import JsonClient, split_by_size

_LARGEST = 2_000_000


class _PartialSuccess(BaseModel):
    rejected: int = Field(default=0, alias="rejectedLogRecords")
    reason: str = Field(default="", alias="errorMessage")


class _Reply(BaseModel):
    partial: _PartialSuccess = Field(default_factory=_PartialSuccess, alias="partialSuccess")


class OpenTelemetry:
    """The receiver of logs at ``OTEL_EXPORTER_OTLP_LOGS_ENDPOINT`` or ``OTEL_EXPORTER_OTLP_ENDPOINT``."""

    def __init__(self) -> None:
        base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or "http://localhost:4318"
        address = os.environ.get("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT") or f"{base.rstrip('/')}/v1/logs"
        names = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS")
        headers = {name: value for variable in names for name, value in _headers(variable)}
        self._client = JsonClient(address, headers=headers, secrets=headers.values())
        self.system = f"OpenTelemetry at {self._client.address}"

    async def send(self, scores: Sequence[ExportedScore], tally: ExportTally, /) -> None:
        """Send an event for each score, even for those without a trace."""
        alone = sum(exported.place.trace_id is None for exported in scores)
        if alone:
            tally.notes["belong to no trace: their recordings have no OpenTelemetry trace id"] += alone
        resource: JsonValue = {"attributes": [_attribute("service.name", "judgekit")]}
        scope: JsonValue = {"name": "judgekit", "version": own_version()}
        for part in split_by_size([_record(exported) for exported in scores], _LARGEST):
            logs: JsonValue = [{"scope": scope, "logRecords": list(part)}]
            response = await self._client.post("", {"resourceLogs": [{"resource": resource, "scopeLogs": logs}]})
            is_json = bool(response.content) and "json" in response.headers.get("content-type", "")
            reply = self._client.parsed(response, _Reply) if is_json else _Reply()
            tally.exported += len(part) - reply.partial.rejected
            if reply.partial.rejected:
                reason = reply.partial.reason or "without a reason"
                tally.left_out[f"the receiver rejects them: {reason}"] += reply.partial.rejected

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _headers(variable: str) -> list[tuple[str, str]]:
    """Return the headers in a variable, such as ``api-key=secret,other=value``; values are percent-encoded."""
    headers: list[tuple[str, str]] = []
    for part in filter(str.strip, os.environ.get(variable, "").split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise ExportError(f"{variable}: expected name=value, separated by commas")
        headers.append((name.strip(), unquote(value.strip())))
    return headers


def _record(exported: ExportedScore) -> dict[str, JsonValue]:
    score, location, time = exported.score, exported.place, str(round(exported.at.timestamp() * 1_000_000) * 1_000)
    attributes: dict[str, str | float | bool | None] = {
        "gen_ai.evaluation.name": score.scorer,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": score.label,
        "gen_ai.evaluation.explanation": score.reason or None,
        "gen_ai.response.id": location.response_id,
        "error.type": (score.error or "_OTHER") if score.status == "failed" else None,
        "judgekit.score_id": str(exported.id),
        "judgekit.status": score.status,
        JUDGED_MARK: bool(score.calls),
        "judgekit.sample_id": exported.row.sample_id,
    }
    record: dict[str, JsonValue] = {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "eventName": "gen_ai.evaluation.result",
        "attributes": [_attribute(name, value) for name, value in attributes.items() if value is not None],
    }
    if location.trace_id is not None:
        record |= {"traceId": location.trace_id.lower(), "flags": 1}
        if location.span_id is not None:
            record["spanId"] = location.span_id.lower()
    return record


def _attribute(name: str, value: str | float | bool) -> JsonValue:  # noqa: FBT001 - a value like others
    kind = "boolValue" if isinstance(value, bool) else "stringValue" if isinstance(value, str) else "doubleValue"
    return {"key": name, "value": {kind: value}}
