import csv
import json
import re

import pytest

import judgekit
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.openinference import OpenInferenceReader

READER = OpenInferenceReader()


def span(kind, name="step", *, id="s1", parent=None, start=1, end=None, error=None, **attributes):
    """Return a span as Phoenix writes it, in seconds after the epoch. Attribute names have ``__`` for dots."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return {
        "name": name,
        "context": {"trace_id": "t1", "span_id": id},
        "parent_id": parent,
        "start_time": f"2026-01-01T00:00:{start:02d}+00:00",
        "end_time": f"2026-01-01T00:00:{end or start + 1:02d}+00:00",
        "status_code": "ERROR" if error else "OK",
        "status_message": error,
        "attributes": {"openinference.span.kind": kind, **named},
    }


def messages(name, *rows):
    return {
        f"llm.{name}_messages.{index}.message.{key}": value
        for index, row in enumerate(rows)
        for key, value in row.items()
    }


def call(id, name="f", arguments='{"a": 1}', at=0):
    made = {
        f"tool_calls.{at}.tool_call.function.name": name,
        f"tool_calls.{at}.tool_call.function.arguments": arguments,
    }
    return made if id is None else {**made, f"tool_calls.{at}.tool_call.id": id}


def llm(asked, answered, **given):
    made = span("LLM", **given)
    made["attributes"] |= messages("input", *asked) | messages("output", *answered)
    return made


def read(*spans):
    (record,) = READER.records(list(spans))
    return READER.sample(record, 0)


def told(trace):
    return [(one.role, one.text, [c.name for c in getattr(one, "tool_calls", ())]) for one in trace.messages]


USER = {"role": "user", "content": "Hi"}
RICH = llm(
    [
        {"role": "system", "content": "Be brief"},
        {
            "role": "user",
            "contents.0.message_content.type": "text",
            "contents.0.message_content.text": "What is this?",
            "contents.1.message_content.type": "image",
            "contents.1.message_content.image.image.url": "https://x.test/a.png",
            "contents.2.message_content.type": "audio",
            "contents.2.message_content.audio.audio.url": "https://x.test/a.wav",
            "contents.2.message_content.audio.audio.mime_type": "audio/wav",
            "contents.2.message_content.audio.audio.transcript": "this",
            "contents.3.message_content.type": "hologram",
            "contents.3.message_content.hologram": "h",
        },
        {
            "role": "assistant",
            "name": "Looker",
            "contents.0.message_content.type": "reasoning",
            "contents.0.message_content.text": "I must look",
            "contents.0.message_content.signature": "sig",
            "contents.1.message_content.type": "tool_use",
            "contents.1.tool_call.id": "c1",
            "contents.1.tool_call.function.name": "look",
            "contents.1.tool_call.function.arguments": '{"at": "a.png"}',
            "contents.2.message_content.type": "tool_use",
            "contents.2.message_content.tool_use.id": "c2",
            "contents.2.message_content.tool_use.name": "hear",
            "contents.2.message_content.tool_use.input": '{"at": "a.wav"}',
            **call("c1", "look", '{"at": "a.png"}'),
        },
        {"role": "user", "tool_call_id": "c1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c2", "name": "hear", "content": "a purr"},
    ],
    [{"content": "A cat."}],
    name="ChatCompletion",
    llm__model_name="m1",
    llm__finish_reason="stop",
    llm__token_count__prompt=9,
    llm__token_count__completion=3,
    llm__token_count__total=12,
    llm__token_count__prompt_details__cache_read=4,
    llm__token_count__completion_details__reasoning=1,
    llm__invocation_parameters='{"temperature": 0}',
    llm__tools__0__tool__json_schema='{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}',
    session__id="chat-7",
    user__id="ann",
    metadata='{"release": "r2"}',
    input__value='{"messages": "..."}',
)


def test_every_kind_of_content_has_its_place():
    sample = read(RICH)
    trace = sample.trace
    assert sample.id == "chat-7"
    assert trace.metadata == {"session.id": "chat-7", "user.id": "ann", "release": "r2"}
    assert [tool.name for tool in trace.tools] == ["look"]
    _, asked, called, seen, heard, answer = trace.messages
    assert [part.type for part in asked.content] == ["text", "media", "media", "other"]
    assert [part.kind for part in asked.content[1:3]] == ["image", "audio"]
    assert (called.agent, called.content[0].extra) == ("Looker", {"message_content": {"signature": "sig"}})
    assert [(one.id, one.name, one.args) for one in called.tool_calls] == [
        ("c1", "look", {"at": "a.png"}),
        ("c2", "hear", {"at": "a.wav"}),
    ]
    assert [(one.role, one.tool_call_id) for one in (seen, heard)] == [("tool", "c1"), ("tool", "c2")]
    assert (answer.text, answer.model, answer.finish_reason) == ("A cat.", "m1", "stop")
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == (9, 3, 4, 1)


def tree(attributes):
    """Return attributes as a tree, in which indexes become lists."""
    made = {}
    for name, value in attributes.items():
        *steps, last = name.split(".")
        inner = made
        for step in steps:
            inner = inner.setdefault(step, {})
        inner[last] = value

    def listed(value):
        if not isinstance(value, dict):
            return value
        if all(key.isdigit() for key in value):
            return [listed(value[key]) for key in sorted(value, key=int)]
        return {key: listed(inner) for key, inner in value.items()}

    return listed(made)


def typed(value):
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


@pytest.mark.parametrize("count", [2, 12])
def test_flat_nested_and_typed_attributes_are_the_same(count):
    rows = [{"role": ("user", "assistant")[index % 2], "content": f"said {index}"} for index in range(count)]
    flat = llm(rows[:-1], rows[-1:])
    attributes = flat["attributes"]
    shuffled = {**flat, "attributes": dict(sorted(attributes.items(), reverse=True))}
    nested = {**flat, "attributes": tree(attributes)}
    listed = {"openinference.span.kind": "LLM"}
    for name, part in (("llm.input_messages", rows[:-1]), ("llm.output_messages", rows[-1:])):
        listed[name] = [{f"message.{key}": value for key, value in row.items()} for row in part]
    exported = {
        "traceId": "t1",
        "spanId": "s1",
        "attributes": [{"key": k, "value": typed(v)} for k, v in attributes.items()],
    }
    expected = [(row["role"], row["content"], []) for row in rows]
    for made in (flat, shuffled, nested, {**flat, "attributes": listed}):
        assert told(read(made).trace) == expected
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [exported]}]}]}
    assert detect(document).name == "openinference"
    assert told(READER.sample(READER.records(document)[0], 0).trace) == expected


def columns(made):
    """Return the span as a row of Phoenix's data frames: lists of messages, and a column for each attribute and id."""
    attributes = {name: value for name, value in made["attributes"].items() if not re.search(r"_messages\.\d", name)}
    for name in ("input", "output"):
        if said := tree(made["attributes"]).get("llm", {}).get(f"{name}_messages"):
            attributes[f"llm.{name}_messages"] = [dotted(one) for one in said]
    inner = {"context": made["context"], "attributes": {**attributes, "llm.prompts": None}}
    flat = {f"{whole}.{name}": value for whole, parts in inner.items() for name, value in parts.items()}
    return {**flat, **{name: value for name, value in made.items() if name not in inner}}


