"""Logs of Inspect AI."""

import re
from datetime import UTC, datetime

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.inspect import InspectReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import ExpectedCall

READER = InspectReader()
CALL = {"id": "1", "function": "add", "arguments": {"x": 1}, "type": "function", "view": {"title": "t"}}
FAILED = {
    "role": "tool",
    "tool_call_id": "1",
    "function": "add",
    "content": "",
    "error": {"type": "t", "message": "no"},
}
ADD = {"name": "add", "description": "Adds", "parameters": {"type": "object"}}
IMAGE = {"type": "image", "image": "attachment://abc", "detail": "auto"}


def model_event(message: dict, span: str, request: list, **more: object) -> dict:
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}], "usage": {"input_tokens": 7}}
    return {"event": "model", "span_id": span, "tools": [ADD], "input": request, "output": output, **more}


ASKED = {"id": "u", "role": "user", "content": "1+2?", "source": "input"}
REPLY = {"id": "a", "role": "assistant", "content": "", "source": "generate", "tool_calls": [CALL]}
LAST = {"id": "z", "role": "assistant", "content": "3", "source": "generate", "model": "m"}
HELPER = {"id": "h", "role": "assistant", "content": "I looked", "source": "generate"}
SAMPLE = {
    "id": 5,
    "epoch": 2,
    "input": "1+2?",
    "target": ["3", "three"],
    "choices": ["a", "b"],
    "messages": [
        {"id": "s", "role": "system", "content": "Add up", "metadata": {"from": "prompt"}},
        ASKED,
        {"id": "i", "role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]},
        REPLY,
        {"id": "t", **FAILED},
        LAST,
    ],
    "output": {
        "model": "m",
        "choices": [{"message": LAST, "stop_reason": "max_tokens"}],
        "completion": "3",
        "usage": {"input_tokens": 60, "output_tokens": 15, "total_tokens": 75},
        "time": 0.5,
    },
    "scores": {
        "match": {"value": "C", "answer": "three", "explanation": "it is"},
        "rubric": {"value": {"tone": 0.5, "kind": True}},
        "steps": {"value": [1, 2]},
        "broken": {"value": float("nan")},
        "unscored": {"value": None},
    },
    "metadata": {"level": 1},
    "events": [
        {"event": "span_begin", "id": "agent1", "type": "agent", "name": "searcher", "parent_id": "tool1"},
        {"event": "span_begin", "id": "inner", "type": "x", "name": "inner", "parent_id": "agent1"},
        model_event(REPLY, "main", [], timestamp="2026-01-01T00:00:00Z", completed="2026-01-01T00:00:02Z"),
        model_event(HELPER, "inner", [], input_refs=[[0, 1], [2, 3], [9, 12]]),
        {"event": "tool", "id": "1", "message_id": "t", "agent_span_id": "agent1", "completed": "2026-01-01T00:00:03Z"},
    ],
    "events_data": {"messages": [{"role": "user", "content": "look"}, ASKED, FAILED]},
    "attachments": {"abc": "data:image/png;base64,AA==", "other": "only of events"},
    "model_usage": {"p/m": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 31, "input_tokens_cache_read": 20}},
    "started_at": "2026-01-01T00:00:00Z",
    "completed_at": "2026-01-01T00:01:00Z",
    "uuid": "U",
    "limit": {"type": "message", "limit": 10},
}
HEADER = {"version": 2, "status": "success", "eval": {"task": "sums"}, "stats": {"started_at": "s"}}
LOG = {**HEADER, "samples": [SAMPLE]}


