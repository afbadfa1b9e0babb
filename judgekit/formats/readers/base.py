"""The contract of readers, and the steps from a record to a sample that all readers share."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.reply import OTHER_CHOICES
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging.comparison import call_ids, utterances
from judgekit.formats.row_facts import FACT_COLUMNS, VERBATIM_COLUMNS, extra_fields, make_sample, read_facts, to_text
from judgekit.formats.unread import (
    ABOUT_MESSAGES,
    canonical_column,
    foreign_column_warnings,
    unread_message_warnings,
    unread_reference_warnings,
    unread_text_warnings,
)
from judgekit.formats.values import as_object, head, lookup, objects_in, without
from judgekit.traces.fast_models import is_encodable, set_unvalidated
from judgekit.traces.message import JsonObject, Message, ReasoningPart
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import Label, ToolDefinition, TraceWarning
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace

HIDDEN_WORK = (
    "no agent that hands back to its supervisor shows a tool call, and none is recorded with"
    ' output_mode="last_message"; use output_mode="full_history"'
)

_ANSWERS: Sequence[tuple[str, str, type]] = (
    ("openai-chat", "choices", list),
    ("openai-responses", "output", list),
    ("bedrock", "output", dict),
    ("gemini", "candidates", list),
    ("gemini", "promptFeedback", dict),
    ("gemini", "prompt_feedback", dict),
    ("anthropic", "content", list),
    ("bedrock", "messageStart", dict),
    ("bedrock", "contentBlockDelta", dict),
    ("bedrock", "messageStop", dict),
)
"""The fields and types in which APIs answer, streamed or not."""
_EVENTS = (("openai-responses", "response."), ("anthropic", "message_"), ("anthropic", "content_block_"))
"""Prefixes of the types of streamed events."""

_NO_CALL = "a tool result that answers no earlier call"
_NO_ERRORS = ("", "none", "null", "nan", "false", "0")
"""Texts in place of an error, as tables write them."""
_NO_QUESTION = 'no user message; if only responses were logged, add their requests: {"request": ..., "response": ...}'
WHOLE_CONVERSATION_WARNINGS = (_NO_CALL, _NO_QUESTION, HIDDEN_WORK)
"""Warnings about a whole conversation, which make no sense for a part of it."""


class Reader(Protocol):
    """A reader of one format."""

    @property
    def name(self) -> str:
        """The format's name, as given to ``format=``."""
        ...

    @property
    def shape(self) -> str:
        """The shape of a record of this format, shown when a file is not recognized."""
        ...

    @property
    def joins_lines(self) -> bool:
        """Whether all lines of a JSONL file belong together, like the rows of a log, and are read as one list."""
        ...

    def recognizes(self, value: JsonValue) -> bool:
        """Return whether a parsed file, or one line of a JSONL file, has this format."""
        ...

    def records(self, document: JsonValue) -> Iterable[JsonValue]:
        """Return the conversations in a parsed file or one line of a JSONL file; raise a `TraceError` without any."""
        ...

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Return one conversation as a sample; raise a `TraceError` if it does not have this format.

        The index is the position of the conversation in the file.
        """
        ...


class RowReader:
    """A base for readers of files that hold one record or a list of records."""

    joins_lines = False

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the items of a list, or the document as the only record."""
        return as_records(document)


class MessagesReader(RowReader, ABC):
    """A base for readers of lists of messages, and of rows with such a list."""

    @abstractmethod
    def is_conversation(self, document: JsonValue, /) -> bool:
        """Return whether a document is one conversation of this format."""

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize a conversation, or a list that begins with one."""
        return any(map(self.is_conversation, self.records(value)[:1]))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list of messages as one conversation, and a list of rows or of such lists as many."""
        return [document] if self.is_conversation(document) else as_records(document)


def first_record(document: JsonValue) -> JsonValue:
    """Return the first item of a list, ``None`` if it is empty; return any other document as it is."""
    return next(iter(document), None) if isinstance(document, list) else document


def as_records(document: JsonValue) -> list[JsonValue]:
    """Return a list as it is, and any other document as a list of one."""
    return document if isinstance(document, list) else [document]


