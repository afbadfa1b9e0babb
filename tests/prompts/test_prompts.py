"""The shipped prompts: what a judge is sent, word for word, and whether it can be sent at all.

A changed word shows in ``golden/``. After a change, look at the difference that this leaves behind:

    python tests/prompts/test_prompts.py
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit import (
    FailureAnalysis,
    Groundedness,
    HandoffQuality,
    Judge,
    Pairwise,
    PromptScorer,
    Sample,
    ScriptedJudge,
    TopicAdherence,
    Trace,
    read,
)
from judgekit.errors import RejectedError
from judgekit.judges.inputs import PROMPT_INPUTS, RenderOptions, prompt_input
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt, shipped_prompts
from judgekit.judges.request import Request
from judgekit.score import Score
from judgekit.scorers.criteria import WeightedCriteria
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scoring import Scorer, attempt, run_sync
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition

GOLDEN = Path(__file__).with_name("golden")
EXAMPLES = list(read(Path(__file__).parents[2] / "examples" / "conversations.jsonl"))
PROMPTS = [prompt.name for prompt in shipped_prompts()]
SCALED = [prompt.name for prompt in shipped_prompts() if prompt.scale]
OWN: dict[str, Callable[[Judge], Scorer]] = {
    "agent_goal_with_reference": AgentGoalAccuracyWithReference,
    "agent_goal_without_reference": AgentGoalAccuracyWithoutReference,
    "groundedness": Groundedness,
    "failure_analysis": lambda judge: FailureAnalysis(judge, of="all"),
    "handoffs": HandoffQuality,
    "pairwise": lambda judge: Pairwise("Which agent did what the user asked for?", judge),
    "topic_adherence": TopicAdherence,
    "weighted_criteria": lambda judge: WeightedCriteria({"booked": 0.75, "polite": 0.25}, judge=judge),
}
"""What asks the prompts that have no scale."""

HI = Sample.of([HumanMessage("hi")], id="hi")
FULL = Sample(
    id="table",
    trace=Trace(
        messages=[
            SystemMessage("You book tables at Zur Linde. Book only what the guest has confirmed."),
            HumanMessage("A table for four on Friday at 8, please."),
            AIMessage("", tool_calls=[ToolCall("find_tables", {"people": 4, "date": "2025-06-13"}, id="c1")]),
            ToolMessage('{"error": "no date given"}', tool_call_id="c1", name="find_tables", is_error=True),
            AIMessage("At 20:00 there is one by the window.\nShall I book it?"),
            HumanMessage("Yes!"),
        ],
        tools=[ToolDefinition("find_tables", description="Free tables of a day.", parameters={"type": "object"})],
    ),
    baseline=Trace(messages=[HumanMessage("A table for four on Friday at 8, please."), AIMessage("We are full.")]),
    reference="A table for four is booked for Friday, 20:00.",
    reference_topics=["tables", "opening hours"],
    documents=["Zur Linde has twelve tables.", "It opens at 17:00."],
    fields={"booked": False},
)


HANDED = Trace(messages=[HumanMessage("Which tables are free?"), AIMessage("One for four.", agent="tables")])


def handed(sample: Sample) -> Sample:
    """The sample with a hand-off, which is a sub-agent that the judges of the others are not shown."""
    return sample.model_copy(update={"trace": sample.trace.model_copy(update={"children": (HANDED,)})})


def asked(name: str, sample: Sample) -> tuple[Prompt, list[Request], Score]:
    """A prompt with its options as its scorer fills them, what the judge is sent, and the score of a judge that fails."""
    judge = ScriptedJudge(lambda _: RejectedError("not today"))
    scorer = OWN.get(name, lambda judge: PromptScorer(name, judge))(judge)
    score = run_sync(lambda: attempt(scorer, sample))
    (prompt,) = scorer.prompts
    return prompt, list(judge.requests), score


def request(name: str, sample: Sample) -> Request:
    return asked(name, sample)[1][0]


def completed(sample: Sample) -> Sample:
    """The sample with something short where it lacks an input."""
    trace = sample.trace if sample.trace.tools else sample.trace.model_copy(update={"tools": FULL.trace.tools})
    lacking = [
        name for name in PROMPT_INPUTS if name in Sample.model_fields and not PROMPT_INPUTS[name].is_present(sample)
    ]
    return sample.model_copy(update={"trace": trace} | {name: getattr(FULL, name) for name in lacking})


# Word for word


def rendered(name: str) -> str:
    sent = request(name, handed(FULL))
    parts = [f"=== {turn.role}\n\n{turn.content}\n" for turn in sent.messages]
    return "\n".join((*parts, f"=== reply\n\n{json.dumps(sent.schema, indent=1)}\n"))


@pytest.mark.parametrize("name", PROMPTS)
def test_a_judge_is_sent_what_the_golden_file_says(name):
    golden = GOLDEN / f"{name}.txt"
    assert golden.is_file(), f"run python {Path(__file__).name} and read the new file"
    assert rendered(name) == golden.read_text(encoding="utf-8")


def test_every_prompt_is_asked_by_a_scale_or_by_a_scorer_of_its_own():
    assert sorted([*SCALED, *OWN]) == sorted(PROMPTS)


def test_the_golden_sample_fills_every_input():
    assert all(one.is_present(handed(FULL)) for one in PROMPT_INPUTS.values())
    assert not any(PROMPT_INPUTS[name].is_present(HI) for name in PROMPT_INPUTS.keys() - {"conversation", "turns"})


# What a prompt file says


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_says_what_it_asks_and_where_that_comes_from(name):
    prompt = load_prompt(name)
    assert re.fullmatch(r"[A-Z][^\n]+\?( \([^()]+\.\))?", prompt.description)
    assert prompt.source.endswith(".")
    assert prompt.inputs[0] == "conversation"


@pytest.mark.parametrize("name", SCALED)
def test_what_is_skipped_is_said_where_it_can_be(name):
    prompt = load_prompt(name)
    may_be_skipped = "skipped" in dict(prompt.scale).values() or {*prompt.inputs} - {"conversation"}
    assert prompt.skipped.startswith("Skipped w") == bool(may_be_skipped)
    assert all((f"without {one}" in prompt.skipped or f"without a {one}" in prompt.skipped) for one in needed(prompt))


def needed(prompt: Prompt) -> list[str]:
    """The inputs beside the conversation that a sample must have."""
    return [name for name in prompt.inputs if name in PROMPT_INPUTS and name != "conversation"]


@pytest.mark.parametrize("name", SCALED)
def test_the_question_goes_through_the_answer_in_its_order_and_reasons_before_it_decides(name):
    prompt = load_prompt(name)
    numbered = re.findall(r"^(\d+)\. (\w+): ", prompt.question.partition("\nWork in this order:\n")[2], re.MULTILINE)
    properties = list(request(name, handed(FULL)).schema["properties"])
    assert properties[-3:] == ["reason", "evidence", "verdict"]
    assert numbered == [(str(number), step) for number, step in enumerate(properties, 1)]


@pytest.mark.parametrize("name", SCALED)
def test_the_last_step_says_what_each_label_means_and_names_no_other(name):
    prompt = load_prompt(name)
    explained = re.findall(r'"(\w+)" if ', prompt.question.rpartition(". verdict: ")[2])
    assert sorted(explained) == sorted(label for label, _ in prompt.scale)


@pytest.mark.parametrize("name", SCALED)
def test_the_best_label_comes_first_and_is_worth_1_and_the_worst_is_worth_0(name):
    grades = [grade for _, grade in load_prompt(name).scale]
    values = [grade for grade in grades if isinstance(grade, float)]
    assert (values[0], values[-1]) == (1, 0)
    assert values == sorted(values, reverse=True) == grades[: len(values)]


@pytest.mark.parametrize("name", SCALED)
def test_quotes_are_asked_for_where_the_reply_has_them(name):
    prompt = load_prompt(name)
    evidence = prompt.question.partition(". evidence: ")[2].partition("\n")[0]
    asks = "a short quote" in evidence and "copied exactly from one line without its bar" in evidence
    assert asks == prompt.quotes
    assert ("numbers of the" in evidence) != prompt.quotes


# What is sent of a recording


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_renders_every_example_or_says_what_it_lacks(name):
    for sample in EXAMPLES:
        prompt, requests, score = asked(name, sample)
        if missing := prompt.missing_inputs(sample):
            assert (requests, score.status) == ([], "skipped")
            assert name == "handoffs" or score.reason == f"the sample has no {' and no '.join(missing)}"
        else:
            assert score.error == "RejectedError"
            assert sample.trace.render() in requests[0].messages[1].content


@pytest.mark.parametrize("name", PROMPTS)
def test_a_request_is_hardly_longer_than_what_it_is_about(name):
    for sample in map(handed, map(completed, (HI, *EXAMPLES))):
        prompt, requests, _ = asked(name, sample)
        names = (*prompt.inputs, *prompt.optional)
        inputs = sum(len(prompt_input(hole).text(sample, RenderOptions())) for hole in names)
        inputs += sum(len(text) for _, text in prompt.option_values)
        limit = 1.3 * inputs + {"handoffs": 4_000, "failure_analysis": 7_000}.get(name, 2_500)
        assert all(sum(len(turn.content) for turn in sent.messages) <= limit for sent in requests)


@pytest.mark.parametrize("sample", [FULL, *EXAMPLES], ids=lambda sample: sample.id)
def test_for_one_sample_all_requests_are_the_same_up_to_the_end_of_the_conversation(sample):
    sample = completed(sample)
    others = [name for name in PROMPTS if name != "handoffs"]  # it shows sub-agents too
    systems, users = zip(*([turn.content for turn in request(name, sample).messages] for name in others), strict=True)
    assert len({*systems}) == 1
    shared = os.path.commonprefix(users)  # noqa: RUF071 - these are no paths
    assert shared.startswith(sample.trace.render())


@pytest.mark.parametrize("name", ["tool_selection", "tool_argument_grounding"])
def test_tools_are_shown_where_they_were_recorded_and_not_spoken_of_where_they_were_not(name):
    without = FULL.model_copy(update={"trace": FULL.trace.model_copy(update={"tools": ()})})
    listed = "The agent had these tools, one a line:"
    (shown, bare) = (request(name, sample).messages[1].content for sample in (FULL, without))
    assert f"{listed}\n\n{PROMPT_INPUTS['tools'].text(FULL, RenderOptions())}\n\n" in shown
    assert listed not in bare
    assert "\n\n\n" not in shown + bare


def test_each_alternative_answer_is_shown_by_itself_and_one_alone_is_called_the_reference():
    sample = FULL.model_copy(update={"reference": None, "references": ["8 pm", "- Friday\n- 20:00", "8 pm"]})
    shown = request("answer_correctness", sample).messages[1].content
    first, second = (re.search(rf"^\[(\w+) reference {number} begins\]$", shown, re.MULTILINE) for number in (1, 2))
    assert first
    assert second
    assert shown.index("| 8 pm") < second.start() < shown.index("| - Friday\n| - 20:00")
    assert "reference 3" not in shown
    alone = request("answer_correctness", FULL).messages[1].content
    assert "reference begins]\n| A table for four is booked" in alone


if __name__ == "__main__":
    for golden in GOLDEN.glob("*.txt"):
        golden.unlink()
    for each in PROMPTS:
        (GOLDEN / f"{each}.txt").write_text(rendered(each), encoding="utf-8")