def test_the_messages_of_a_sample():
    [record] = READER.records(LOG)
    trace = READER.sample(record, 0).trace
    assert trace.messages == (
        SystemMessage("Add up", id="s", metadata={"from": "prompt"}),
        HumanMessage("1+2?", id="u", extra={"source": "input"}),
        HumanMessage(
            [TextPart("see"), MediaPart(kind="image", url="data:image/png;base64,AA==", extra={"detail": "auto"})],
            id="i",
        ),
        AIMessage(
            id="a",
            timestamp=datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC),
            tool_calls=[ToolCall("add", {"x": 1}, id="1", extra={"view": {"title": "t"}})],
            finish_reason="stop",
            usage=Usage(input_tokens=7),
            extra={"source": "generate"},
        ),
        ToolMessage(
            "no",
            id="t",
            timestamp=datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC),
            tool_call_id="1",
            name="add",
            is_error=True,
            extra={"error": {"type": "t"}},
        ),
        AIMessage(
            "3",
            id="z",
            model="m",
            finish_reason="max_tokens",
            usage=Usage(input_tokens=60, output_tokens=15, extra={"total_tokens": 75}),
            extra={"source": "generate"},
        ),
    )


def test_samples_of_two_tasks_with_one_id_are_two_groups_and_a_sample_alone_is_named_by_its_id():
    headers = [
        {**HEADER, "eval": eval_} for eval_ in ({"task": "sums"}, {"task": "products"}, {"task": ["sums"]}, None)
    ]
    samples = [READER.sample({"header": header, "sample": SAMPLE}, 0) for header in headers]
    assert [sample.group for sample in (*samples, READER.sample(SAMPLE, 0))] == ["sums 5", "products 5", "5", "5", "5"]


def test_what_a_log_knows_of_a_sample_comes_along():
    [record] = READER.records(LOG)
    sample = READER.sample(record, 0)
    assert (sample.id, sample.group, sample.trace.id) == ("5#2", "sums 5", "U")
    assert (sample.reference, sample.references, sample.metadata) == (None, ("3", "three"), {"level": 1})
    assert sample.trace.labels == (
        Label("match", "C", source="benchmark", reason="it is"),
        Label("rubric.tone", 0.5),
        Label("rubric.kind", value=True),
        Label("steps[0]", 1),
        Label("steps[1]", 2),
    )
    assert sample.trace.tools == (ToolDefinition("add", description="Adds", parameters={"type": "object"}),)
    assert sample.trace.termination == "limit: message"
    assert (sample.trace.started_at, sample.trace.ended_at) == (
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 0, 1, tzinfo=UTC),
    )
    assert sample.trace.usage == Usage(  # the total shows that the input excludes cached tokens
        input_tokens=30,
        output_tokens=1,
        cached_tokens=20,
        extra={"total_tokens": 31, "input_tokens": 10, "model": "p/m"},
    )
    extra = sample.trace.extra
    assert extra["header"] == HEADER
    assert extra["sample"]["scores"]["match"] == {"answer": "three"}
    assert extra["sample"]["output"] == {"time": 0.5}


def test_fields_of_a_sample_in_the_metadata_are_what_is_known_and_the_target_goes_before_them():
    calls = [{"name": "add", "args": {"x": 1}}]
    metadata = {"reference_tool_calls": calls, "task_time": 3, "group": "easy", "reference": "own", "level": 1}
    [record] = READER.records({**LOG, "samples": [{**SAMPLE, "metadata": metadata}]})
    sample = READER.sample(record, 0)
    assert sample.reference_tool_calls == (ExpectedCall("add", {"x": 1}),)
    assert (sample.group, sample.references, sample.reference) == ("sums 5", ("3", "three"), None)
    assert sample.fields == {"choices": ["a", "b"], "task_time": 3}
    assert sample.metadata == {"group": "easy", "reference": "own", "level": 1}
    untargeted = READER.sample({**SAMPLE, "target": "", "metadata": metadata}, 0)
    assert (untargeted.reference, untargeted.references) == ("own", None)


def test_metadata_that_does_not_fit_the_field_of_its_name_stays_and_is_told():
    metadata = {"documents": [{"title": "t"}], "task_time": "long", "label": "l"}
    [record] = READER.records({**LOG, "samples": [{**SAMPLE, "metadata": metadata}]})
    sample = READER.sample(record, 0)
    assert (sample.label, sample.documents) == ("l", None)
    assert sample.metadata == {"documents": [{"title": "t"}], "task_time": "long"}
    warned = [(one.path, one.message.partition(":")[0]) for one in sample.trace.warnings if "metadata" in one.path]
    assert warned == [("sample.metadata", "not used, kept as is")] * 2


