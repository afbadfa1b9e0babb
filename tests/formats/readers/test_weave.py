from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.weave import WeaveReader

READER = WeaveReader()
HI = {"role": "user", "content": "Where is order 7?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sent"}


def call(name, inputs, output, *, id, parent=None, start=0, kind=None, trace="t", **more):
    """Return a call with the fields of `weave.trace.call.CallDict`, version 0.54."""
    return {
        "id": id,
        "op_name": f"weave:///e/p/op/{name}:v1",
        "trace_id": trace,
        "parent_id": parent,
        "started_at": f"2026-11-20T10:00:{start:02d}Z",
        "ended_at": f"2026-11-20T10:00:{start + 1:02d}Z",
        "inputs": inputs,
        "output": output,
        "exception": None,
        "attributes": {"weave": {"client_version": "0.54", **({"kind": kind} if kind else {})}},
        "summary": {"weave": {"status": "success"}},
        "project_id": "e/p",
        **more,
    }


def llm(asked, answer, *, id, parent, start, **more):
    output = {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": answer}]}
    inputs = {"self": "<openai>", "model": "m", "messages": asked}
    return call("openai.chat.completions.create", inputs, output, id=id, parent=parent, start=start, **more)


def read(*calls):
    (record,) = READER.records(list(calls))
    return READER.sample(record, 0)


def warnings(sample):
    return [(one.message, one.path) for one in sample.trace.warnings]


SAID = {"role": "assistant", "content": None, "tool_calls": [CALL]}
FEEDBACK = [
    {"feedback_type": "wandb.annotation.tone", "payload": {"value": True}, "creator": "ann"},
    {"feedback_type": "wandb.runnable.Toxicity", "payload": {"output": {"flagged": False, "score": 0.1}}},
    {"feedback_type": "wandb.reaction.1", "payload": {"emoji": "+"}, "creator": "bo"},
]
TRACE = [
    call(
        *("answer", {"question": "Where is order 7?"}, "It was sent."),
        id="r",
        thread_id="chat",
        summary={"weave": {"feedback": FEEDBACK}},
    ),
    llm([HI], SAID, id="a", parent="r", start=1, summary={"usage": {"m": {"prompt_tokens": 9}}}),
    call("find", {"id": 7}, "sent", id="f", parent="r", start=3),
    llm([HI, SAID, RESULT], {"role": "assistant", "content": "It was sent."}, id="b", parent="r", start=5),
]


def example(number, answer):
    return [
        call(
            "Evaluation.predict_and_score",
            {"self": "e", "model": "m", "example": {"question": f"q{number}", "expected": "a"}},
            {"output": answer, "scores": {"exact": {"correct": answer == "a"}, "Judge": 0.5}, "model_latency": 0.1},
            id=f"p{number}",
            parent="e",
            start=number * 10,
        ),
        call(
            "predict", {"question": f"q{number}"}, answer, id=f"m{number}", parent=f"p{number}", start=number * 10 + 1
        ),
        call(
            "exact", {"output": answer}, {"correct": True}, id=f"x{number}", parent=f"p{number}", start=number * 10 + 2
        ),
        call("Judge.score", {"output": answer}, 0.5, id=f"j{number}", parent=f"p{number}", start=number * 10 + 3),
        llm([HI], {"role": "assistant", "content": "0.5"}, id=f"l{number}", parent=f"j{number}", start=number * 10 + 4),
    ]


EVALUATION = [
    call("Evaluation.evaluate", {"self": "e", "model": "m"}, {"exact": {"correct": 0.5}}, id="e"),
    *example(1, "a"),
    *example(2, "b"),
    call("Evaluation.summarize", {"self": "e"}, {"exact": {"correct": 0.5}}, id="s", parent="e", start=50),
]


def test_a_trace_is_one_sample_with_feedback_as_labels():
    assert detect(TRACE).name == "weave"
    sample = read(*TRACE)
    assert (sample.id, sample.group) == ("t", "chat")
    assert [message.text for message in sample.trace.messages] == ["Where is order 7?", "", "sent", "It was sent."]
    assert [made.call.name for made in sample.trace.tool_calls()] == ["find"]
    assert {(one.name, one.value, one.source, one.annotator) for one in sample.trace.labels} == {
        ("tone", True, "human", "ann"),
        ("Toxicity.flagged", False, "unknown", None),
        ("Toxicity.score", 0.1, "unknown", None),
    }
    assert warnings(sample) == []


def test_an_example_of_an_evaluation_is_a_sample_without_its_scorers():
    samples = [READER.sample(record, 0) for record in READER.records(EVALUATION)]
    assert [one.id for one in samples] == ["p1", "p2"]
    for sample, answer in zip(samples, "ab", strict=True):
        assert [message.text for message in sample.trace.messages][1:] == [answer]
        assert sample.fields["expected"] == "a"
        assert {(one.name, one.value, one.source) for one in sample.trace.labels} == {
            ("exact.correct", answer == "a", "unknown"),
            ("Judge", 0.5, "judge"),
        }
        assert [one["id"] for one in sample.trace.extra["evaluation"]] == ["e", "s"]
    assert samples[0].group != samples[1].group
    assert samples[0].trace.messages[0].text == "q1"
    with pytest.raises(TraceError, match="an evaluation without its examples; export the calls of Evaluation"):
        read(EVALUATION[0])


@given(st.randoms(use_true_random=False))
def test_the_order_of_calls_does_not_matter(random: Random):
    shuffled = random.sample(TRACE, len(TRACE))
    assert read(*shuffled) == read(*TRACE)
    found = {
        one.id: one.trace.messages for one in map(READER.sample, READER.records(random.sample(EVALUATION, 12)), [0, 0])
    }
    assert found == {one.id: one.trace.messages for one in map(READER.sample, READER.records(EVALUATION), [0, 0])}


def test_an_example_by_reference_is_not_taken_for_the_question():
    reference = "weave:///e/p/object/Dataset:v/attr/rows/id/1"
    root = example(1, "a")[0]
    sample = read({**root, "inputs": {"self": "e", "example": reference}})
    assert [message.text for message in sample.trace.messages] == ["a"]
    assert sample.trace.extra["spans"][0]["attributes"]["example"] == reference
    assert [message.partition(";")[0] for message, _ in warnings(sample)] == ["no user message"]


def test_feedback_on_the_call_of_a_model_is_read():
    summary = {"usage": {"m": {"prompt_tokens": 9}}, "weave": {"feedback": FEEDBACK}}
    sample = read(llm([HI], {"role": "assistant", "content": "a"}, id="a", parent=None, start=1, summary=summary))
    assert [label.name for label in sample.trace.labels] == ["tone", "Toxicity.flagged", "Toxicity.score"]
    assert sample.trace.messages[1].usage.input_tokens == 9


def test_kinds_of_operations_are_heeded():
    sample = read(
        call("answer", {"question": "q", "lang": "en"}, "a", id="r", kind="agent"),
        call("search", {"q": 1}, "found", id="f", parent="r", start=1, kind="tool"),
        call("safe", {"text": "q"}, "yes", id="g", parent="r", start=2, kind="guardrail"),
    )
    assert [made.call.name for made in sample.trace.tool_calls()] == ["search"]
    assert [message.role for message in sample.trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert sample.fields == {"question": "q", "lang": "en"}


@pytest.mark.parametrize(
    ("output", "exception", "roles", "told"),
    [
        (None, "timeout", ["user"], [("contains no answer: 'timeout'", "exception")]),
        (None, None, ["user"], [("contains no answer", "output")]),
        ("a", "late", ["user", "assistant"], [("ended with an error: 'late'", "exception")]),
        (5, None, ["user", "assistant"], []),
    ],
)
def test_an_exception_is_told_and_no_empty_answer(output, exception, roles, told):
    sample = read(call("answer", {"question": "q"}, output, id="r", exception=exception))
    assert [message.role for message in sample.trace.messages] == roles
    assert warnings(sample) == told


def test_calls_without_words_are_refused():
    with pytest.raises(TraceError, match="contains neither a call of a model nor an input or output"):
        read(call("answer", {}, None, id="r"))


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, TRACE, EVALUATION)
