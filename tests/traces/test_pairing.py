"""Which result belongs to which call."""

from hypothesis import given
from hypothesis import strategies as st

from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.pairing import call_errors, pair_results


def ai(*calls: tuple[str, str | None]) -> AIMessage:
    return AIMessage(tool_calls=[ToolCall(name, id=identity) for name, identity in calls])


def user(*calls: tuple[str, str | None]) -> HumanMessage:
    return HumanMessage(tool_calls=[ToolCall(name, id=identity) for name, identity in calls])


def result(identity: str | None = None, name: str | None = None, requestor: str = "assistant") -> ToolMessage:
    return ToolMessage(tool_call_id=identity, name=name, requestor=requestor)


CASES = {
    "by id, in any order": ([ai(("f", "1"), ("g", "2")), result("2"), result("1")], {1: (0, 1), 2: (0, 0)}),
    "parallel calls of one id are answered in order": (
        [ai(("f", "1"), ("g", "1")), result("1"), result("1")],
        {1: (0, 0), 2: (0, 1)},
    ),
    "without an id, by name and in order": (
        [ai(("f", None), ("g", None), ("f", None)), result(name="g"), result(name="f"), result(name="f")],
        {1: (0, 1), 2: (0, 0), 3: (0, 2)},
    ),
    "without an id, a call that has one may be answered": ([ai(("f", "1")), result(name="f")], {1: (0, 0)}),
    "without id and name, by position": ([ai(("f", None), ("g", "2")), result(), result()], {1: (0, 0), 2: (0, 1)}),
    "words between call and result change nothing": (
        [ai(("f", None)), AIMessage("wait"), HumanMessage("ok"), SystemMessage("."), result()],
        {4: (0, 0)},
    ),
    "without an id, a name that the last turn did not call is an orphan": (
        [ai(("f", None)), HumanMessage("?"), ai(("g", None)), result(name="f")],
        {},
    ),
    "messages of one side with nothing between them are one turn": (
        [ai(("f", None)), ai(("g", None)), result(name="f"), result(name="g")],
        {2: (0, 0), 3: (1, 0)},
    ),
    "without an id, turns before the last one are over, even when that one is answered": (
        [ai(("f", None)), HumanMessage("?"), ai(("g", None)), result(), result(), result(name="f")],
        {3: (2, 0)},
    ),
    "the user's results answer the user's calls": (
        [ai(("f", "1")), user(("f", "1")), result("1", requestor="user"), result("1"), result("1")],
        {2: (1, 0), 3: (0, 0)},
    ),
    "without an id, each requestor has a last turn of its own": (
        [ai(("f", None)), user(("g", None)), result(), result(requestor="user"), result(requestor="user")],
        {2: (0, 0), 3: (1, 0)},
    ),
}


def test_pairs():
    for messages, expected in CASES.values():
        found = pair_results(messages)
        assert found.calls == {
            index: (message, place, messages[message].tool_calls[place]) for index, (message, place) in expected.items()
        }
        results = {index for index, message in enumerate(messages) if isinstance(message, ToolMessage)}
        assert found.orphans == tuple(sorted(results - expected.keys()))


ids = st.sampled_from([None, "1", "2"])
names = st.sampled_from(["f", "g"])
calls = st.lists(st.builds(ToolCall, name=names, id=ids), max_size=3)
conversations = st.lists(
    st.builds(AIMessage, tool_calls=calls)
    | st.builds(HumanMessage, tool_calls=calls)
    | st.builds(
        ToolMessage, tool_call_id=ids, name=st.none() | names, requestor=st.sampled_from(["assistant", "user"])
    ),
    max_size=12,
)


@given(conversations)
def test_in_any_conversation_no_call_is_answered_twice_and_no_result_is_forgotten(messages):
    found = pair_results(messages)
    assert len({id(caller.call) for caller in found.calls.values()}) == len(found.calls)
    results = [index for index, message in enumerate(messages) if isinstance(message, ToolMessage)]
    assert sorted([*found.calls, *found.orphans]) == results
    for index, caller in found.calls.items():
        assert caller.message < index
        assert caller.call is messages[caller.message].tool_calls[caller.position]
        assert messages[caller.message].role == messages[index].requestor
        if messages[index].tool_call_id is None:
            assert messages[index].name in (None, caller.call.name)
        else:
            assert messages[index].tool_call_id == caller.call.id


@given(conversations)
def test_a_result_with_an_id_takes_the_nearest_call_that_is_open(messages):
    found = pair_results(messages)
    answered = {id(caller.call): index for index, caller in found.calls.items()}
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage) and message.tool_call_id is not None:
            still_open = [
                place
                for place, earlier in enumerate(messages[:index])
                if earlier.role == message.requestor
                for call in earlier.tool_calls
                if call.id == message.tool_call_id and answered.get(id(call), index) >= index
            ]
            taken = found.calls.get(index)
            assert (taken.message if taken else None) == (max(still_open) if still_open else None)


def test_whether_calls_failed_is_told_in_their_order_and_is_unknown_without_a_result_that_says():
    f = ToolCall("f", id="1")
    messages = [
        HumanMessage(tool_calls=[f]),
        ToolMessage(tool_call_id="1", is_error=True, requestor="user"),
        AIMessage(tool_calls=[f, ToolCall("g", id="2"), ToolCall("h", id="3"), ToolCall("i", id="4")]),
        ToolMessage(tool_call_id="2", is_error=True),
        ToolMessage(tool_call_id="1", is_error=False),
        ToolMessage(tool_call_id="4"),
        ToolMessage(tool_call_id="5", is_error=True),
        AIMessage(tool_calls=[f]),
        ToolMessage(tool_call_id="1", is_error=True),
    ]
    assert call_errors(messages, "assistant") == (False, True, None, None, True)
    assert call_errors(messages, "user") == (True,)
    assert call_errors([], "assistant") == ()


def test_each_of_the_same_calls_has_an_end_of_its_own():
    """Also where one value stands twice in a message."""
    f = ToolCall("f")
    messages = [AIMessage(tool_calls=[f, f, f]), ToolMessage(is_error=True), ToolMessage(is_error=False)]
    assert call_errors(messages, "assistant") == (True, False, None)
