import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.braintrust import BraintrustReader

READER = BraintrustReader()
SDK = [json.loads(line) for line in (Path(__file__).parent / "braintrust_sdk.jsonl").read_text().splitlines()]
"""An evaluation of two trials, as version 0.48.1 of the SDK writes it, without the places of code and a long prompt."""
PROVIDERS = [
    json.loads(line) for line in (Path(__file__).parent / "braintrust_providers.jsonl").read_text().splitlines()
]
"""A traced function that calls OpenAI's Responses, and one that calls Anthropic, of the same version."""
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}


def event(kind, name, given=None, answer=None, *, id="r", parent=None, start=1.0, **more):
    return {
        "id": f"event-{id}",
        "root_span_id": "trace",
        "span_id": id,
        "span_parents": [parent] if parent else [],
        "span_attributes": {"type": kind, "name": name},
        "created": "2026-11-20T10:00:00Z",
        "input": given,
        "output": answer,
        "metrics": {"start": start, "end": start + 0.5},
        **more,
    }


def llm(question, answer, **more):
    reply = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **answer}}]
    return event("llm", "Chat Completion", question, reply, **more)


def read(*events):
    (record,) = READER.records(list(events))
    return READER.sample(record, 0)


def warnings(sample):
    return [(warning.message, warning.path) for warning in sample.trace.warnings]


def labels(sample):
    return {(label.name, label.value, label.source, label.annotator, label.reason) for label in sample.trace.labels}


HI = {"role": "user", "content": "Where is order 7?"}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sent"}
TRACE = [
    event("eval", "eval", "Where is order 7?", "It was sent.", expected={"answer": "Sent."}, scores={"Own": 0.5}),
    event("task", "task", "Where is order 7?", "It was sent.", id="t", parent="r"),
    llm([HI], {"content": None, "tool_calls": [CALL]}, id="a", parent="t", start=1.1),
    event("function", "find", {"id": 7}, "sent", id="f", parent="t", start=1.2),
    llm(
        [HI, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT],
        {"content": "It was sent."},
        id="b",
        parent="t",
        start=1.3,
    ),
    event("score", "Factuality", {}, {"score": 1}, id="s", parent="r", start=1.4, scores={"Factuality": 1}),
    llm([HI], {"content": "Right."}, id="j", parent="s", start=1.5),
    event("review", "Review by ann", id="v", parent="r", start=1.6, scores={"Helpful": 1.0}),
]


def test_an_evaluation_that_the_sdk_wrote_is_read_whole():
    samples = [READER.sample(record, 0) for record in READER.records(SDK)]
    assert detect(SDK).name == "braintrust"
    assert [sample.id for sample in samples] == [
        one["root_span_id"] for one in SDK if one["span_attributes"]["type"] == "eval"
    ]
    for sample in samples:
        roles = [message.role for message in sample.trace.messages]
        assert roles == ["system", "user", "assistant", "tool", "assistant"]
        assert [call.call.name for call in sample.trace.tool_calls()] == ["find_order"]
        assert [tool.name for tool in sample.trace.tools] == ["find_order"]
        assert sample.trace.response == sample.reference == "It was sent."
        assert sample.fields == {"question": "Where is order 7?", "lang": "en"}
        assert labels(sample) == {
            ("Levenshtein", 1.0, "benchmark", None, None),
            ("Factuality", 1, "judge", None, "Same fact."),
        }
        assert [one.usage.input_tokens for one in sample.trace.messages if one.role == "assistant"] == [10, 10]
        assert sample.trace.metadata["case"] == "sent"
        assert [message for message, _ in warnings(sample)] == [
            "model calls by evaluators, guardrails or rerankers, not part of the conversation, found 1"
        ]
    assert samples[0].group == samples[1].group is not None


def test_calls_of_other_apis_that_the_sdk_traced_are_read_whole():
    samples = [READER.sample(record, 0) for record in READER.records(PROVIDERS)]
    for sample, text in zip(samples, ("", "Let me look."), strict=True):
        messages = [(message.role, message.text) for message in sample.trace.messages]
        assert messages == [
            ("system", "You help."),
            ("user", "Where is order 7?"),
            ("assistant", text),
            ("tool", '{"status": "sent"}'),
            ("assistant", "It was sent."),
        ]
        assert [pair.call.args for pair in sample.trace.tool_calls()] == [{"id": 7}]
        assert [(tool.name, tool.parameters) for tool in sample.trace.tools] == [("find_order", {"type": "object"})]
        assert warnings(sample) == []


