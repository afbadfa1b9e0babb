"""Any record of the package, by ``st.from_type``, and what a reading has lost."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from random import Random

import pytest
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.readers.foreign import Reader
from judgekit.traces.sample import ExpectedCall, Ranking, Sample
from judgekit.traces.trace import Label, Source, ToolDefinition, Trace, TraceWarning

text = st.text(max_size=10)
maybe = st.none() | text
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | st.integers(0, 10**6)
times = st.none() | st.datetimes(timezones=st.sampled_from([None, UTC]))
scalars = st.none() | st.booleans() | st.integers() | numbers | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2), max_leaves=4
)
objects = st.just({}) | st.dictionaries(text, values, max_size=2)


def few(item: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(item, max_size=2)


retrieved = st.lists(text, max_size=2, unique=True) | st.dictionaries(text, numbers, max_size=3).map(
    lambda scores: list(scores.items())
)


media = st.builds(
    MediaPart,
    kind=st.sampled_from(["image", "audio", "video", "file"]),
    url=maybe,
    data=maybe,
    mime_type=maybe,
    name=maybe,
    extra=objects,
)
part = (
    st.sampled_from([TextPart, ReasoningPart, RefusalPart]).flatmap(
        lambda kind: st.builds(kind, text=text, extra=objects)
    )
    | media
    | st.builds(OtherPart, data=values)
)
call = st.builds(ToolCall, name=text, args=objects | text, id=maybe, metadata=objects, extra=objects)
usage = st.builds(Usage, input_tokens=counts, output_tokens=counts, cached_tokens=counts, extra=objects)
said = {"id": maybe, "timestamp": times, "metadata": objects, "extra": objects}
content = text | few(part)
system = st.builds(SystemMessage, content=content, role=st.sampled_from(["system", "developer"]), **said)
human = st.builds(HumanMessage, content=content, tool_calls=few(call), name=maybe, **said)
ai = st.builds(
    AIMessage,
    content=content,
    tool_calls=few(call),
    agent=maybe,
    model=maybe,
    finish_reason=maybe,
    usage=st.none() | usage,
    **said,
)
tool = st.builds(
    ToolMessage,
    content=content,
    tool_call_id=maybe,
    name=maybe,
    is_error=st.none() | st.booleans(),
    requestor=st.sampled_from(["assistant", "user"]),
    **said,
)


def traces(children: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(
        Trace,
        id=maybe,
        messages=few(system | human | ai | tool),
        source=st.none() | st.builds(Source, format=text, path=maybe, index=counts),
        tools=few(st.builds(ToolDefinition, name=text, description=maybe, parameters=values, extra=objects)),
        started_at=times,
        ended_at=times,
        usage=st.none() | usage,
        cost_usd=st.none() | numbers,
        termination=maybe,
        labels=few(st.builds(Label, name=text, value=st.booleans() | st.integers() | numbers | text, annotator=maybe)),
        children=children,
        metadata=objects,
        extra=objects,
        warnings=few(st.builds(TraceWarning, found=text, where=maybe)),
    )


trace = traces(few(traces(st.just([]))))
sample = st.builds(
    Sample,
    id=text.filter(bool),
    trace=trace,
    rival=st.none() | trace,
    reference=maybe,
    references=st.none() | few(text),
    reference_tool_calls=st.none()
    | few(
        st.builds(
            ExpectedCall,
            name=text,
            args=objects,
            compare_args=st.none() | few(text),
            requestor=st.sampled_from(["assistant", "user"]),
            turn=st.none() | st.integers(0, 10),
        )
    ),
    reference_topics=st.none() | few(text),
    label=maybe,
    prediction=maybe,
    prediction_score=st.none() | numbers,
    documents=st.none() | few(text),
    ranking=st.none() | st.builds(Ranking, retrieved=retrieved, relevance=st.dictionaries(text, numbers, max_size=2)),
    fields=objects,
    group=maybe,
    domain=maybe,
    metadata=objects,
)

for kind, strategy in {
    SystemMessage: system,
    HumanMessage: human,
    AIMessage: ai,
    ToolMessage: tool,
    Trace: trace,
    Sample: sample,
}.items():
    st.register_type_strategy(kind, lambda _, found=strategy: found)


def leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Every scalar in a document with its path, but for ``None``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    elif value is not None:
        yield path, repr(value)


@pytest.fixture(scope="session")
def lost() -> Callable[[JsonValue, Sample], set[str]]:
    """The paths of a record whose value stands nowhere in the sample that was made of it."""

    def find(record: JsonValue, made: Sample) -> set[str]:
        kept = {value for _, value in leaves(json.loads(made.model_dump_json()))}
        return {path for path, value in leaves(record) if value not in kept}

    return find


def scalars_of(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where scalars stand in a document, but for ``None``; also those in JSON that stands in a text."""
    inner = parsed(value) if isinstance(value, str) else value
    if isinstance(inner, dict | list):
        for key, item in inner.items() if isinstance(inner, dict) else enumerate(inner):
            yield from scalars_of(item, (*path, key))
    elif value is not None:
        yield path


def changed(value: JsonValue, path: tuple[str | int, ...], random: Random) -> tuple[JsonValue, JsonValue]:
    """A copy of a document with another scalar in one place, and what stands there now."""
    if path:
        inner = parsed(value) if isinstance(value, str) else value
        copy, new = changed(inner[path[0]], path[1:], random)
        whole = (
            {**inner, path[0]: copy} if isinstance(inner, dict) else [*inner[: path[0]], copy, *inner[path[0] + 1 :]]
        )
        return (json.dumps(whole) if isinstance(value, str) else whole), new
    new = f"changed-{random.randrange(10**9)}"
    if isinstance(value, bool):
        new = not value
    elif isinstance(value, int | float):
        new = value + random.randrange(10**6) * 10**3 + 10**9 if isinstance(value, int) else value + random.random()
    return new, new


def parsed(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        return None


@pytest.fixture(scope="session")
def forgotten() -> Callable[..., list[str]]:
    """The paths of scalars of a document which a reader forgets.

    Each is changed in turn: what the reader makes of the document must then say so (a text must stand in it, anything
    else must make a difference), or name the place in a warning, or the document must be refused. Of large documents a
    part is tried, another one each time; ``most`` says how many scalars.
    """

    def find(reader: Reader, document: JsonValue, most: int = 150) -> list[str]:
        def read(document: JsonValue) -> str:
            samples = [reader.sample(record, index) for index, record in enumerate(reader.records(document))]
            return "".join(sample.model_dump_json() for sample in samples)

        random = Random()  # noqa: S311 - no secret
        before = read(document)
        paths = list(scalars_of(document))
        missing: list[str] = []
        for path in random.sample(paths, min(most, len(paths))):
            copy, new = changed(document, path, random)
            try:
                after = read(copy)
            except (TraceError, ValidationError):
                continue
            kept = new in after if isinstance(new, str) else after != before
            where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
            if not kept and not named(where, after):
                missing.append(where)
        return missing

    def named(path: str, made: str) -> bool:
        """Whether a warning names the place, or one that it is part of; its path is that within one record."""
        path = re.sub(r"^\.samples\[\d+\]", ".sample", path)  # of an Inspect log
        places = (place.strip(".") for place in re.findall(r'"where":"([^"]+)"', made))
        return any(place in path for place in places)

    return find
