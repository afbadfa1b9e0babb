"""Scores as ``gen_ai.evaluation.result`` events of OpenTelemetry. An extra, ``judgekit[otel]``, imported when used."""

import re
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from judgekit.errors import ConfigError, TraceError, join_limited
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import JUDGED_MARK
from judgekit.formats.spans import read_spans
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context

_Attribute: TypeAlias = str | float

_TRACE_ID, _SPAN_ID = re.compile(r"(?i)(?!0{32})[0-9a-f]{32}"), re.compile(r"(?i)(?!0{16})[0-9a-f]{16}")
_AT_ONCE = 256
"""The number of events between two flushes, since background processors hold a limited number and drop the rest."""
_IDS_SHOWN = 5


class _Place(NamedTuple):
    """The trace of an event, its span and its response, as far as they are known."""

    trace_id: str | None = None
    span_id: str | None = None
    response_id: str | None = None


def emit_to_otel(
    rows: Iterable[Row], *, samples: Iterable[Sample] | None = None, provider: "LoggerProvider | None" = None
) -> int:
    """Emit each score as an event in its trace.

    The attributes are those of the semantic conventions, and ``judgekit.status``, ``judgekit.judged`` (whether a judge was
    asked) and ``judgekit.sample_id``. Only scored events have a value, and only failed ones an ``error.type``. The
    ``gen_ai.response.id`` is that of the response with the agent's last message. Source:
    https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md

    Args:
        rows: A `Run`, or some of its rows.
        samples: The samples that were scored, by whose ids the outermost spans of their traces, and the responses, are
            found; if not given, those that the `Run` kept. Without them, only the id of the trace is known.
        provider: The provider of loggers; if not given, the one that the program has set
            (``opentelemetry._logs.set_logger_provider``).

    Returns:
        The number of emitted events, which is that of the rows. A warning counts those without a trace, whose
        recordings have no trace id of OpenTelemetry.

    Raises:
        ConfigError: OpenTelemetry is not installed, or no provider is set, or it is shut down, so that events would be
            lost.
    """
    try:
        from opentelemetry._logs import get_logger_provider  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"OpenTelemetry cannot be imported ({error}): pip install 'judgekit[otel]'") from error
    provider = provider or get_logger_provider()
    if type(provider).__module__.startswith("opentelemetry._logs"):  # the API's own, which drops everything
        raise ConfigError("no logger provider is set: call opentelemetry._logs.set_logger_provider, or pass provider=")
    if samples is None:
        samples = (sample for _, sample in rows.conversations()) if isinstance(rows, Run) else ()
    places = _places(samples)
    logger = provider.get_logger("judgekit")
    emitted, alone = 0, list[str]()
    for row in rows:
        place = places.get(row.sample_id) or _Place()
        if place.trace_id is None:
            place = place._replace(trace_id=_valid(_TRACE_ID, row.trace_id))
        if place.trace_id is None:
            alone.append(row.sample_id)
        logger.emit(
            timestamp=time.time_ns(),
            context=_context(place),
            event_name="gen_ai.evaluation.result",
            attributes=_attributes(row, place),
        )
        emitted += 1
        if emitted % _AT_ONCE == 0:
            _flush(provider, emitted)
    _flush(provider, emitted)
    if alone:
        ids = join_limited(dict.fromkeys(map(repr, alone)), _IDS_SHOWN, ", ")
        told = f"{len(alone)} of {emitted} events belong to no trace: no OpenTelemetry trace id is known for the samples {ids}"
        warnings.warn(told, stacklevel=2)
    return emitted


def _places(samples: Iterable[Sample]) -> Mapping[str, _Place]:
    """Return the places of samples by their ids. An id with several places has an empty one."""
    places: dict[str, _Place] = {}
    for sample in samples:
        place = _place(sample.trace)
        if places.setdefault(sample.id, place) != place:
            places[sample.id] = _Place()
    return places


def _place(trace: Trace) -> _Place:
    """Return the outermost generative span of the trace that ended the conversation, and the agent's last response."""
    try:
        spans = read_spans(FieldTracker({"spans": trace.extra.get("spans")}))
    except TraceError:  # spans of another format
        return _Place()
    last = next((message.id for message in reversed(trace.messages) if message.role == "assistant"), None)
    response_id = last if last in {span.response_id for span in spans} else None
    if not spans or (trace_id := _valid(_TRACE_ID, spans[-1].trace_id)) is None:
        return _Place(response_id=response_id)
    inside = (span for span in spans if span.trace_id == trace_id)
    outermost = min(inside, key=lambda span: (not span.is_generative, span.depth))
    return _Place(trace_id, _valid(_SPAN_ID, outermost.id), response_id)


def _valid(form: re.Pattern[str], identity: str | None) -> str | None:
    return identity if identity is not None and form.fullmatch(identity) else None


def _context(place: _Place) -> "Context":
    """Return the context of an ended span, or one without a span, since the caller's span would apply otherwise."""
    from opentelemetry.context import Context  # noqa: PLC0415
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context  # noqa: PLC0415

    trace_id, span_id = (int(one or "0", 16) for one in (place.trace_id, place.span_id))
    found = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(found), Context())


def _attributes(row: Row, place: _Place) -> dict[str, _Attribute]:
    score = row.score
    found: dict[str, _Attribute | None] = {
        "gen_ai.evaluation.name": score.scorer,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": score.label,
        "gen_ai.evaluation.explanation": score.reason or None,
        "gen_ai.response.id": place.response_id,
        "error.type": (score.error or "_OTHER") if score.status == "failed" else None,
        "judgekit.status": score.status,
        JUDGED_MARK: bool(score.calls),
        "judgekit.sample_id": row.sample_id,
    }
    return {name: value for name, value in found.items() if value is not None}


def _flush(provider: "LoggerProvider", emitted: int) -> None:
    """Wait until all events are exported. Providers other than the SDK's may not support this."""
    flush: object = getattr(provider, "force_flush", None)
    if callable(flush) and flush() is False:
        found = f"the logger provider did not export the last of {emitted} events"
        raise ConfigError(f"{found}: it was shut down, or its exporter takes too long")