def test_metadata_that_fits_alone_but_not_together_stays_and_is_told():
    metadata = {"reference": ["a"], "references": ["b"], "label": "l"}
    sample = READER.sample({**SAMPLE, "target": "", "metadata": metadata}, 0)
    assert (sample.references, sample.label, sample.metadata) == (("a",), "l", {"references": ["b"]})
    assert any("keep one" in warning.message for warning in sample.trace.warnings)


@pytest.mark.parametrize("header", [{}, {"eval": {"task": "t"}}])
def test_choices_and_fields_of_every_place_are_fields_of_the_sample(header):
    metadata = {"fields": {"choices": ["x"], "m": 1, "f": 0}, "task_quality": 2}
    live = {**SAMPLE, "metadata": metadata, "fields": {"f": 1, "choices": ["y"]}, "task_time": 3}
    sample = READER.sample({"header": header, "sample": live} if header else live, 0)
    assert sample.fields == {"choices": ["a", "b"], "m": 1, "f": 0, "task_quality": 2, "task_time": 3}
    assert (sample.trace.extra.get("fields"), sample.metadata) == (None, {})


def test_an_input_that_was_counted_with_what_came_from_the_cache_is_not_added_to():
    counts = {"input_tokens": 30, "output_tokens": 1, "total_tokens": 31, "input_tokens_cache_read": 20}
    [record] = READER.records({**HEADER, "samples": [{**SAMPLE, "model_usage": {"p/m": counts}}]})
    usage = READER.sample(record, 0).trace.usage
    assert (usage.input_tokens, usage.cached_tokens) == (30, 20)


def test_of_several_models_no_usage_is_that_of_the_whole_and_all_are_kept():
    models = {name: {"input_tokens": 3, "output_tokens": 1, "total_cost": 0.5} for name in ("p/m", "q/n")}
    [record] = READER.records({**HEADER, "samples": [{**SAMPLE, "model_usage": models}]})
    trace = READER.sample(record, 0).trace
    assert (trace.usage, trace.cost_usd) == (None, None)
    assert trace.extra["sample"]["model_usage"] == models


def test_an_agent_whose_messages_stand_in_events_alone_is_a_child():
    [record] = READER.records(LOG)
    [child] = READER.sample(record, 0).trace.children
    assert (child.id, child.metadata) == ("agent1", {"agent": "searcher", "call_id": "1"})
    assert [(message.role, message.text) for message in child.messages] == [
        ("user", "look"),
        ("tool", "no"),
        ("assistant", "I looked"),
    ]


def test_what_is_left_out_is_told():
    [record] = READER.records(LOG)
    warnings = {warning.path: warning.message for warning in READER.sample(record, 0).trace.warnings}
    assert warnings.keys() == {
        "sample.events",
        "sample.events_data",
        "sample.attachments",
        "sample.scores.broken.value",
    }
    assert warnings["sample.events"].endswith(": 2 span_begin, 2 model, 1 tool")


CONTENTS = {
    "reasoning": (
        {"type": "reasoning", "reasoning": "hm", "signature": "s"},
        ReasoningPart("hm", extra={"signature": "s"}),
    ),
    "redacted": (
        {"type": "reasoning", "reasoning": "x8f", "summary": "hm", "redacted": True},
        ReasoningPart("hm", extra={"reasoning": "x8f", "redacted": True}),
    ),
    "refusal": ({"type": "text", "text": "I won't", "refusal": True}, RefusalPart("I won't")),
    "audio": (
        {"type": "audio", "audio": "a.mp3", "format": "mp3"},
        MediaPart(kind="audio", url="a.mp3", extra={"format": "mp3"}),
    ),
    "document": (
        {"type": "document", "document": "a.pdf", "filename": "a", "mime_type": "application/pdf"},
        MediaPart(kind="file", url="a.pdf", name="a", mime_type="application/pdf"),
    ),
    "data": ({"type": "data", "data": {"a": 1}}, OtherPart({"type": "data", "data": {"a": 1}})),
}