def dotted(message):
    return {f"message.{name}": value for name, value in message["message"].items()}


def test_rows_of_a_data_frame_are_spans(shared_data, forgotten):
    rows = [columns(one) for one in TEAM]
    assert rows[1]["attributes.llm.input_messages"] == [{"message.role": "user", "message.content": "Hi"}]
    assert detect(rows).name == detect(rows[0]).name == "openinference"
    made, expected = read(*rows), read(*TEAM)
    assert (made.id, told(made.trace)) == (expected.id, told(expected.trace))
    assert [told(child) for child in made.trace.children] == [told(child) for child in expected.trace.children]
    assert not forgotten(READER, rows)
    (sample,) = judgekit.read(shared_data / "exports/phoenix_df.jsonl", on_error="raise")
    assert told(sample.trace) == [("user", "Where is order 7?", []), ("assistant", "It was sent.", [])]


@pytest.mark.parametrize("index", [[], ["context.span_id"]])
def test_tables_of_a_data_frame_are_refused_with_what_to_write(tmp_path, index):
    rows = [{name: value for name, value in columns(one).items() if value is not None} for one in TEAM]
    names = list(dict.fromkeys(name for row in rows for name in row))
    path = tmp_path / "spans.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([index + names, *([row.get(name, "") for name in index + names] for row in rows)])
    with pytest.raises(TraceError, match=r'spans\.to_json\("spans.jsonl", orient="records", lines=True\)'):
        list(judgekit.read(path, on_error="raise"))


