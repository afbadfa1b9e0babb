import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.adk_eval import ADKEvalReader
from judgekit.traces.recording import Label
from judgekit.traces.sample import ExpectedCall

READER = ADKEvalReader()


def content(role, *texts):
    return {"role": role, "parts": [{"text": text, "function_call": None} for text in texts]}


def call(name, **args):
    return {"id": None, "name": name, "args": args}


TURNS = [
    {
        "invocation_id": "i1",
        "user_content": content("user", "Roll a die"),
        "final_response": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "A 5"}]},
        "intermediate_data": {
            "tool_uses": [call("roll", sides=6)],
            "tool_responses": [{"id": None, "name": "roll", "response": {"result": 5}}],
            "intermediate_responses": [["dicer", [{"text": "Rolling"}]]],
        },
        "creation_timestamp": 100.0,
    },
    {
        "invocation_id": "i2",
        "user_content": content("user", "Again"),
        "final_response": content("model", "A 6", "!"),
        "intermediate_data": {
            "invocation_events": [
                {"author": "dicer", "content": {"role": "model", "parts": [{"function_call": call("roll", sides=20)}]}},
                {
                    "author": "dicer",
                    "content": {
                        "role": "user",
                        "parts": [{"function_response": {"name": "roll", "response": {"result": 6}}}],
                    },
                },
            ]
        },
        "creation_timestamp": 0.0,
    },
]
CASES = {
    "eval_set_id": "set",
    "name": "Dice",
    "eval_cases": [
        {"eval_id": "c1", "conversation": TURNS, "session_input": {"app_name": "dice", "state": {"seed": 7}}},
        {"eval_id": "c2", "conversation": [{"user_content": content("user", "Hi")}]},
    ],
    "creation_timestamp": 1.5,
}
RESULTS = {
    "eval_set_result_id": "r",
    "eval_set_id": "set",
    "eval_case_results": [
        {
            "eval_id": "c1",
            "final_eval_status": 2,
            "overall_eval_metric_results": [
                {"metric_name": "tool_trajectory_avg_score", "threshold": 1.0, "score": 0.5, "eval_status": 2},
                {"metric_name": "response_match_score", "eval_status": 3},
            ],
            "eval_metric_result_per_invocation": [
                {"actual_invocation": turn, "expected_invocation": turn, "eval_metric_results": [{"score": 1.0}]}
                for turn in TURNS
            ],
            "session_id": session,
            "user_id": "u",
        }
        for session in ("s1", "s2")
    ],
    "creation_timestamp": 2.5,
}
EXPECTED = (ExpectedCall("roll", {"sides": 6}, turn=1), ExpectedCall("roll", {"sides": 20}, turn=2))


def camel(value):
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): camel(item) for key, item in value.items()}


@pytest.mark.parametrize("document", [CASES, camel(CASES)], ids=["snake_case", "camelCase"])
def test_a_case_gives_the_messages_of_the_user_and_what_is_expected(document):
    assert detect(document).name == "adk-eval"
    first, second = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
    assert [(message.role, message.text) for message in first.trace.messages] == [
        ("user", "Roll a die"),
        ("user", "Again"),
    ]
    assert first.reference_tool_calls == EXPECTED
    assert (first.id, first.reference, first.fields) == ("c1", "A 6\n!", {"final_responses": ["A 5", "A 6\n!"]})
    assert [warning.message[:35] for warning in first.trace.warnings] == ["contains expected results but no ag"]
    assert (second.id, second.reference, second.reference_tool_calls, second.fields) == ("c2", None, None, {})


def test_a_turn_where_no_call_is_expected_is_told_from_one_of_which_nothing_is_known():
    silent = {"user_content": content("user", "Hi"), "intermediate_data": {"tool_uses": []}}
    assert READER.sample({"eval_id": "c", "conversation": [silent]}, 0).reference_tool_calls == ()


@pytest.mark.parametrize("document", [RESULTS, camel(RESULTS)], ids=["snake", "camel"])
def test_a_result_gives_what_was_done_beside_what_was_expected(document):
    assert detect(document).name == "adk-eval"
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
    assert [(sample.id, sample.group) for sample in samples] == [("s1", "set c1"), ("s2", "set c1")]
    sample = samples[0]
    assert [(message.role, message.text) for message in sample.trace.messages] == [
        ("user", "Roll a die"),
        ("assistant", ""),
        ("tool", "5"),
        ("assistant", "A 5"),
        ("user", "Again"),
        ("assistant", ""),
        ("tool", "6"),
        ("assistant", "A 6\n!"),
    ]
    assert sample.trace.messages[5].agent == "dicer"
    assert [(pair.turn, pair.call.args) for pair in sample.trace.tool_calls()] == [
        (1, {"sides": 6}),
        (2, {"sides": 20}),
    ]
    assert sample.reference_tool_calls == EXPECTED
    assert sample.trace.labels == (
        Label("final_eval_status", "failed", source="benchmark"),
        Label("tool_trajectory_avg_score", 0.5, source="benchmark"),
    )
    assert [warning.path for warning in sample.trace.warnings] in (
        ["eval_metric_result_per_invocation[0].actual_invocation.intermediate_data"],
        ["evalMetricResultPerInvocation[0].actualInvocation.intermediateData"],
    )


def test_cases_of_two_sets_with_one_id_are_two_groups():
    [result, _] = RESULTS["eval_case_results"]
    documents = [
        {**RESULTS, "eval_set_id": "other"},
        {**result, "eval_set_id": "own"},
        camel({**result, "eval_set_id": "own"}),
        {**result, "eval_set_id": ""},
    ]
    samples = [READER.sample(READER.records(document)[0], 0) for document in documents]
    assert [sample.group for sample in samples] == ["other c1", "own c1", "own c1", "c1"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            {"eval_id": "c", "conversation": [{}]},
            "conversation[0].user_content: expected the user's message, found nothing",
        ),
        ({"eval_id": "c", "conversation": []}, "the case contains no messages"),
        ({"eval_id": "c", "conversation_scenario": {"plan": "x"}}, "contains no messages (its user is simulated)"),
        ({"eval_id": "c", "eval_metric_result_per_invocation": []}, "the result contains no messages"),
    ],
)
def test_an_error_says_where_and_what_was_found(document, problem):
    assert READER.recognizes(document)
    with pytest.raises(TraceError, match=re.escape(problem)):
        READER.sample(READER.records(document)[0], 0)


@pytest.mark.parametrize(
    ("metrics", "of_the_whole"),
    [
        ({"tool_trajectory_avg_score": "benchmark", "response_match_score": "benchmark"}, "benchmark"),
        ({"response_match_score": "benchmark", "mine": "unknown"}, "unknown"),
        ({"mine": "unknown", "final_response_match_v2": "judge"}, "judge"),
        ({"hallucinations_v1": "judge", "safety_v1": "judge", "response_evaluation_score": "judge"}, "judge"),
        ({"rubric_based_tool_use_quality_v1": "judge", "multi_turn_task_success_v1": "judge"}, "judge"),
        ({}, "unknown"),
    ],
)
def test_metrics_that_a_model_grades_are_those_of_a_judge_and_so_is_a_status_made_of_them(metrics, of_the_whole):
    case = RESULTS["eval_case_results"][0]
    scored = [{"metric_name": name, "score": 1.0} for name in metrics]
    document = {**RESULTS, "eval_case_results": [{**case, "overall_eval_metric_results": scored}]}
    labels = READER.sample(READER.records(document)[0], 0).trace.labels
    assert {label.name: label.source for label in labels} == {"final_eval_status": of_the_whole, **metrics}


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, CASES, RESULTS)
