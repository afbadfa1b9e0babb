"""Any record of the package, by ``st.from_type``, and what a reading has lost."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC

import pytest
from hypothesis import strategies as st
from pydantic import JsonValue

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