TEAM = [
    span("AGENT", "Boss", id="a", start=1, end=20),
    llm([USER], [{"role": "assistant", **call("c1", "ask")}], id="b", parent="a", start=2, name="chat"),
    span(
        "TOOL",
        "ask",
        id="c",
        parent="a",
        start=3,
        end=12,
        input__value='{"a": 1}',
        output__value="done",
        tool__name="ask",
    ),
    span("AGENT", "Helper", id="d", parent="c", start=4, end=11, agent__name="Hand"),
    llm(
        [{"role": "user", "content": "Do it"}],
        [{"role": "assistant", **call(None, "dig")}],
        id="e",
        parent="d",
        start=5,
    ),
    span("TOOL", "dig", id="f", parent="d", start=7, error="ValueError: rock", input__value="{'a': 1}"),
    span("EVALUATOR", "judge", id="g", parent="a", start=13),
    llm(
        [{"role": "user", "content": "Was it polite?"}],
        [{"role": "assistant", "content": "Yes"}],
        id="h",
        parent="g",
        start=14,
    ),
    llm(
        [USER, {"role": "assistant", **call("c1", "ask")}, {"role": "tool", "tool_call_id": "c1", "content": "done"}],
        [{"role": "assistant", "content": "Bye"}],
        id="i",
        parent="a",
        start=16,
    ),
]


def test_agents_within_agents_are_children_and_judges_are_left_out():
    trace = read(*TEAM).trace
    assert told(trace) == [
        ("user", "Hi", []),
        ("assistant", "", ["ask"]),
        ("tool", "done", []),
        ("assistant", "Bye", []),
    ]
    assert [one.agent for one in trace.messages if one.role == "assistant"] == ["Boss", "Boss"]
    (child,) = trace.children
    assert child.metadata == {"call_id": "c1"}
    assert told(child) == [("user", "Do it", []), ("assistant", "", ["dig"]), ("tool", "ValueError: rock", [])]
    assert (child.messages[1].agent, child.messages[2].is_error, child.messages[2].name) == ("Hand", True, "dig")


@pytest.mark.parametrize("name", ["transfer_to_billing_desk", "transfer", "ask-Billing-Desk"])
def test_a_handoff_is_the_call_that_a_model_made_for_it(name):
    handed = {"role": "assistant", **call("c1", name, "{}")}
    taken = {"role": "tool", "tool_call_id": "c1", "content": '{"assistant": "Billing desk"}'}
    trace = read(
        span("AGENT", "Triage", id="a", start=1, end=5),
        llm([{"role": "system", "content": "Sort"}, USER], [handed], id="b", parent="a", start=2),
        span("TOOL", "handoff to Billing desk", id="c", parent="a", start=3, error="Multiple handoffs requested"),
        span("AGENT", "Billing desk", id="d", start=5, end=9),
        llm(
            [{"role": "system", "content": "Bill"}, USER, handed, taken],
            [{"role": "assistant", "content": "Paid"}],
            id="e",
            parent="d",
            start=6,
        ),
    ).trace
    assert [(role, called) for role, _, called in told(trace)] == [
        ("system", []),
        ("user", []),
        ("assistant", [name]),
        ("tool", []),
        ("system", []),
        ("assistant", []),
    ]
    assert [one.is_error for one in trace.messages if one.role == "tool"] == [None]


def test_a_handoff_that_no_model_is_known_to_have_called_is_a_call():
    handoff = span("TOOL", "handoff to Billing", id="b", parent="a", start=2, output__value="Billing")
    trace = read(span("AGENT", "Triage", id="a", end=9, input__value="Hi", output__value="Bye"), handoff).trace
    assert [called for _, _, called in told(trace)] == [[], ["handoff to Billing"], [], []]


