"""A judge for tests, which is public."""

import asyncio

import pytest
from pydantic import BaseModel

from judgekit import errors
from judgekit.errors import ConfigError, OverloadError, RefusalError, ReplyError
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Reply
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import ledger
from judgekit.traces.message import Usage


class Opinion(BaseModel):
    text: str


GOAL = load_prompt("agent_goal_without_reference")
TOPIC = load_prompt("topic_adherence")


@pytest.fixture
def said(sample):
    """What a judge says to prompts, one after the other."""

    def ask(judge, *prompts):
        return [asyncio.run(judge.ask(prompt, sample, Opinion)).answer.text for prompt in prompts]

    return ask


@pytest.mark.parametrize(
    ("script", "prompts", "answers"),
    [
        pytest.param([{"text": "a"}, {"text": "b"}], [GOAL, TOPIC], ["a", "b"], id="in order"),
        pytest.param(({"text": "a"},), [GOAL], ["a"], id="a tuple"),
        pytest.param(['{"text": "a"}', Opinion(text="b")], [GOAL, GOAL], ["a", "b"], id="text and model"),
        pytest.param(
            {"topic_adherence": {"text": "t"}, "agent_goal_without_reference": {"text": "g"}},
            [GOAL, TOPIC, GOAL, GOAL],
            ["g", "t", "g", "g"],
            id="by prompt, a single reply serving all",
        ),
        pytest.param(
            {"topic_adherence": '{"text": "t"}', "agent_goal_without_reference": Opinion(text="g")},
            [GOAL, TOPIC, GOAL, TOPIC],
            ["g", "t", "g", "t"],
            id="by prompt, as text and model",
        ),
        pytest.param(
            {"topic_adherence": [{"text": "1"}, {"text": "2"}], "agent_goal_without_reference": {"text": "g"}},
            [TOPIC, GOAL, TOPIC],
            ["1", "g", "2"],
            id="by prompt, a list in order",
        ),
        pytest.param(
            {
                (lambda request: "topics begins" in request.messages[-1].content): [{"text": "1"}, {"text": "2"}],
                (lambda _: True): {"text": "else"},
            },
            [TOPIC, GOAL, TOPIC, GOAL],
            ["1", "else", "2", "else"],
            id="by predicate, the first that holds",
        ),
        pytest.param(
            lambda request: {"text": f"{request.schema_name} {len(request.messages)}"},
            [GOAL, TOPIC],
            ["agent_goal_without_reference 2", "topic_adherence 2"],
            id="function of the request",
        ),
    ],
)
def test_it_says_what_the_script_says(said, script, prompts, answers):
    assert said(ScriptedJudge(script), *prompts) == answers


@pytest.mark.parametrize(
    "script", [[RefusalError("no")], {GOAL.name: RefusalError("no")}, lambda _: RefusalError("no")]
)
def test_an_exception_in_the_script_is_raised_as_if_the_provider_had_failed(said, script):
    judge = ScriptedJudge(script)
    with pytest.raises(RefusalError, match=r"^no$"):
        said(judge, GOAL)
    assert len(judge.requests) == 1


@pytest.mark.parametrize(("attempts", "asked"), [(1, 1), (3, 3)])
def test_faults_are_retried_as_often_as_said(said, no_waits, attempts, asked):
    judge = ScriptedJudge([OverloadError("busy")] * 5, attempts=attempts)
    with pytest.raises(OverloadError):
        said(judge, GOAL)
    assert len(judge.requests) == asked


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ([], "^the script has no more lines for 'agent_goal_without_reference'$"),
        ({GOAL.name: []}, "^the script has no more lines for 'agent_goal_without_reference'$"),
        (
            {"agent_goal_with_reference": {}},
            "^no scripted prompt is called 'agent_goal_without_reference'. Did you mean 'agent_goal_with_reference'?",
        ),
        ({}, "^no scripted prompt is called 'agent_goal_without_reference'. Known: none$"),
    ],
    ids=["exhausted", "exhausted for a prompt", "unknown prompt", "empty"],
)
def test_a_script_without_a_line_for_a_request_is_an_error_that_says_so(said, script, found):
    with pytest.raises(ConfigError, match=found):
        said(ScriptedJudge(script), GOAL)


@pytest.mark.parametrize("update", [{}, {"attempts": 3}])
def test_a_copy_speaks_from_the_same_script(said, update):
    judge = ScriptedJudge([{"text": "a"}, {"text": "b"}])
    copied = judge.model_copy(update=update)
    assert type(copied) is ScriptedJudge
    assert said(judge, GOAL) + said(copied, GOAL) == ["a", "b"]
    assert len(judge.requests) == len(copied.requests) == 2


JUDGE_ERRORS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.JudgeError) and kind is not errors.JudgeError
]


def test_every_class_of_failure_can_be_put_in(said):
    """Those that a layer mends are raised again and again; the others reach the scorer as they are."""
    for kind in JUDGE_ERRORS:
        failure = kind("as it happens", text="?") if kind is ReplyError else kind("as it happens")
        judge = ScriptedJudge({GOAL.name: failure})
        with pytest.raises(kind, match="as it happens"):
            said(judge, GOAL)
        steps = {errors.FormatError: 3, ReplyError: 2}  # by schema, as JSON, in words; as it is, and to be mended
        assert len(judge.requests) == steps.get(kind, 1)


@pytest.mark.parametrize(
    ("ending", "error"), [("refusal", RefusalError), ("filter", errors.FilterError), ("length", errors.TruncatedError)]
)
def test_a_reply_can_end_as_it_does_with_a_provider_and_is_paid_for(said, ending, error):
    usage = Usage(input_tokens=10, output_tokens=5)
    with ledger() as calls, pytest.raises(error):
        said(ScriptedJudge([Reply(text="I cannot", finish_reason=ending, usage=usage)]), GOAL)
    assert [(call.error, call.usage) for call in calls] == [(error.__name__, usage)]


def test_what_a_client_leaves_out_of_its_cost_is_the_price_of_its_tokens(sample):
    usage = Usage(input_tokens=1_000, output_tokens=100)
    replies = [Reply(text='{"text": "a"}', usage=usage), Reply(text='{"text": "b"}', usage=usage, cost_usd=0.5)]
    judge = ScriptedJudge(replies, price=Price(2, 10))
    for cost in (0.003, 0.5):
        judgment = asyncio.run(judge.ask(GOAL, sample, Opinion))
        assert [call.cost_usd for call in judgment.calls] == [pytest.approx(cost)]