def take_response(row: FieldTracker, record: JsonValue, *fields: str) -> FieldTracker | None:
    """Return the response of a pair if it has one of the fields in which its API answers.

    Anything else in its place (an error, a text, nothing) stays in the row, with a warning.
    """
    response = as_object(row.peek("response"))
    error = response.get("error") or response.get("Error")
    if any(map(response.get, fields)) or (not error and not response.keys().isdisjoint(fields)):
        return row.object("response")
    if isinstance(record, dict):
        warn_missing_response(row, record)
    return None


def warn_missing_response(row: FieldTracker, record: JsonObject) -> None:
    """Warn about anything in place of a response."""
    name = "response" if "response" in record else "error"
    response = record.get(name)
    if detect_response_apis(response):
        row.warn("contains an answer in another format; kept as is", name)
    elif name == "response" or ("request" in record and response):
        error = lookup(response, "error") or lookup(response, "Error")
        shown = "" if response is None else f": {short_repr(error or response)}"
        row.warn(f"contains no answer{shown}", name)


def detect_response_apis(response: JsonValue) -> set[str]:
    """Return the APIs whose response this may be; none if it is not an answer, such as an error."""
    named: set[str] = set()
    for reply in objects_in(head(as_records(response))):
        event = reply.get("type")
        named |= {name for name, start in _EVENTS if isinstance(event, str) and event.startswith(start)}
        named |= {name for name, field, kind in _ANSWERS if isinstance(reply.get(field), kind) and reply[field]}
    return named


def may_be_response_of(name: str, response: JsonValue) -> bool:
    """Return whether a response may belong to an API: it is not another API's, though it may be an error."""
    named = detect_response_apis(response)
    return not named or name in named


def unwrap_batch_line(record: JsonValue) -> JsonValue:
    """Return a line of a batch file as the request or response in it, named by its ``custom_id``."""
    if not isinstance(record, dict) or "custom_id" not in record or "messages" in record:
        return record
    left = dict(record)
    pair: JsonObject = {"id": left.pop("custom_id")}
    for name, inner in (("response", "body"), ("result", "message")):
        if isinstance(whole := left.get(name), dict) and inner in whole:
            pair["response"] = whole[inner]
            left[name] = without(whole, inner)
    for name in ("body", "params"):
        if isinstance(left.get(name), dict):
            pair["request"] = left.pop(name)
    facts: JsonObject = {name: left.pop(name) for name in FACT_COLUMNS & left.keys()}
    return {**facts, **pair, "batch": left} if len(pair) > 1 else record


def group_name(identity: str | None, within: str | None) -> str | None:
    """Return the name of a group: a task's id, prefixed by its domain or dataset if there is one."""
    return f"{within} {identity}" if identity and within else identity


def append_reply(messages: Sequence[Message], replies: Sequence[Message], row: FieldTracker) -> list[Message]:
    """Return the messages of a request and its response, which some logs have already added to the request.

    That is so if the messages end with the response, or the last turn's calls have the ids of its calls.
    """
    turn = next((at + 1 for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), 0)
    tail = messages[max(turn, len(messages) - len(replies)) :]
    ids = call_ids(replies)
    same = any(message.text.strip() for message in replies) and utterances(tail) == utterances(replies)
    if not (same or (ids and ids <= call_ids(messages[turn:]))):
        return [*messages, *replies]
    row.warn("the response is already in the messages, and is read once")
    if utterances(tail) != utterances(replies):
        return [*messages]
    both = zip(tail, replies, strict=True)
    merged = [reply.model_copy(update={"extra": {**message.extra, **reply.extra}}) for message, reply in both]
    return [*messages[: len(messages) - len(tail)], *merged]


def unpaired_warnings(messages: Sequence[Message]) -> list[TraceWarning]:
    """Return a warning for each tool result that answers no call."""
    return [TraceWarning(_NO_CALL, path=f"messages[{index}]") for index in pair_results(messages).orphans]


