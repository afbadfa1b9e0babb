import json
from pathlib import Path
from typing import NamedTuple

import pytest

import judgekit
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.promptfoo import PromptfooReader
from judgekit.traces.message import AIMessage

READER = PromptfooReader()
DATA = Path(__file__).parent / "data" / "promptfoo"


class Count(NamedTuple):
    """What a file holds, counted by hand: samples, messages, calls, texts and calls as references, labels by source."""

    samples: int
    messages: int
    calls: int
    references: int
    expected_calls: int
    labels: dict[str, int]


OWN = {
    # 4 variants of the first test answer, and 2 of the second; a chat has a system message
    "results.json": Count(8, 18, 0, 8, 0, {"benchmark": 14, "judge": 16}),
    "results.jsonl": Count(2, 4, 1, 0, 1, {"benchmark": 7, "judge": 4}),
    "rated.json": Count(2, 4, 1, 0, 1, {"benchmark": 5, "judge": 2, "human": 6}),
    "library.json": Count(1, 2, 0, 1, 0, {"benchmark": 3}),
    "openai_import.json": Count(2, 3, 0, 0, 0, {"judge": 3, "unknown": 1}),
}


def counted(path):
    samples = list(judgekit.read(path, on_error="raise"))
    assert {sample.trace.source.format for sample in samples} == {"promptfoo"}
    labels = [label.source for sample in samples for label in sample.trace.labels]
    return Count(
        len(samples),
        sum(len(sample.trace.messages) for sample in samples),
        sum(len(sample.trace.tool_calls()) for sample in samples),
        sum(len(sample.all_references) for sample in samples),
        sum(len(sample.reference_tool_calls or ()) for sample in samples),
        {source: labels.count(source) for source in dict.fromkeys(sorted(labels))},
    )


def document_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def result(output="4", *, raw="2+2?", components=(), **row):
    """Return a result as promptfoo writes it."""
    grading = {"pass": True, "score": 1, "reason": "All assertions passed", "componentResults": list(components)}
    return {
        "id": "r1",
        "testIdx": 0,
        "promptIdx": 0,
        "prompt": {"raw": raw, "label": "{{q}}"},
        "provider": {"id": "openai:gpt", "label": ""},
        "vars": {"q": "2+2?"},
        "response": {"output": output},
        "success": True,
        "score": 1,
        "namedScores": {},
        "gradingResult": grading if components else None,
        "failureReason": 0,
        **row,
    }


def component(kind, score=1, **more):
    assertion = {"type": kind, **{name: more.pop(name) for name in ("value", "metric", "provider") if name in more}}
    return {"pass": score == 1, "score": score, "reason": f"of {kind}", "assertion": assertion, **more}


def sample(record):
    assert detect(record).name == "promptfoo"
    (one,) = READER.records(record)
    return READER.sample(one, 0)


def told(made):
    return [
        (one.role, one.text, [(c.name, c.args) for c in getattr(one, "tool_calls", ())]) for one in made.trace.messages
    ]


def labels(made):
    return {one.name: (one.value, one.source, one.annotator, one.reason) for one in made.trace.labels}


def warned(made):
    return {one.path: one.message for one in made.trace.warnings}


def test_the_results_of_a_test_share_a_group_and_name_their_variant():
    found = list(judgekit.read(DATA / "results.json"))
    assert len({one.id for one in found}) == 8
    assert {one.group for one in found} == {
        "question=What is the capital of France?, expected=Paris",
        "question=crash now",
    }
    chat = 'chat.json: [{"role":"system","content":"Be brief."},{"role":"user","content":"{{question}}"}]'
    variants = {(provider, prompt) for provider in ("echo", "fixed") for prompt in ("Answer: {{question}}", chat)}
    agents = [one.metadata["agent"] for one in found]
    assert {(agent["provider"], agent["prompt"]) for agent in agents} == variants