def test_a_handoff_beside_calls_of_other_tools_is_a_call():
    asked = {"role": "assistant", **call("c1", "search", "{}")}
    handoff = span("TOOL", "handoff to Billing desk", id="b", parent="a", start=4, output__value="Billing")
    trace = read(
        span("AGENT", "Triage", id="a", start=1, end=9),
        llm([USER], [asked], id="c", parent="a", start=2, end=3),
        handoff,
    ).trace
    assert [called for _, _, called in told(trace)] == [[], ["search", "handoff to Billing desk"], []]


def test_calls_that_only_tools_tell_of_are_put_where_they_happened():
    trace = read(
        llm([USER], [{"role": "assistant", "content": "<code>look()</"}], start=1, end=2),
        span("TOOL", "look", id="s2", start=3, input__value='{"at": 1}', output__value="a cat"),
        span("TOOL", "look", id="s3", start=4, input__value='{"at": 2}', error="blind"),
        llm(
            [USER, {"role": "assistant", "content": "<code>look()</code>"}],
            [{"role": "assistant", "content": "A cat"}],
            id="s4",
            start=6,
        ),
    ).trace
    assert not trace.children
    assert told(trace) == [
        ("user", "Hi", []),
        ("assistant", "<code>look()</", ["look", "look"]),
        ("tool", "a cat", []),
        ("tool", "blind", []),
        ("assistant", "A cat", []),
    ]
    assert [one.is_error for one in trace.messages if one.role == "tool"] == [None, True]
    assert [one.call.args for one in trace.tool_calls()] == [{"at": 1}, {"at": 2}]


def test_nodes_of_langgraph_are_no_agents_within_their_graph():
    node = {"metadata": '{"langgraph_node": "agent"}'}
    trace = read(
        span("AGENT", "Weatherer", id="a", end=9),
        span("AGENT", "agent", id="b", parent="a", **node),
        llm([USER], [{"role": "assistant", **call("c1")}], id="c", parent="b"),
        span("AGENT", "agent", id="d", parent="a", start=4, **node),
        llm(
            [USER, {"role": "assistant", **call("c1")}, {"role": "tool", "tool_call_id": "c1", "content": "done"}],
            [{"role": "assistant", "content": "Bye"}],
            id="e",
            parent="d",
            start=5,
        ),
    ).trace
    assert [role for role, *_ in told(trace)] == ["user", "assistant", "tool", "assistant"]
    assert [one.agent for one in trace.messages if one.role == "assistant"] == ["Weatherer", "Weatherer"]
    assert not trace.children


@pytest.mark.parametrize(
    "data", [{}, {"data": "x"}, {"data": {"content": "12C", "tool_call_id": "c1", "status": "error"}}]
)
def test_results_in_langchain_s_wrapping_are_read(data):
    output = json.dumps({"type": "tool", **data})
    trace = read(
        llm([USER], [{"role": "assistant", **call("c1")}], id="a"),
        span("TOOL", "f", id="b", start=3, input__value='{"a": 1}', output__value=output),
    ).trace
    result = trace.messages[-1]
    wrapped = isinstance(data.get("data"), dict)
    assert (result.text, result.is_error) == (("12C", True) if wrapped else (output, None))


@pytest.mark.parametrize(
    ("parameters", "answers", "expected"),
    [
        ("{}", [{"content": "A"}, {"content": "B"}], ["A"]),
        ('{"n": 2}', [{"content": "A", **call("c1")}, call("c2")], ["A"]),
        ('{"model": "m"}', [{"content": "A"}, call("c2")], ["A", ""]),
    ],
)
def test_of_several_choices_the_first_is_read(parameters, answers, expected):
    trace = read(llm([USER], answers, llm__invocation_parameters=parameters)).trace
    assert [text for _, text, _ in told(trace)[1:]] == expected
    assert [one.message.partition(";")[0] for one in trace.warnings] == ["2 choices"] * (2 - len(expected))