def build_sample(
    row: FieldTracker,
    index: int,
    trace: Mapping[str, object],
    textless: Collection[str] = (),
    /,
    *,
    identity: str | None = None,
    **known: object,
) -> Sample:
    """Return the sample of a record whose conversation has been read.

    Fields of a `Sample` next to the conversation are taken over, so references can be added to files
    of any format. The leftover of the row goes into the trace's ``extra``.

    Args:
        row: The record, from which all known fields have been taken.
        index: The record's position in the file, its name if it has no ``identity`` and the row no ``id``.
        trace: The fields of the `Trace`, with its messages. Without an ``error``, it is that of the row or response.
        textless: The names of fields in the ``extra`` of messages that never hold a message's text in this format.
        identity: The name of sample and trace.
        known: Facts that the format itself has, as fields of the `Sample`. They override those next to the conversation.
    """
    parameter = "prediction" if isinstance(row.peek("prediction"), dict) else None  # a parameter of OpenAI's requests
    row_facts = {name: row.take(name) for name in row if name in FACT_COLUMNS and name != parameter}
    row_facts = read_facts(row_facts, row.warnings) if row_facts else row_facts
    identity = identity or row.id("id") or str(index)
    fields = {name: value for name, value in trace.items() if value is not None and value != []}
    if "error" not in trace and (error := recorded_error(row.peek("error"), row.peek("response"))):
        fields["error"] = error
    messages = cast("Sequence[Message]", fields.pop("messages", ()))
    if "user" not in [message.role for message in messages]:
        row.warn(_NO_QUESTION)
    extra = row.leftover()
    warnings = (
        *row.warnings,
        *unpaired_warnings(messages),
        *(() if fields.get("children") else hidden_work_warnings(messages)),
        *_unread(messages, extra, fields, {**row_facts, **known}, row, textless),
    )
    if extra and not is_encodable(extra):
        fields["extra"], extra = extra, {}
    facts = {"id": identity, "messages": tuple(messages), "warnings": warnings, "extra": extra}
    built = Trace.model_validate(fields)
    set_unvalidated(built, **{**facts, "id": built.id or identity, "extra": extra or built.extra})
    return make_sample(identity, {**row_facts, **known, "trace": built})


def recorded_error(error: JsonValue, response: JsonValue) -> str | None:
    """Return the error of a record, or of the response in it, as text; ``None`` if there is none."""
    of_response = lookup(response, "error") or lookup(response, "Error")
    for recorded in (error, of_response):
        text = to_text(lookup(recorded, "message") or recorded) if recorded else ""
        if text.strip().casefold() not in _NO_ERRORS:
            return text
    return None


def build_row_sample(
    row: FieldTracker,
    identity: str,
    messages: Sequence[Message],
    known: Mapping[str, object],
    tools: Sequence[ToolDefinition] = (),
    labels: Sequence[Label] = (),
) -> Sample:
    """Return the sample of a dataset row, from which the conversation and ``known`` facts have been taken.

    Its other columns become the sample's fields. Warnings name columns that have a meaning in other evaluation systems,
    or that hold messages.
    """
    rest = row.leftover()
    row_facts = read_facts(rest, row.warnings)
    columns = {name: value for name, value in rest.items() if name not in References.__annotations__}
    own = extra_fields(row_facts)
    others = {name: value for name, value in columns.items() if name not in VERBATIM_COLUMNS}
    warned = {(warning.path or "").rpartition(".")[2] for warning in row.warnings}
    hidden = {
        **{name: value for name, value in columns.items() if name not in warned},
        "fields": {name: own[name] for name in own if name not in VERBATIM_COLUMNS},
        "metadata": row_facts.get("metadata"),
    }
    extras = {} if "extra" in warned else _extras(messages, warned)  # messages that a reader made are checked
    unread = unread_message_warnings({**hidden, **extras}, messages)
    texts = [message.text for message in messages]
    again = {name for name, text in others.items() if canonical_column(name) in ("input", "response") and text in texts}
    meant = foreign_column_warnings({name: value for name, value in others.items() if name not in again})
    renamed = {warning.path for warning in meant if canonical_column(warning.path or "")}
    unread = [warning for warning in unread if warning.path not in renamed]
    named = {warning.path for warning in unread}
    warnings = [*row.warnings, *unpaired_warnings(messages), *unread]
    warnings += [warning for warning in meant if warning.path not in named]
    warnings += unread_text_warnings(others, messages)
    error = recorded_error(rest.get("error"), None)
    trace = Trace(id=identity, messages=messages, tools=tools, labels=labels, error=error, warnings=warnings)
    return make_sample(identity, {**row_facts, "fields": {**columns, **own}, **known, "trace": trace})