def test_assertions_become_labels_by_who_judged():
    made = sample(
        result(
            components=[
                component("contains", value="4", metric="four"),
                component("llm-rubric", 0.5, provider={"id": "openai:judge"}),
                component("llm-rubric", 1),
                component("not-llm-rubric", 0),
                component("promptfoo:redteam:bias", 0),
                component("human", 0, comment="Wrong."),
            ],
            testCase={"options": {"provider": "anthropic:judge"}},
            namedScores={"four": 1, "derived": 0.25},
        )
    )
    assert labels(made) == {
        "four": (1, "benchmark", None, "of contains"),
        "llm-rubric": (0.5, "judge", "openai:judge", "of llm-rubric"),
        "llm-rubric2": (1, "judge", "anthropic:judge", "of llm-rubric"),
        "not-llm-rubric": (0, "judge", "anthropic:judge", "of not-llm-rubric"),
        "promptfoo:redteam:bias": (0, "judge", "anthropic:judge", "of promptfoo:redteam:bias"),
        "human": (0, "human", None, "Wrong."),
        "derived": (0.25, "unknown", None, None),
        "success": (True, "human", None, "All assertions passed"),
        "score": (1, "human", None, "All assertions passed"),
    }


def test_a_set_of_assertions_is_a_label_beside_those_in_it():
    inner = [component("contains"), component("llm-rubric")]
    whole = {"pass": True, "score": 1, "reason": "both", "componentResults": inner}
    named = {**whole, "metadata": {"assertionSet": {"type": "assert-set", "metric": "form"}}}
    code = {**whole, "componentResults": inner[:1], "metadata": {"assertionSet": {"type": "assert-set"}}}
    made = sample(result(components=[named, code, *inner]))
    assert labels(made)["form"][:2] == (1, "judge")
    assert labels(made)["assert-set"][:2] == (1, "benchmark")
    assert list(labels(made)) == ["form", "assert-set", "contains", "llm-rubric", "success", "score"]


def test_a_grader_that_failed_gives_no_label():
    made = sample(result(components=[component("llm-rubric", 0, metadata={"graderError": True})]))
    assert "llm-rubric" not in labels(made)
    assert "the grader failed: 'of llm-rubric'" in warned(made)["gradingResult.componentResults[0].score"]


def test_a_result_without_assertions_has_no_labels():
    assert labels(sample(result())) == {}


def test_answers_that_assertions_compare_with_are_references():
    cases = [
        ([{"type": "equals", "value": "4"}], {"reference": "4"}),
        ([{"type": "equals", "value": {"a": 4}}], {"reference": '{"a": 4}'}),
        ([{"type": "similar", "value": ["4", "four"]}], {"references": ("4", "four")}),
        ([{"type": "factuality", "value": "four"}, {"type": "equals", "value": "four"}], {"reference": "four"}),
        ([{"type": "assert-set", "assert": [{"type": "rouge-n", "value": "4"}]}], {"reference": "4"}),
        ([{"type": "contains", "value": "4"}, {"type": "llm-rubric", "value": "is kind"}], {}),
        ([{"type": "not-equals", "value": "4"}, {"type": "equals", "value": "file://a.txt"}], {}),
        ([{"type": "javascript", "value": "output == 4"}, {"type": "context-faithfulness"}], {}),
    ]
    for assertions, known in cases:
        made = sample(result(testCase={"assert": assertions}))
        found = {name: getattr(made, name) for name in ("reference", "references") if getattr(made, name) is not None}
        assert found == known
        assert made.reference_tool_calls is made.documents is None


def test_a_value_that_cannot_be_filled_in_is_that_of_the_report_or_named():
    written = {"type": "equals", "value": "{{ q | upper }}"}
    made = sample(result(testCase={"assert": [written]}))
    assert made.reference is None
    assert "template" in warned(made)["testCase.assert"]
    rendered = component("equals", value="{{ q | upper }}", metadata={"renderedAssertionValue": "2+2?"})
    assert sample(result(components=[rendered])).reference == "2+2?"


def test_expected_tools_and_documents():
    names = [{"type": "tool-call-f1", "value": value} for value in (["f", "g"], "f, g")]
    for one in names:
        [f, g] = sample(result(testCase={"assert": [one]})).reference_tool_calls
        assert (f.name, g.name, f.compare_args, g.compare_args) == ("f", "g", (), ())
    asserts = {"assert": [{"type": "context-faithfulness"}]}
    assert sample(result(vars={"context": "d"}, testCase=asserts)).documents == ("d",)
    assert sample(result(vars={"context": ["d", "e"]}, testCase=asserts)).documents == ("d", "e")


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}
ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}


