"""Responses of OpenAI Chat Completions that were streamed, put together from their chunks.

{"object": "chat.completion.chunk", "id": "a", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
{"object": "chat.completion.chunk", "id": "a", "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]}
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError, shortened
from judgekit.traces.blocks.reply import is_blank
from judgekit.traces.message import JsonObject

_PIECES = frozenset(
    (
        *("content", "reasoning_content", "reasoning", "refusal", "arguments", "input"),
        *("text", "thinking", "summary", "data", "transcript"),  # in reasoning_details, thinking_blocks and audio
    )
)
"""What is sent piece by piece. All else is sent once, or again and again."""
_OF_PARTS = ("content", "thinking", "thinking_blocks", "reasoning_details")
"""Lists of parts, of which servers send the texts piece by piece."""


def is_chunk(value: JsonValue) -> bool:
    """Whether a value is a chunk; some servers leave out what ``object`` it is."""
    return isinstance(value, dict) and (
        value.get("object") == "chat.completion.chunk" or any("delta" in choice for choice in _choices(value))
    )


def are_chunks(value: JsonValue) -> bool:
    """Whether a value is a list of chunks. Some servers begin a stream with something else."""
    return isinstance(value, list) and any(map(is_chunk, value[:50]))


def assemble(chunks: Sequence[JsonValue]) -> list[JsonObject]:
    """The responses, as the API gives them when they are not streamed.

    Chunks belong together by their id, and one without an id to the chunk before it. An id whose response has ended is
    that of another response when more is said under it. Some servers give each chunk an id of its own: chunks in a row
    whose ids do not come back are one response, up to its end, which keeps their ids in ``streamed_ids``. Behind the
    end, a chunk without choices, as of usage, belongs to it too, and one with choices begins another response.

    Raises:
        TraceError: A chunk is no object, or none belongs to a response.
    """
    responses: list[list[JsonObject]] = []
    under_way: dict[str, tuple[list[JsonObject], set[int]]] = {}
    early: list[JsonObject] = []
    uses = Counter(map(_id, chunks))
    last = ""
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, dict):
            raise TraceError(f"[{number}]: expected a chunk, found {shortened(chunk)}")
        identity = _id(chunk)
        ends = _ending(chunk)
        goes_on = last in under_way and uses[last] == 1 and under_way[last][1].isdisjoint(map(_index, _choices(chunk)))
        # Groq gives the end of all its responses one id.
        is_next = uses[identity] == 1 or (identity not in under_way and bool(ends) and not _speaking(chunk))
        if identity and not (goes_on and is_next):
            last = identity
        elif last not in under_way and not _choices(chunk):
            early.append(chunk)
            continue
        if last not in under_way or not under_way[last][1].isdisjoint(_speaking(chunk)):
            under_way[last] = ([*early], set())
            early = []
            responses.append(under_way[last][0])
        response, ended = under_way[last]
        response.append(chunk)
        ended |= ends
    if not responses:
        raise TraceError("holds no messages")
    return [_response(chunks) for chunks in responses]


def _choices(chunk: JsonObject) -> list[JsonObject]:
    choices = chunk.get("choices")
    return [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []


def _id(chunk: JsonValue) -> str:
    identity = chunk.get("id") if isinstance(chunk, dict) else None
    return identity if isinstance(identity, str) else ""


def _index(choice: JsonObject) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _ending(chunk: JsonObject) -> set[int]:
    """The choices that a chunk ends."""
    return {_index(choice) for choice in _choices(chunk) if choice.get("finish_reason")}


def _speaking(chunk: JsonObject) -> set[int]:
    """The choices to which a chunk adds something."""
    deltas = ((_index(choice), choice.get("delta")) for choice in _choices(chunk))
    return {
        index
        for index, delta in deltas
        if isinstance(delta, dict)
        and any(value and not is_blank(value) for name, value in delta.items() if name != "role")
    }


def _response(chunks: Sequence[JsonObject]) -> JsonObject:
    choices: dict[int, list[JsonObject]] = {}
    for chunk in chunks:
        for choice in _choices(chunk):
            choices.setdefault(_index(choice), []).append(choice)
    response = _joined([{name: value for name, value in chunk.items() if name != "choices"} for chunk in chunks])
    response["choices"] = [_choice(choices[index]) for index in sorted(choices)]
    ids: list[JsonValue] = list(dict.fromkeys(identity for chunk in chunks if (identity := _id(chunk))))
    if len(ids) > 1:
        response |= {"id": ids[0], "streamed_ids": ids}
    usages: list[JsonValue] = [usage for chunk in chunks if (usage := chunk.get("usage"))]
    if len(usages) > 1:  # so far, in each chunk
        response["usage"] = usages[-1]
        response["usage_before"] = usages[:-1]
    return response


def _choice(pieces: Sequence[JsonObject]) -> JsonObject:
    choice = _joined(pieces)
    message = choice.pop("delta", {})
    choice["message"] = {"role": "assistant", **message} if isinstance(message, dict) else message
    if not choice.get("finish_reason"):
        choice["breaks_off"] = True
    return choice


def _joined(pieces: Iterable[JsonObject]) -> JsonObject:
    """An object from its pieces."""
    fields: dict[str, list[JsonValue]] = {}
    for piece in pieces:
        for name, value in piece.items():
            if value is not None:
                fields.setdefault(name, []).append(value)
    return {name: _whole(name, values) for name, values in fields.items()}


def _whole(name: str, values: list[JsonValue]) -> JsonValue:
    texts = [value for value in values if isinstance(value, str)]
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    if len(texts) == len(values) and name in _PIECES:
        return "".join(texts)
    if len(texts) == len(values) and name == "name":
        return "".join(dict.fromkeys(texts))
    if len(objects) == len(values):
        return _joined(objects)
    if len(lists) == len(values) or (lists and name in _PIECES):
        parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
        if name in _OF_PARTS:
            parts = list(map(_typed, parts))
        return _listed(name, parts)
    different = {repr(value): value for value in values if value != ""} or {"": ""}
    return next(iter(different.values())) if len(different) == 1 else list(different.values())


def _typed(part: JsonValue) -> JsonValue:
    return {"type": "text", "text": part} if isinstance(part, str) else part


def _listed(name: str, parts: list[JsonValue]) -> JsonValue:
    """A list of parts: those of one ``index`` are pieces of one object, as are those of one tool call."""
    pieces = [part for part in parts if isinstance(part, dict)]
    if len(pieces) < len(parts):
        return parts
    if name == "executed_tools":  # Groq sends them again when they have a result
        return parts
    if name != "tool_calls" and not all("index" in piece for piece in pieces):
        return _neighbours(pieces) if name in _OF_PARTS else parts
    groups: list[list[JsonObject]] = []
    latest: dict[str, list[JsonObject]] = {}
    for piece in pieces:
        index = repr(piece.get("index"))
        if index not in latest or _begins(piece, latest[index]):
            latest[index] = []
            groups.append(latest[index])
        latest[index].append(piece)
    return [_joined(group) for group in groups]


def _neighbours(pieces: Iterable[JsonObject]) -> list[JsonValue]:
    """Parts, of which those of text that follow each other are pieces of one, up to its signature."""
    groups: list[list[JsonObject]] = []
    for piece in pieces:
        before = groups[-1][-1] if groups else {}
        is_text = "index" not in piece and not piece.keys().isdisjoint(("text", "thinking", "summary"))
        if is_text and groups and before.get("type") == piece.get("type") and not before.get("signature"):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [_joined(group) for group in groups]


def _begins(piece: JsonObject, group: Sequence[JsonObject]) -> bool:
    """Whether a piece is the first of another object: some servers give all calls one index, or none."""
    identity = piece.get("id")
    if identity:
        return any(before.get("id") not in (identity, None, "") for before in group[:1])
    function = piece.get("function")
    return "index" not in piece and isinstance(function, dict) and bool(function.get("name"))
