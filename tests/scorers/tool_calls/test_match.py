"""Tool-call match."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from judgekit.errors import ConfigError
from judgekit.formats.reading import read
from judgekit.score import Score
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import PRESETS, ToolMatch
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, ToolCall, ToolMessage
from judgekit.traces.sample import ExpectedCall, Sample

SEARCH = ToolCall("search", {"q": "python"})
PAY = ToolCall("pay", {"amount": 20, "to": "a@b.c"})


def score(how: ToolMatch | str, expected: Sequence[ToolCall] | None, *messages: Sequence[ToolCall]) -> Score:
    """The score of an agent that made these calls, message by message; the first of its messages is number 2."""
    trace = [HumanMessage("Hi"), *(AIMessage(tool_calls=calls) for calls in messages)]
    return ToolCallMatch(how).score(Sample.of(trace, id="one", reference_tool_calls=expected))


@pytest.mark.parametrize(("domain", "actions"), [("airline", 61), ("retail", 186), ("telecom", 162)])
def test_the_benchmarks_verdict_on_every_expected_action_is_reproduced(shared_data, domain, actions):
    """Was the action performed: a call of its name by its requestor, with the arguments that ``compare_args`` names?"""
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    simulations = json.loads(path.read_text())["simulations"]
    verdicts, found = {}, {}
    for simulation, sample in zip(simulations, read(path, on_error="raise"), strict=True):
        references = {call.id: call for call in sample.reference_tool_calls or ()}
        for check in simulation["reward_info"]["action_checks"] or ():
            action = check["action"]
            known = sample.model_copy(update={"reference_tool_calls": (references[action["action_id"]],)})
            name = sample.id, action["action_id"]
            verdicts[name] = check["action_match"]
            found[name] = ToolCallMatch("contains", requestor=action["requestor"]).score(known).value == 1
    assert len(verdicts) == actions
    assert set(verdicts.values()) == {True, False}
    assert found == verdicts


ALTERED = "something that nobody expected"


def conversation(document: dict) -> Sample:
    """A conversation of tooltalk in which the agent makes just the calls that are right."""
    messages: list[Message] = []
    expected: list[ExpectedCall] = []
    turn = 0
    for said in document["conversation"]:
        if said["role"] == "user":
            turn += 1
            messages.append(HumanMessage(said["text"]))
        else:
            calls = [ToolCall(api["request"]["api_name"], api["request"]["parameters"]) for api in said.get("apis", ())]
            messages.append(AIMessage(said["text"], tool_calls=calls))
            expected += [ExpectedCall(call.name, call.args, turn=turn) for call in calls]
    return Sample.of(messages, id=document["conversation_id"], reference_tool_calls=expected)


@pytest.fixture(scope="module")
def conversations(shared_data) -> list[Sample]:
    """Every fourth conversation."""
    folder = shared_data / "traces" / "tooltalk" / "data"
    paths = sorted([*folder.glob("easy/*.json"), *folder.glob("tooltalk/*.json")])
    assert len(paths) == 78
    return [conversation(json.loads(path.read_text())) for path in paths[::4]]


def places(sample: Sample) -> list[tuple[int, int]]:
    """The message of each call and its position there."""
    return [
        (index, position)
        for index, message in enumerate(sample.trace.messages)
        for position in range(len(getattr(message, "tool_calls", ())))
    ]


def call_at(sample: Sample, place: tuple[int, int]) -> ToolCall:
    return sample.trace.messages[place[0]].tool_calls[place[1]]


def instead(sample: Sample, *changes: tuple[tuple[int, int], Sequence[ToolCall]]) -> Sample:
    """The sample with other calls in these places."""
    messages = list(sample.trace.messages)
    for (index, position), others in changes:
        calls = messages[index].tool_calls
        calls = (*calls[:position], *others, *calls[position + 1 :])
        messages[index] = messages[index].model_copy(update={"tool_calls": calls})
    return sample.model_copy(update={"trace": sample.trace.model_copy(update={"messages": tuple(messages)})})


def as_recorded(sample: Sample) -> Iterator[Sample]:
    yield sample


def one_removed(sample: Sample) -> Iterator[Sample]:
    for place in places(sample):
        yield instead(sample, (place, []))


def one_added(sample: Sample) -> Iterator[Sample]:
    for place in places(sample):
        call = call_at(sample, place)
        yield instead(sample, (place, [call, ToolCall(ALTERED)]))
        yield instead(sample, (place, [call, call]))


def two_swapped(sample: Sample) -> Iterator[Sample]:
    """Calls of neighboring messages."""
    for one, other in pairwise(places(sample)):
        if one[0] != other[0]:
            yield instead(sample, (one, [call_at(sample, other)]), (other, [call_at(sample, one)]))


def two_swapped_in_one_message(sample: Sample) -> Iterator[Sample]:
    for one, other in pairwise(places(sample)):
        if one[0] == other[0]:
            yield instead(sample, (one, [call_at(sample, other)]), (other, [call_at(sample, one)]))


def an_argument_changed(sample: Sample) -> Iterator[Sample]:
    for place in places(sample):
        call = call_at(sample, place)
        for name in [*call.args][:1]:
            yield instead(sample, (place, [ToolCall(call.name, {**call.args, name: ALTERED})]))


PRESET_VALUES = {
    as_recorded: {"exact", "same_calls", "contains_in_order", "contains", "only_these", "no_detours"},
    one_removed: {"only_these", "no_detours"},
    one_added: {"contains_in_order", "contains"},
    two_swapped: {"same_calls", "contains", "only_these"},
    two_swapped_in_one_message: {"exact", "same_calls", "contains_in_order", "contains", "only_these", "no_detours"},
    an_argument_changed: set(),
}
"""The presets that are content with what was done to the calls; the others are not."""


@pytest.mark.parametrize("scope", ["conversation", "turn"])
@pytest.mark.parametrize("change", PRESET_VALUES, ids=lambda change: change.__name__)
def test_each_preset_moves_as_its_definition_says(conversations, change, scope):
    """No call is expected twice, and no turn has two messages with calls, so that swaps between messages leave turns."""
    content = set() if scope == "turn" and change is two_swapped else PRESET_VALUES[change]
    scorers = {name: ToolCallMatch(how.model_copy(update={"within": scope})) for name, how in PRESETS.items()}
    changed = [one for sample in conversations for one in change(sample)]
    assert len(changed) > 15
    expected = {name: float(name in content) for name in PRESETS}

    async def values() -> list[dict[str, float | None]]:  # one event loop for all of them
        return [{name: (await scorer.ascore(one)).value for name, scorer in scorers.items()} for one in changed]

    assert asyncio.run(values()) == [expected] * len(changed)


def test_without_references_a_sample_is_skipped():
    skipped = Score.skipped("tool_call_match", "the sample has no reference_tool_calls")
    assert score("exact", None, [SEARCH]) == skipped


def test_where_turns_are_compared_a_sample_whose_references_name_none_is_skipped():
    by_turn = ToolMatch(within="turn")
    found = score(by_turn, [ExpectedCall("search", {"q": "python"}, turn=1), PAY, ToolCall("f\n")], [SEARCH])
    assert (found.status, found.reason) == (
        "skipped",
        'calls are compared by turn, but expected calls have no turn: pay, "f\\n"',
    )
    assert score(by_turn, [], []).value == 1
    assert score(by_turn, [ExpectedCall("search", {"q": "python"}, turn=1)], [SEARCH]).value == 1
    assert score(by_turn, [ExpectedCall("search", {"q": "python"}, turn=2)], [SEARCH]).value == 0


def test_only_the_side_that_is_asked_for_counts():
    sample = Sample.of(
        [HumanMessage(tool_calls=[PAY]), AIMessage(tool_calls=[SEARCH])],
        reference_tool_calls=[SEARCH, ExpectedCall(PAY.name, PAY.args, requestor="user")],
    )
    only_search = Sample.of(sample.trace.messages, reference_tool_calls=[SEARCH])
    for scorer in (ToolCallMatch, ToolCallF1, ToolCallAccuracy):
        given = ["exact"] if scorer is ToolCallMatch else []
        assert scorer(*given).score(sample).value == scorer(*given, requestor="user").score(sample).value == 1
        assert scorer(*given).score(only_search).value == 1
        assert scorer(*given, requestor="user").score(only_search).value == 0


def test_calls_that_failed_count_as_made_unless_they_are_left_out():
    sample = Sample.of(
        [
            AIMessage(tool_calls=[PAY.model_copy(update={"id": "1"})]),
            ToolMessage("timeout", tool_call_id="1", is_error=True),
            AIMessage(tool_calls=[PAY.model_copy(update={"id": "2"})]),
            ToolMessage("paid", tool_call_id="2", is_error=False),
        ],
        reference_tool_calls=[PAY],
    )
    for scorer in (ToolCallMatch, ToolCallF1, ToolCallAccuracy):
        given = ["exact"] if scorer is ToolCallMatch else []
        assert scorer(*given).score(sample).value < 1
        left = scorer(*given, include_failed=False).score(sample)
        assert left.value == 1
        assert left.details["pairs"][0]["message"] == 3


def test_arguments_are_compared_as_their_tool_says_by_name_before_pattern_before_the_rest():
    folded, free = ArgMatch(text="casefold"), ArgMatch(mode="ignore")
    how = ToolMatch(tools={"search_*": folded, "search_web": free, "search*": free})
    cases = [  # tool, argument made for "x", value
        ("search_web", "y", 1),  # by name, though two patterns fit too
        ("search_shop", "X", 1),  # by the first pattern
        ("search_shop", "y", 0),
        ("search", "y", 1),  # by the second
        ("pay", "X", 0),  # by none
    ]
    for tool, made, value in cases:
        assert score(how, [ToolCall(tool, {"q": "x"})], [ToolCall(tool, {"q": made})]).value == value


def test_a_function_may_compare_arguments():
    def paid_enough(expected: JsonObject, made: JsonObject) -> bool:
        return made["amount"] >= expected["amount"]

    def half(expected: JsonObject, made: JsonObject) -> float:
        return 0.5

    more = ToolCall("pay", {"amount": 30})
    assert score(ToolMatch(args=paid_enough), [PAY], [more]).value == 1
    assert score(ToolMatch(args=paid_enough), [more], [PAY]).value == 0
    assert score(ToolMatch(args=half), [PAY], [PAY]).value == 0
    assert score(ToolMatch(args=half, credit="recall", args_credit="fraction"), [PAY], [PAY]).value == 0.5
    assert score(ToolMatch(tools={"pay": half}, credit="f1", args_credit="fraction"), [PAY, SEARCH], [PAY, SEARCH]).value == 0.75  # fmt: skip


def test_the_mode_may_be_named_or_given_as_a_table():
    assert ToolCallMatch("contains") == ToolCallMatch(PRESETS["contains"]) == ToolCallMatch({"order": "any", "extra": "allow"})  # type: ignore[arg-type]  # fmt: skip
    with pytest.raises(
        ConfigError, match=r"no preset of tool-call matching is called 'contain'. Did you mean 'contains'"
    ):
        ToolCallMatch("contain")