def test_calls_in_an_output():
    cases = [
        ([CALL], ""),
        (json.dumps([CALL]), ""),
        ({"role": "assistant", "content": "Wait", "tool_calls": [CALL]}, "Wait"),
        (json.dumps({"role": "assistant", "content": "Wait", "tool_calls": [CALL]}), "Wait"),
        ({"name": "f", "arguments": '{"a": 1}'}, ""),
        (f"Wait\nplease\n\n{json.dumps(USE)}", "Wait\nplease"),
        (json.dumps(USE), ""),
        (json.dumps([USE]), ""),
        (json.dumps([ITEM]), ""),
        (f"{json.dumps(ITEM)}", ""),
        (f"Wait\n{json.dumps(ITEM)}", "Wait"),
    ]
    for output, text in cases:
        made = sample(result(output))
        assert [(call.call.name, call.call.args) for call in made.trace.tool_calls()] == [("f", {"a": 1})]
        assert made.trace.messages[0].text == "2+2?"
        assert "".join(one.text for one in made.trace.messages[1:]) == text


@pytest.mark.parametrize("output", ["", "a\ntool_use\n{}", '{"type": "tool_use"', '[{"function": 1}]', "[]"])
def test_a_text_stays_as_it_is(output):
    assert told(sample(result(output)))[1:] == [("assistant", output, [])]


def test_an_object_is_its_json():
    made = sample(result({"answer": 4, "unit": None}))
    assert made.trace.response == '{"answer": 4, "unit": null}'
    assert "JSON text" in warned(made)["response.output"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("2+2?", [("user", "2+2?")]),
        ('[{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]', [("system", "s"), ("user", "u")]),
        ('{"messages": [{"role": "user", "content": "u"}]}', [("user", "u")]),
        ('["a"]', [("user", '["a"]')]),
        ('[{"role": "user", "content": 1}]', [("user", '[{"role": "user", "content": 1}]')]),
    ],
)
def test_prompts(raw, said):
    assert [(role, text) for role, text, _ in told(sample(result(raw=raw)))[:-1]] == said


def test_a_prompt_in_yaml_is_named():
    made = sample(result(raw="- role: user\n  content: hi"))
    assert "YAML" in warned(made)["prompt.raw"]


def test_errors_are_named_and_no_labels():
    failed = result(response={"error": "500"}, error="500", failureReason=2, success=False, score=0)
    made = sample(failed)
    assert not any(isinstance(one, AIMessage) for one in made.trace.messages)
    assert (made.trace.termination, labels(made)) == ("error: 500", {})
    assert warned(made)["response"] == "contains no answer: '500'"
    assert "not a label" in warned(made)["score"]
    for none in ({}, {"output": None}, None):
        assert warned(sample(result(response=none)))["response"] == "contains no answer"
    half = sample(result(response={"output": "4", "error": "cut"}))
    assert (half.trace.response, half.trace.termination) == ("4", "error: cut")
    assert warned(half)["response"] == "ended with an error: 'cut'"


def test_usage_cost_latency_and_model():
    usage = {"total": 9, "prompt": 5, "completion": 4, "cached": 0, "completionDetails": {"reasoning": 3}}
    response = {"output": "4", "tokenUsage": usage, "finishReason": "stop", "metadata": {"model": "gpt-5"}}
    made = sample(result(response=response, cost=0.5, latencyMs=12, metadata={"model": "gpt-5", "team": "a"}))
    found = made.trace.usage
    assert (found.input_tokens, found.output_tokens, found.cached_tokens, found.reasoning_tokens) == (5, 4, None, 3)
    assert found.extra == {"total": 9, "cached": 0}
    assert (made.trace.cost_usd, made.trace.metadata) == (0.5, {"latencyMs": 12})
    assert (made.trace.messages[-1].model, made.trace.messages[-1].finish_reason) == ("gpt-5", "stop")
    assert made.metadata == {"agent": {"provider": "openai:gpt", "prompt": "{{q}}"}, "team": "a"}


