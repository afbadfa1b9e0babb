"""Messages of OpenTelemetry's conventions without their span: in parts, or as events."""

from pydantic import JsonValue

from judgekit.formats.blocks import otel
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, as_records, build_sample
from judgekit.formats.values import messages_field
from judgekit.traces.sample import Sample


class OTelMessagesReader(RowReader):
    """A reader of lists of messages and rows of ``messages``, for other readers."""

    name = "otel"
    shape = 'otel: [{"role": "user", "parts": [{"type": "text", "content": ...}]}, ...]'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize messages by their parts, and events by their names."""
        messages = messages_field(value)
        return otel.is_otel(messages) or otel.are_events(messages)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the messages as one conversation."""
        return [document] if self.recognizes(document) else as_records(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        read = otel.read_event if otel.are_events(row.peek("messages")) else otel.read_message
        return build_sample(row, index, {"messages": [said for turn in row.objects("messages") for said in read(turn)]})
