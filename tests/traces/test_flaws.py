"""Flaws that code finds: each where it is certain, and none beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.traces.flaws import claims_without_call, errors_ignored, invented_arguments, unfinished
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.trace import Trace

ASKED = HumanMessage("Cancel my order, please. My number is W-77 12 345.")


def call(name, result="ok", *, error=False, **arguments):
    """A call with its result."""
    made = ToolCall(name, arguments, id=f"{name}{arguments}")
    return AIMessage(tool_calls=[made]), ToolMessage(result, tool_call_id=made.id, is_error=error)


def flaws(find, *messages, **trace):
    found = find(Trace(messages=[*messages], **trace))
    return [(flaw.message, flaw.label) for flaw in found.flaws], found.places


def ignored(*messages, **trace):
    return flaws(lambda each: errors_ignored(each, lambda result: bool(result.is_error)), *messages, **trace)


@pytest.mark.parametrize(
    ("then", "is_ignored"),
    [
        ([AIMessage("Your order is on its way.")], True),
        ([AIMessage("That did not work, sorry.")], False),
        ([AIMessage("It was shipped already.")], False),  # a word of the error
        ([AIMessage("W-7712345 is a nice number.")], True),  # a word of the call, which the error repeats
        ([*call("cancel_order", order_id="W-7712345", reason="late"), AIMessage("Done.")], False),
        ([*call("get_order", order_id="W-7712345"), AIMessage("Done.")], True),
        ([], False),  # the recording ends, which is another flaw
    ],
)
def test_an_error_is_ignored_if_it_is_neither_mentioned_nor_retried(then, is_ignored):
    failed = call("cancel_order", "W-7712345: already shipped", error=True, order_id="W-7712345")
    assert ignored(ASKED, *failed, *then) == ([(3, "error_ignored")] if is_ignored else [], 1)


def test_results_that_are_no_errors_and_those_of_the_user_are_no_place_for_it():
    mine = ToolCall("pay", {}, id="u")
    theirs = (
        HumanMessage("I pay.", tool_calls=[mine]),
        ToolMessage("no", tool_call_id="u", is_error=True, requestor="user"),
    )
    assert ignored(ASKED, *call("cancel_order"), *theirs, AIMessage("Fine.")) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "invented", "places"),
    [
        ({"order_id": "W-9999999"}, 1, 1),
        ({"order_id": "W7712345"}, 0, 1),  # written in another way
        ({"order": {"ids": ["W-7712345", "W-1"]}, "orderId": "X-12"}, 1, 2),  # W-1 is too short to be sure
        ({"order_id": "#WW7712345"}, 0, 1),  # the letters may be what the user forgot
        ({"email": "ann@example.com"}, 1, 1),
        ({"email": "bob@example.com"}, 0, 1),  # from a result
        ({"account": "EUR-1"}, 0, 1),  # from the definition of the tool
        ({"reason": "Order W-9999999 is late", "query": "x99999", "order_id": "none"}, 0, 0),
    ],
)
def test_an_argument_is_invented_if_it_refers_to_what_stands_nowhere_before(arguments, invented, places):
    tool = ToolDefinition("cancel_order", parameters={"properties": {"account": {"enum": ["EUR-1"]}}})
    before = ASKED, *call("get_user", '{"email": "bob@example.com"}')
    after = HumanMessage("W-9999999, ann@example.com, X-12")
    found = flaws(invented_arguments, *before, *call("cancel_order", **arguments), after, tools=[tool])
    assert found == ([(4, "invented_arguments")] * invented, places)


def test_a_reply_alone_shows_nothing_about_what_was_before_it():
    assert flaws(invented_arguments, *call("get_order", order_id="W-9999999")) == ([], 0)


def test_a_sub_agent_may_know_what_its_parent_s_recording_holds():
    started, answer = call("ask_orders", task="cancel it")
    child = Trace(
        messages=[HumanMessage("cancel it"), *call("cancel_order", order_id="W-7712345")],
        metadata={"call_id": started.tool_calls[0].id},
    )
    assert flaws(invented_arguments, ASKED, started, answer, children=[child]) == ([], 1)
    assert flaws(invented_arguments, HumanMessage("Hi"), started, answer, children=[child])[0] == [
        ("2.1.2", "invented_arguments")
    ]


@pytest.mark.parametrize(
    ("said", "is_claim"),
    [
        ("I've cancelled your order.", True),
        ("I\u2019ve just cancelled order W-1.", True),
        ("Once I have cancelled your order, you get a mail.", False),
        ("I have not cancelled your order.", False),
        ("I have cancelled the meeting.", False),
        ("Your order has been cancelled.", False),  # as a result may say
        ("I have updated your order.", False),  # there is no such tool
    ],
)
def test_a_claim_is_a_verb_of_a_tool_with_its_object_in_the_first_person(said, is_claim):
    tool = ToolDefinition("cancel_order")
    found = flaws(claims_without_call, ASKED, AIMessage(said), tools=[tool])
    assert found == ([(2, "unsupported_claim")] if is_claim else [], int(is_claim))
    for name in ("cancel_order", "cancelOrder"):
        assert flaws(claims_without_call, ASKED, *call(name), AIMessage(said))[0] == []
    failed = flaws(claims_without_call, ASKED, *call("cancel_order", error=True), AIMessage(said))
    assert failed == ([(4, "unsupported_claim")] if is_claim else [], int(is_claim))
    late = flaws(claims_without_call, ASKED, AIMessage(said), *call("cancel_order"))
    assert late == ([(2, "unsupported_claim")] if is_claim else [], int(is_claim))


def test_a_claim_may_be_about_what_a_sub_agent_did():
    started, answer = call("ask_orders", task="cancel it")
    child = Trace(
        messages=[HumanMessage("cancel it"), *call("cancel_order")],
        metadata={"call_id": started.tool_calls[0].id},
    )
    said = AIMessage("I've cancelled your order.")
    assert flaws(claims_without_call, ASKED, started, answer, said, children=[child]) == ([], 1)


@pytest.mark.parametrize(
    ("messages", "trace", "label"),
    [
        ([ASKED, AIMessage("Done.")], {}, None),
        ([ASKED], {}, None),  # its answer may not have been recorded
        ([ASKED], {"termination": "max_steps"}, "limit_reached"),
        ([ASKED, *call("get_order")], {}, "stopped_early"),
        ([ASKED, *call("get_order")], {"error": "context length exceeded"}, "limit_reached"),
        ([SystemMessage("Be kind.")], {"error": "boom"}, "stopped_early"),
    ],
)
def test_a_conversation_without_an_answer_is_unfinished(messages, trace, label):
    assert flaws(unfinished, *messages, **trace) == ([(len(messages), label)] if label else [], 1)


HOSTILE = st.text(alphabet="I've have cancelled order_id W-12@(\u0000\ud800\\[]{}\n", max_size=60)


@given(st.lists(st.tuples(HOSTILE, HOSTILE, st.booleans()), max_size=6))
def test_no_recording_stops_it_and_no_text_gives_more_flaws_than_places(turns):
    messages = [ASKED]
    for text, result, error in turns:
        made = ToolCall("cancel_order", {"order_id": text, "email": result}, id=text[:5] or None)
        messages += [AIMessage(text, tool_calls=[made]), ToolMessage(result, tool_call_id=made.id, is_error=error)]
    trace = Trace(messages=messages)
    for find in (invented_arguments, claims_without_call, unfinished, lambda each: errors_ignored(each, bool)):
        found = find(trace)
        assert len(found.flaws) <= found.places or find is invented_arguments
        assert all(0 < flaw.message <= len(messages) for flaw in found.flaws)