def test_a_simulated_user_and_an_attacker_are_conversations():
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    metadata = {"messages": said}
    simulated = sample(
        result(
            raw="Be kind.",
            response={"output": "User: Hi\n---\nAssistant: Hello", "metadata": metadata},
            metadata=metadata,
        )
    )
    assert told(simulated) == [("system", "Be kind.", []), ("user", "Hi", []), ("assistant", "Hello", [])]
    attacked = sample(result(response={"output": "Hello", "metadata": metadata}))
    assert told(attacked) == [("user", "Hi", []), ("assistant", "Hello", [])]
    other = sample(result(response={"output": "Bye", "metadata": metadata}))
    assert told(other) == [("user", "2+2?", []), ("assistant", "Bye", [])]
    assert "messages or tool calls not read" in warned(other)["response"]
    broken = {"messages": [{"role": 1, "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    assert told(sample(result(response={"output": "Hello", "metadata": broken})))[0] == ("user", "2+2?", [])


def test_the_calls_of_a_coding_agent_are_kept_and_told():
    calls = [{"id": "t1", "name": "Read", "input": {"path": "a"}, "output": "text", "is_error": False}]
    made = sample(result(response={"output": "Done", "metadata": {"toolCalls": calls}}))
    assert told(made) == [("user", "2+2?", []), ("assistant", "Done", [])]
    assert warned(made)["response"] == "messages or tool calls not read, found 1"


def test_groups():
    assert sample(result(vars={})).group == "test 0"
    assert sample(result(vars={"q": 3, "empty": "", "_conversation": [1]})).group == "q=3"
    long, other = (sample(result(vars={"q": f"{'x' * 100}{end}"})).group for end in "ab")
    assert long[:80] == other[:80]
    assert long != other
    assert sample(result(vars={"item": {"input": "a"}})).group == "input=a"


def test_older_files_and_what_the_library_returns():
    row = {name: one for name, one in result().items() if name not in ("id", "testIdx", "promptIdx", "failureReason")}
    old = {**row, "provider": "openai:gpt"}
    for document in (
        {"evalId": "e", "results": {"version": 2, "results": [old], "table": {"head": {}}}},
        {"results": [old], "stats": {}},
    ):
        (one,) = READER.records(document)
        made = READER.sample(one, 3)
        assert detect(document).name == "promptfoo"
        assert (made.id, told(made)) == ("3", [("user", "2+2?", []), ("assistant", "4", [])])
        assert made.metadata["agent"] == {"provider": "openai:gpt", "prompt": "{{q}}"}


def test_a_configuration_is_refused_with_the_command_that_runs_it(tmp_path):
    path = tmp_path / "promptfooconfig.json"
    path.write_text(json.dumps({"prompts": ["{{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "a"}}]}))
    with pytest.raises(TraceError, match=r"run: promptfoo eval -o results\.json"):
        list(judgekit.read(path))


def test_a_record_without_a_prompt_is_refused():
    with pytest.raises(TraceError, match="prompt: expected an object with the prompt's text, found nothing"):
        READER.sample({"success": True}, 0)


@pytest.mark.parametrize("variables", [(), ("q",), ("q", "more")])
def test_a_table_is_refused_with_the_command_that_writes_the_whole(tmp_path, variables):
    """Also one with several outputs, whose columns repeat."""
    block = ("[p] {{q}}", "Status", "Score", "Named Scores", "Grader Reason", "Comment")
    for blocks in (1, 2):
        cells = ("4", "PASS", "1.00", "", "ok", "") * blocks
        path = tmp_path / "a.csv"
        path.write_text("\n".join(map(",".join, [(*variables, *block * blocks), (*variables, *cells)])))
        with pytest.raises(TraceError, match=r"is a table of promptfoo, .*; write promptfoo eval -o results\.json"):
            list(judgekit.read(path))


def test_two_providers_are_compared_by_test(tmp_path):
    """A renamed column makes the number of the test the id, by which runs are compared."""
    rows = [result("4", testIdx=at, provider={"id": name, "label": ""}) for at in range(3) for name in "ab"]
    for name in "ab":
        text = "\n".join(json.dumps(row) for row in rows if row["provider"]["id"] == name)
        (tmp_path / f"{name}.jsonl").write_text(text)
    ids = [
        [one.id for one in judgekit.read(tmp_path / f"{name}.jsonl", columns={"testIdx": "id", "id": "result"})]
        for name in "ab"
    ]
    assert ids == [["0", "1", "2"]] * 2


def test_files_of_promptfoo_are_read_whole(intact):
    for name, counts in OWN.items():
        assert counted(DATA / name) == counts
        intact(READER, document_of(DATA / name))