def _unread(
    messages: Sequence[Message],
    extra: JsonObject,
    trace: Mapping[str, object],
    facts: Mapping[str, object],
    row: FieldTracker,
    textless: Collection[str],
) -> list[TraceWarning]:
    """Return warnings about unread messages and calls next to the conversation, unless the reader warned itself."""
    paths = [warning.path for warning in row.warnings if warning.path]
    rest = {name: value for name, value in extra.items() if name not in paths} if paths else dict(extra)
    named = [*unread_reference_warnings(rest), *unread_text_warnings(rest, messages)] if rest else []
    rest |= cast("JsonObject", {name: facts[name] for name in ("fields", "metadata") if name in facts})
    rest |= _extras(messages, {path.rpartition(".")[2] for path in paths if "." in path}, textless)
    if not rest:
        return named
    children = cast("Sequence[Trace]", trace.get("children", ()))
    return [*named, *unread_message_warnings(rest, [*messages, *_child_messages(children)])]


def _extras(messages: Sequence[Message], warned: Collection[str], textless: Collection[str] = ()) -> JsonObject:
    """Return the leftovers of each message, its parts and its calls, as messages of their own.

    In a message without text or calls, every leftover text counts as said, except that of ``textless`` fields.
    Reasoning without text is encrypted.
    """
    left: JsonObject = {}
    for at, message in enumerate(messages):
        calls = message.tool_calls if message.role == "assistant" else ()
        extras = [message.extra, *[call.extra for call in calls]]
        if not isinstance(message.content, str):
            extras += [
                getattr(part, "extra", {})
                for part in message.content
                if not (isinstance(part, ReasoningPart) and not part.text)
            ]
        if any(extras):
            kept = [{"role": message.role, **_without_warned(extra, warned)} for extra in extras if extra]
            for call in calls:
                if not (call.args or call.args_raw):
                    given = [value for value in call.extra.values() if isinstance(value, dict) and value]
                    kept += [{"name": call.name, "arguments": value} for value in given]
            if message.content == "" and not calls:
                unknown = without(message.extra, *ABOUT_MESSAGES, *textless)
                kept += [{"role": message.role, "content": text} for text in unknown.values() if isinstance(text, str)]
            left[f"messages[{at}].extra"] = cast("JsonValue", kept)
    return left


def _without_warned(extra: JsonObject, warned: Collection[str]) -> JsonObject:
    """Return the leftover of a message without fields that have a warning. Other choices always have one."""
    return {
        name: _without_warned(value, ()) if isinstance(value, dict) else value
        for name, value in extra.items()
        if name != OTHER_CHOICES and name not in warned
    }


def _child_messages(children: Iterable[Trace]) -> Iterator[Message]:
    for child in children:
        yield from child.messages
        yield from _child_messages(child.children)


def require_object(record: JsonValue) -> JsonObject:
    """Return the record if it is an object."""
    if not isinstance(record, dict):
        raise TraceError(f"expected an object, found {short_repr(record)}")
    return record


def hidden_work_warnings(messages: Sequence[Message]) -> list[TraceWarning]:
    """Return a warning if no agent that hands back to a supervisor of LangGraph shows a call of a tool.

    By default, supervisors keep only the last message of their agents.
    """
    calls = [
        (message.agent, call.name.startswith("transfer_back_to_"))
        for message in messages
        if message.role == "assistant"
        for call in message.tool_calls
    ]
    agents = {agent for agent, hands_back in calls if hands_back}
    if not agents or None in agents or any(agent in agents and not hands_back for agent, hands_back in calls):
        return []
    return [TraceWarning(HIDDEN_WORK)]