@pytest.mark.parametrize(("recorded", "part"), CONTENTS.values(), ids=CONTENTS)
def test_the_kinds_of_content(recorded, part):
    [message] = READER.sample([{"role": "assistant", "content": [recorded]}], 0).trace.messages
    assert message.content == (part,)


def test_a_tool_of_the_provider_is_a_call_and_its_result():
    use = {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "search", "arguments": '{"q": 1}'}
    messages = [
        {
            "role": "assistant",
            "content": [
                {**use, "result": "found"},
                {"type": "text", "text": "So"},
                {**use, "result": "", "error": "e"},
            ],
        }
    ]
    call = ToolCall("search", {"q": 1}, id="w", metadata={"executor": "provider"}, extra={"tool_type": "web_search"})
    assert READER.sample(messages, 0).trace.messages == (
        AIMessage(tool_calls=[call]),
        ToolMessage("found", tool_call_id="w", name="search", is_error=False),
        AIMessage("So", tool_calls=[call]),
        ToolMessage("e", tool_call_id="w", name="search", is_error=True),
    )


def test_arguments_that_inspect_could_not_parse_say_why():
    call = {**CALL, "arguments": {"add": "{bad"}, "parse_error": "not JSON"}
    [message] = READER.sample([{"role": "assistant", "content": None, "tool_calls": [call]}], 0).trace.messages
    [tool_call] = message.tool_calls
    assert (tool_call.args, tool_call.args_raw, tool_call.args_error) == ({}, '{"add": "{bad"}', "not JSON")


def test_an_agent_whose_turns_a_handoff_made_text_is_a_child_and_the_outermost_is_not():
    flat = {"id": "h", "role": "assistant", "content": "add(x=1)"}
    hand, submit = ({**CALL, "id": name, "function": name} for name in ("transfer", "submit"))
    events = [
        {"event": "span_begin", "id": "main", "type": "agent", "name": "main", "parent_id": None},
        {"event": "span_begin", "id": "tool", "type": "tool", "name": "transfer", "parent_id": "main"},
        {"event": "span_begin", "id": "sub", "type": "agent", "name": "sub", "parent_id": "tool"},
        model_event({**REPLY, "tool_calls": [hand]}, "main", [ASKED]),
        model_event({**flat, "content": "", "tool_calls": [CALL]}, "sub", [ASKED]),
        model_event({**LAST, "tool_calls": [submit]}, "main", [ASKED]),
    ]
    record = {"id": 1, "messages": [ASKED, {**REPLY, "tool_calls": [hand]}, flat, LAST], "events": events}
    [child] = READER.sample(record, 0).trace.children
    assert (child.id, [call.call.name for call in child.tool_calls()]) == ("sub", ["add"])


@pytest.mark.parametrize(
    ("change", "identity", "reference", "termination"),
    [
        ({"epoch": 1}, "5", "three", "limit: message"),
        ({"id": "q", "epoch": 4}, "q#4", "three", "limit: message"),
        ({"epoch": 1, "target": ""}, "5", None, "limit: message"),
        ({"epoch": 1, "error": {"message": "out of memory", "traceback": "tb"}}, "5", "three", "error: out of memory"),
    ],
)
def test_epochs_targets_and_ends(change, identity, reference, termination):
    [record] = READER.records({**HEADER, "samples": [{**SAMPLE, "target": "three", **change}]})
    sample = READER.sample(record, 0)
    assert (sample.id, sample.reference, sample.trace.termination) == (identity, reference, termination)


def test_the_first_of_several_epochs_says_so():
    header = {**HEADER, "eval": {"config": {"epochs": 2}}}
    [record] = READER.records({**header, "samples": [{**SAMPLE, "epoch": 1}]})
    assert READER.sample(record, 0).id == "5#1"


