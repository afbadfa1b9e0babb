"""A base for readers of agent frameworks, whose messages say the same as those of Chat Completions in other fields."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_message, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import MessagesReader, build_sample
from judgekit.formats.values import first_value, head, messages_field, objects_in, without
from judgekit.traces.message import JsonObject, Message
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample


class FrameworkReader(MessagesReader):
    """A reader of lists of a framework's messages, and of rows with a list in ``messages``.

    Each message is restated as one or more of Chat Completions, which take over all fields that have no name there.
    Beside them, these may have a ``timestamp``, and an answer ``model``, ``finish_reason`` and ``usage``.
    """

    @abstractmethod
    def is_message(self, message: JsonObject, /) -> bool:
        """Return whether only this framework writes such a message."""

    @abstractmethod
    def restated(self, message: JsonObject, /) -> Sequence[JsonObject]:
        """Return a message as messages of Chat Completions."""

    def messages(self, row: FieldTracker) -> list[Message]:
        """Take the messages of a row."""
        return [
            message
            for index, recorded in enumerate(row.objects("messages"))
            for message in read_restated(self.restated(recorded.leftover()), f"messages[{index}]", row.warnings)
        ]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by the id of its row if there is one."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        messages = self.messages(row)
        if not messages:
            raise TraceError("messages: expected messages, found none")
        return build_sample(row, index, {"messages": messages, "termination": row.text("stop_reason")})

    def is_conversation(self, document: JsonValue, /) -> bool:
        """Return whether a document is a conversation: some messages can only be this framework's."""
        return any(map(self.is_message, objects_in(head(messages_field(document)))))


def read_restated(messages: Iterable[JsonObject], path: str, warnings: list[TraceWarning]) -> list[Message]:
    """Read messages of Chat Completions; see `FrameworkReader`."""
    read: list[Message] = []
    for fields in messages:
        message = FieldTracker(fields, path, warnings)
        about: dict[str, object] = {"timestamp": message.time("timestamp")}
        if message.peek("role") == "assistant":
            about |= {"model": message.text("model"), "finish_reason": message.text("finish_reason")}
            about["usage"] = read_usage(message.object("usage"))
        read.append(read_message(message, **about))
    return read


def media_part(kind: str, media: JsonObject, sources: Sequence[str], mime_name: str = "mime_type") -> JsonObject:
    """Return a part with media, which one of the sources holds: a URL, or base64 data of a type."""
    source, mime_type = first_value(media, *sources), media.get(mime_name)
    rest = without(media, mime_name, *(name for name in sources if media.get(name) == source))
    if isinstance(source, str) and isinstance(mime_type, str) and ":" not in source:
        source = f"data:{mime_type};base64,{source}"
        mime_type = None
    return {"type": kind, kind: {"url": source}, "mime_type": mime_type, **rest}