def test_a_trace_is_one_sample_with_scores_of_code_models_and_people():
    sample = read(*TRACE)
    assert (sample.id, sample.trace.metadata["event_id"]) == ("trace", "event-r")
    assert [message.text for message in sample.trace.messages] == ["Where is order 7?", "", "sent", "It was sent."]
    assert sample.reference == "Sent."
    assert labels(sample) == {
        ("Own", 0.5, "unknown", None, None),
        ("Factuality", 1, "judge", None, None),
        ("Helpful", 1.0, "human", "ann", None),
    }


def test_a_score_of_a_score_span_replaces_that_of_the_whole_and_reviewers_stay_apart():
    sample = read(
        event("eval", "eval", "q", "a", scores={"Helpful": 0.5, "Missing": None}),
        event("review", "Review by ann", id="v", parent="r", scores={"Helpful": 1.0}),
        event("review", "review", id="w", parent="r", scores={"Helpful": 0}),
        event("score", "Concise", id="s", parent="r", scores={"Concise": True}),
    )
    assert labels(sample) == {
        ("Helpful", 1.0, "human", "ann", None),
        ("Helpful", 0, "human", "w", None),
        ("Concise", True, "unknown", None, None),
    }
    assert warnings(sample) == []


@given(st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(random: Random):
    for document in (SDK, TRACE):
        shuffled = random.sample(document, len(document))
        samples = {sample.id: sample for record in READER.records(shuffled) for sample in [READER.sample(record, 0)]}
        assert samples == {
            sample.id: sample for record in READER.records(document) for sample in [READER.sample(record, 0)]
        }


def test_events_without_times_are_ordered_by_counter_and_length_of_their_input():
    events = [{**span, "metrics": {}} for span in TRACE]
    expected = [(message.role, message.text) for message in read(*events).trace.messages]
    assert [(message.role, message.text) for message in read(*reversed(events)).trace.messages] == expected
    assert len(expected) == 4


def test_older_versions_of_an_event_on_later_pages_are_left_out():
    new = {**TRACE[0], "_xact_id": "1000", "output": "new"}
    old = {**TRACE[0], "_xact_id": "999", "output": "old"}
    for events in ([new, old], [old, new], [new, new, old]):
        assert read(*events).trace.response == "new"
    other = {**new, "root_span_id": "other", "output": "of another experiment with the same cases"}
    assert [record["id"] for record in READER.records([new, other])] == ["trace", "other"]


def test_a_span_whose_parent_is_missing_belongs_to_the_root_of_its_trace():
    sample = read(*(span for span in TRACE if span["span_id"] != "t"))
    assert len(sample.trace.messages) == 4
    part = read(*TRACE[2:5])
    assert (part.id, len(part.trace.messages), part.reference) == ("trace", 4, None)
    assert warnings(part) == [("the root span is not in this file, so its input, output and scores are unknown", None)]


@pytest.mark.parametrize(
    ("given", "answer", "texts", "paths"),
    [
        ("q", "a", ["q", "a"], []),
        ({"question": "q"}, {"answer": "a"}, ["q", "a"], []),
        ({"a": 1, "b": 2}, [1, 2], ['{"a": 1, "b": 2}', "[1, 2]"], ["input", "output"]),
        (3, 4.0, ["3", "4"], []),
        ([HI], {"role": "assistant", "content": "a"}, ["Where is order 7?", "a"], []),
        ('[{"role": "user", "content": "q"}]', "a", ["q", "a"], []),
        ("q", None, ["q"], ["output"]),
        ("q", "", ["q", ""], ["output"]),
        (None, "a", ["a"], [None]),
    ],
)
def test_without_models_the_root_has_the_question_and_the_answer(given, answer, texts, paths):
    sample = read(event("eval", "eval", given, answer))
    assert [message.text for message in sample.trace.messages] == texts
    assert [getattr(message, "agent", None) for message in sample.trace.messages] == [None] * len(texts)
    assert [(warning.path or "").rpartition(".")[2] or None for warning in sample.trace.warnings] == paths
    assert sample.fields == (given if isinstance(given, dict) and len(given) > 1 else {})


def test_an_error_is_told_and_no_empty_answer():
    sample = read(event("eval", "eval", "q", None, error={"kind": "timeout"}))
    assert [message.role for message in sample.trace.messages] == ["user"]
    assert warnings(sample) == [("""contains no answer: '{"kind": "timeout"}'""", "error")]
    sample = read({"id": "a", "input": "q", "output": "", "error": "timeout", "scores": "{}", "metadata": {}})
    assert (len(sample.trace.messages), warnings(sample)) == (1, [("contains no answer: 'timeout'", "error")])
    answered = read(TRACE[0] | {"error": "late"}, *TRACE[1:5])
    assert warnings(answered)[0] == ("ended with an error: 'late'", "error")


def test_a_call_of_a_model_that_failed_is_told():
    failed = event("llm", "Chat Completion", [HI], None, id="a", parent="r", start=1.1, error="overloaded")
    sample = read(event("task", "task", "q", None), failed)
    assert [message.role for message in sample.trace.messages] == ["user"]
    assert warnings(sample) == [
        ("model calls without an answer, found 1: 'overloaded'", None),
        ("contains no answer", "output"),
    ]


def test_an_output_that_code_made_of_the_answer_is_told():
    sample = read(event("eval", "eval", "q", "Shipped!"), *TRACE[1:5])
    assert warnings(sample) == [
        ("the output of the root span is not among the messages of the model; kept as is", "output")
    ]
    assert sample.trace.extra["spans"][0]["attributes"]["output"] == "Shipped!"


def test_events_without_words_are_refused():
    with pytest.raises(TraceError, match="contains neither messages of a model nor an input or output"):
        read(event("eval", "eval"))


def test_scores_of_a_part_and_scores_that_are_no_numbers_are_told():
    sample = read(
        event("eval", "eval", "q", "a", scores={"Own": "high"}),
        event("task", "task", "q", "a", id="t", parent="r", scores={"Part": 1}),
        event("score", "odd", id="s", parent="r", start=2.0, scores=[1]),
    )
    assert not sample.trace.labels
    assert [message for message, _ in warnings(sample)] == [
        "expected a number, found 'high'; kept as is",
        "scores of a part of the trace; kept as is, not as labels",
        "expected an object, found [1]; kept as is",
    ]


def test_calls_that_the_model_has_said_are_not_read_twice():
    calls = [{"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"id": 7}'}]
    sample = read(
        event("eval", "eval", "q", "a"),
        event("llm", "responses", [HI], calls, id="a", parent="r", start=1.1),
        event("tool", "find", {"id": 7}, None, id="h", parent="a", start=1.2, metadata={"tool_type": "function_call"}),
        event("function", "find", {"id": 7}, "sent", id="f", parent="r", start=1.3),
    )
    assert [call.call.name for call in sample.trace.tool_calls()] == ["find"]
    assert [message.role for message in sample.trace.messages] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("origin", "experiment", "group"),
    [
        ({"object_type": "dataset", "object_id": "d", "id": "item-1"}, "e", "item-1"),
        ({"object_type": "prompt", "object_id": "d", "id": "p"}, None, None),
        (None, None, None),
    ],
)
def test_the_row_of_a_dataset_is_the_group(origin, experiment, group):
    assert read(event("eval", "eval", "q", "a", origin=origin, experiment_id=experiment)).group == group


def test_facts_beside_an_event_come_along():
    sample = read(event("eval", "eval", "q", "a", label="yes", group="g", tags=["x"], metadata={"model": "m"}))
    assert (sample.label, sample.group) == ("yes", "g")
    assert sample.trace.metadata == {"model": "m", "tags": ["x"], "event_id": "event-r"}


def test_rows_of_a_dataset_are_questions_with_references():
    row = {"id": "d1", "span_id": "s", "root_span_id": "s", "is_root": True, "dataset_id": "d", "input": {"q": "2+2?"}}
    sample = read({**row, "expected": ["4", "four"]})
    assert [message.text for message in sample.trace.messages] == ["2+2?"]
    assert (sample.references, sample.trace.metadata["dataset_id"]) == (("4", "four"), "d")
    assert warnings(sample) == [("contains no answer", "output")]


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    table = {"id": "a", "input": '{"q": "2+2?"}', "output": "4", "expected": "4", "scores": '{"x": 1, "y": null}'}
    table |= {"metadata": {"m": 1}, "error": "late", "tags": '["t"]'}
    intact(READER, SDK, PROVIDERS, TRACE, [table])