def test_logs_members_of_archives_samples_and_messages_are_recognized():
    cases = [
        LOG,
        [LOG],
        {"header": {"version": 2, "eval": {}, "plan": {}}, "sample": SAMPLE},
        SAMPLE,
        [ASKED, REPLY],
        [ASKED, FAILED],
        {"messages": [ASKED, REPLY]},
    ]
    for document in cases:
        assert READER.recognizes(document)
        [record] = READER.records(document)
        assert READER.sample(record, 0).trace.messages


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": []}, "sample.messages: expected messages, found nothing"),
        ({"messages": [{"role": "critic"}]}, "sample.messages[0].role: expected one of system, user, assistant, tool"),
        ({"messages": [{**ASKED, "content": 5}]}, "sample.messages[0].content: expected a string or a list of parts"),
        (
            {"messages": [{**REPLY, "tool_calls": [{"id": "1"}]}]},
            "sample.messages[0].tool_calls[0].function: expected a tool name, found nothing",
        ),
    ],
)
def test_an_error_says_where_in_the_sample_and_what_was_found(change, problem):
    with pytest.raises(TraceError, match=f"^{re.escape(problem)}"):
        READER.sample({"header": HEADER, "sample": {**SAMPLE, **change}}, 0)


def test_a_log_of_the_header_alone_is_an_error_that_says_so():
    assert READER.recognizes(HEADER)
    with pytest.raises(TraceError, match="samples: the log contains none"):
        READER.records(HEADER)


def test_a_part_of_an_unknown_kind_is_kept_and_told():
    parts = [{"type": "dream", "text": "sheep"}, {"type": "data", "data": {"a": 1}}]
    trace = READER.sample({"messages": [{**ASKED, "content": parts}, REPLY], "epoch": 1}, 0).trace
    assert trace.messages[0].content == tuple(map(OtherPart, parts))
    assert [(warning.path, warning.message) for warning in trace.warnings] == [
        ("messages[0].content[0]", "unreadable part of type 'dream', kept as is")
    ]


def sources_in(sample: dict) -> dict[str, str]:
    labels = READER.sample({**SAMPLE, "scores": {}, **sample}, 0).trace.labels
    return {label.name: label.source for label in labels}


def test_scorers_of_inspect_that_compare_texts_are_benchmarks_model_graders_are_judges_and_others_unknown():
    computed = ("match", "includes", "exact", "pattern", "answer", "choice", "f1", "math", "match1")
    graded = ("model_graded_qa", "model_graded_fact", "model_graded_qa2", "llm_judge", "GraderScore", "tone", "tone1")
    unknown = ("correct", "closeness_log", "fulfillment", "rubric", "f11")
    scores = {name: {"value": "C"} for name in (*computed, *graded, *unknown)}
    assert sources_in({"scores": scores}) == {
        **dict.fromkeys(computed, "benchmark"),
        **dict.fromkeys(graded, "judge"),
        **dict.fromkeys(unknown, "unknown"),
    }


@pytest.mark.parametrize(
    "shown",
    [
        {"scores": {"ok": {"value": 1, "metadata": {"grading": [{"role": "user"}]}}}},
        {"scores": {"ok": {"value": 1, "metadata": {"judgekit.judged": True}}}},
        {"scores": {"ok": {"value": 1}}, "role_usage": {"grader": {"input_tokens": 1}}},
        {
            "scores": {"ok": {"value": 1}},
            "events": [
                {"event": "span_begin", "id": "s", "type": "scorer", "name": "ok"},
                {"event": "span_begin", "id": "t", "type": "tool", "name": "look", "parent_id": "s"},
                model_event(LAST, "t", []),
            ],
        },
    ],
    ids=["the grading is in its metadata", "judgekit's mark", "usage of the role grader", "a model call in its span"],
)
def test_a_score_for_which_a_model_was_asked_is_that_of_a_judge(shown):
    others = {"match": {"value": "C"}}
    sources = sources_in({**shown, "scores": {**shown["scores"], **others}})
    assert sources == {"ok": "judge", "match": "benchmark"}


def test_a_score_of_judgekit_without_a_judge_is_that_of_a_benchmark_unless_its_name_is_that_of_a_judge():
    unjudged = {"value": 1, "metadata": {"judgekit.judged": False}}
    assert sources_in({"scores": {"bleu": unjudged, "tone": unjudged}}) == {"bleu": "benchmark", "tone": "judge"}


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, {"header": HEADER, "sample": SAMPLE})