def test_tools_and_feedback_that_are_malformed_are_kept_and_told():
    made = llm([USER], [{"role": "assistant", "content": "Hello"}], llm__tools="none", annotations=[1])
    trace = read(made).trace
    assert (len(trace.messages), trace.tools, trace.labels) == (2, (), ())
    (left,) = trace.extra["spans"]
    assert (left["attributes"]["llm.tools"], left["attributes"]["annotations"]) == ("none", [1])
    assert [one.path for one in trace.warnings] == ["spans[0].attributes.llm.tools", "spans[0].attributes.annotations"]


def test_values_that_were_cut_off_are_told():
    with pytest.raises(TraceError, match="OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"):
        read(span("LLM", llm__input_messages='[{"message": {"ro'))
    trace = read(span("LLM", input__value='{"messages": [{"ro', output__value="Hello")).trace
    assert "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT" in trace.warnings[0].message


def test_feedback_becomes_labels():
    made = llm([USER], [{"role": "assistant", "content": "Hello"}])
    made["attributes"] |= {
        "annotations.0.annotation.name": "kind",
        "annotations.0.annotation.score": 1,
        "annotations.0.annotation.label": "yes",
        "annotations.0.annotation.explanation": "It greets",
        "annotations.0.annotation.annotator_kind": "LLM",
        "trace.evaluations.0.evaluation.name": "right",
        "trace.evaluations.0.evaluation.label": "no",
        "trace.evaluations.0.evaluation.annotator_kind": "CODE",
    }
    labels = read(made).trace.labels
    assert [(one.name, one.value, one.source, one.reason) for one in labels] == [
        ("kind", 1, "judge", "It greets"),
        ("right", "no", "benchmark", None),
    ]


def test_an_annotation_is_of_whom_its_kind_of_annotator_says():
    cases = [
        ("kind", "HUMAN", "human"),
        ("kind", "LLM", "judge"),
        ("kind", "CODE", "benchmark"),
        ("faithfulness", "CODE", "judge"),
        ("kind", None, "unknown"),
        ("kind", "API", "unknown"),
        ("faithfulness", None, "judge"),
    ]
    for name, kind, source in cases:
        made = llm([USER], [{"role": "assistant", "content": "Hello"}])
        annotation = {"name": name, "score": 1, "annotator_kind": kind}
        made["attributes"] |= {f"annotations.0.annotation.{key}": value for key, value in annotation.items() if value}
        assert [(one.name, one.source) for one in read(made).trace.labels] == [(name, source)]


def test_hidden_messages_are_told():
    with pytest.raises(TraceError, match=r"hidden messages.*OPENINFERENCE_HIDE_INPUTS"):
        read(span("CHAIN", input__value="__REDACTED__"))
    trace = read(llm([{"role": "user", "content": "__REDACTED__"}], [{"role": "assistant", "content": "Hello"}])).trace
    assert [one.message for one in trace.warnings] == ["1 messages are masked"]


@pytest.mark.parametrize("broken", [{"role": "judge", "content": "x"}, {"role": "user", "content": 3}, call("c1", 3)])
def test_what_scores_depend_on_must_be_right(broken):
    with pytest.raises(TraceError, match=r"attributes\.llm\.input_messages\[0\]\.message"):
        read(llm([{"role": "assistant", **broken}], []))


def test_annotations_beside_the_attributes_of_spans_are_labels(tmp_path):
    result = {"label": "yes", "score": 1.0, "explanation": "fine"}
    note = {"name": "correct", "annotator_kind": "HUMAN", "identifier": "", "user_id": "ann", "result": result}
    noted = {**llm([USER], [{"content": "A"}]), "annotations": [note, {**note, "name": None}, {"name": "x"}, "odd"]}
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"data": [noted], "next_cursor": None}))
    [sample] = judgekit.read(path, on_error="raise")
    [label] = sample.trace.labels
    assert (label.name, label.value, label.source, label.reason) == ("correct", 1.0, "human", "fine")
    assert label.annotator == "ann"


def test_nothing_is_forgotten_and_nothing_crashes(shared_data, intact):
    documents = [json.loads(path.read_text()) for path in (shared_data / "traces/openinference").glob("*.json")]
    odd = llm([USER], [{"content": "A"}, {"content": "B"}], llm__tools="none")
    intact(READER, *documents, [RICH], [*TEAM], [odd])
