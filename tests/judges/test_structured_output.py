"""The layer next to the provider: the form of a reply, whether it is what was asked for, and the ledger."""

import asyncio
from contextlib import suppress

import pytest

from judgekit.errors import (
    AuthenticationError,
    ContextError,
    FilterError,
    FormatError,
    JudgeError,
    JudgeRejectedError,
    ModelError,
    OverloadError,
    QuotaError,
    RateLimitError,
    RefusalError,
    RejectedError,
    ReplyError,
    TruncatedError,
)
from judgekit.judges import structured_output
from judgekit.judges.call_recorder import CallRecorder
from judgekit.judges.request import ChatMessage, Reply
from judgekit.judges.structured_output import SchemaSupport, StructuredOutput
from judgekit.score import JudgeCall, ledger
from judgekit.traces.images import Image
from judgekit.traces.message import Usage

USAGE = Usage(input_tokens=3, output_tokens=1)
CALL = JudgeCall(judge="openai/judge-1", prompt="goodness@12345678")
FINE = Reply(text="fine")
UNHELD = FormatError("response_format is not supported")


def complete(inner, request, footing=None):
    return asyncio.run(StructuredOutput(CallRecorder(inner), footing or SchemaSupport()).complete(request))


def unacceptable(text):
    raise ValueError(f"good: is missing in {text}")


def without_time(calls):
    assert all(0 < call.seconds < 5 for call in calls)
    return [call.model_copy(update={"seconds": 0.0, "exchange": None}) for call in calls]


# What is written down


@pytest.mark.parametrize(("usage", "cost"), [(USAGE, 0.25), (USAGE, None), (None, None)])
def test_a_reply_that_is_accepted_goes_through_and_its_cost_is_written_down(stub, question, usage, cost):
    reply, seen = Reply(text="fine", usage=usage, cost_usd=cost), []
    with ledger() as calls:
        assert complete(stub([reply]), question(accept=seen.append)) == reply
    assert seen == ["fine"]
    assert [call.exchange for call in calls] == [question().exchange("fine")]
    assert without_time(calls) == [CALL.model_copy(update={"usage": usage, "cost_usd": cost})]


def test_a_reply_that_is_not_accepted_is_an_error_that_keeps_its_text_and_was_paid(stub, question):
    asked = stub([Reply(text="bad", usage=USAGE, cost_usd=0.25)])
    with ledger() as calls, pytest.raises(ReplyError, match=r"^good: is missing in bad$") as info:
        complete(asked, question(accept=unacceptable))
    assert info.value.text == "bad"
    assert without_time(calls) == [CALL.model_copy(update={"usage": USAGE, "cost_usd": 0.25, "error": "ReplyError"})]
    assert [call.exchange for call in calls] == [question().exchange("bad")]
    assert len(asked.requests) == 1


@pytest.mark.parametrize(
    ("ending", "kind", "found"),
    [
        ("filter", FilterError, "openai/judge-1: the provider's content filter withheld the reply"),
        ("refusal", RefusalError, "openai/judge-1: the judge declined: I will not."),
        (
            "length",
            TruncatedError,
            (
                "openai/judge-1: the reply was cut off at the server's own limit, after 1 token; "
                "set a higher one with params.max_tokens"
            ),
        ),
    ],
)
def test_a_reply_that_is_no_answer_is_a_typed_error_and_was_paid(stub, question, ending, kind, found):
    reply = Reply(text="I will not.", finish_reason=ending, usage=USAGE, cost_usd=0.25)
    asked, seen = stub([reply]), []
    with ledger() as calls, pytest.raises(kind) as info:
        complete(asked, question(accept=seen.append))
    assert str(info.value) == found
    assert without_time(calls) == [CALL.model_copy(update={"usage": USAGE, "cost_usd": 0.25, "error": kind.__name__})]
    assert seen == []
    assert len(asked.requests) == 1


@pytest.mark.parametrize(
    ("settings", "usage", "found"),
    [
        (
            {"params": {"max_tokens": 64}},
            Usage(output_tokens=64, reasoning_tokens=64),
            (
                "at the limit of 64 tokens (params.max_tokens), after 64 tokens, 64 of them reasoning; "
                "raise the limit, or let the judge reason less"
            ),
        ),
        (
            {"params": {"max_tokens": 50, "max_completion_tokens": 9_000}},
            Usage(output_tokens=9_000, reasoning_tokens=0),
            "at the limit of 9,000 tokens (params.max_completion_tokens), after 9,000 tokens, none of them reasoning; raise the limit",
        ),
        (
            {"max_output_tokens": 4_096},
            Usage(output_tokens=4_096, reasoning_tokens=4_000),
            (
                "at the limit of 4,096 tokens (max_output_tokens), after 4,096 tokens, 4,000 of them reasoning; "
                "raise the limit, or let the judge reason less"
            ),
        ),
        ({}, None, "at the server's own limit; set a higher one with params.max_tokens"),
    ],
)
def test_a_reply_that_was_cut_off_names_the_limit_its_setting_and_the_reasoning(stub, question, settings, usage, found):
    asked = stub([Reply(text="", finish_reason="length", usage=usage)])
    with pytest.raises(TruncatedError) as info:
        complete(asked, question(**settings))
    assert str(info.value) == f"openai/judge-1: the reply was cut off {found}"


@pytest.mark.parametrize("error", [OverloadError("no"), RateLimitError("no"), RefusalError("no"), ValueError("a bug")])
def test_a_request_that_fails_is_written_down_at_an_unknown_cost(stub, question, error):
    with ledger() as calls, pytest.raises(type(error)) as info:
        complete(stub([error]), question())
    assert info.value is error
    assert without_time(calls) == [CALL.model_copy(update={"error": type(error).__name__})]
    assert [call.exchange for call in calls] == [question().exchange(None)]


# The steps


def test_a_model_that_cannot_be_is_asked_for_json_and_then_in_words(stub, question):
    asked, footing = stub([UNHELD, UNHELD, FINE]), SchemaSupport()
    with ledger() as calls:
        assert complete(asked, question(), footing) == FINE
    assert [request.output_mode for request in asked.requests] == ["json_schema", "json_object", "text"]
    assert (footing.output_mode, footing.is_confirmed) == ("text", True)
    assert [call.error for call in calls] == ["FormatError", "FormatError", None]
    system, user = asked.requests[0].messages
    form = (
        "Answer with one JSON object and nothing else. Its JSON Schema:\n"
        '{"properties":{"good":{"type":"boolean"}},"type":"object"}'
    )
    for request in asked.requests[1:]:
        assert request.messages == (system, ChatMessage("user", f"{user.content}\n\n{form}"))
        assert request == question(output_mode=request.output_mode, messages=request.messages)


# The first request goes ahead


async def ask(inner, requests, footing=None):
    held = StructuredOutput(CallRecorder(inner), footing or SchemaSupport())
    async with asyncio.timeout(5):
        return await asyncio.gather(*map(held.complete, requests), return_exceptions=True)


@pytest.mark.parametrize(("lines", "sent"), [([FINE], 9), ([UNHELD, FINE], 10), ([UNHELD, UNHELD, FINE], 11)])
def test_one_request_finds_the_step_for_all_that_come_at_once(stub, question, lines, sent):
    asked = stub(lines)
    assert asyncio.run(ask(asked, [question()] * 9)) == [FINE] * 9
    assert len(asked.requests) == sent
    assert asked.most_at_once == 8


def test_the_others_do_not_wait_for_a_slow_one_for_long(stub, question, monkeypatch):
    monkeypatch.setattr(structured_output, "_FIRST_REQUEST_SECONDS", 0.01)

    class SlowAtFirst(stub):
        async def complete(self, request, /):
            reply = await super().complete(request)
            if request.repeat == 0:
                await others_are_done.wait()
            return reply

    async def ask_all():
        held = StructuredOutput(CallRecorder(asked), SchemaSupport())
        first, *others = [asyncio.create_task(held.complete(question(repeat=repeat))) for repeat in range(3)]
        await asyncio.sleep(0)
        assert [request.repeat for request in asked.requests] == [0]
        async with asyncio.timeout(5):
            await asyncio.gather(*others)
        others_are_done.set()
        await first

    asked, others_are_done = SlowAtFirst([FINE]), asyncio.Event()
    asyncio.run(ask_all())


def test_who_finds_out_last_goes_on_where_the_others_stand(stub, question, monkeypatch):
    monkeypatch.setattr(structured_output, "_FIRST_REQUEST_SECONDS", 0)

    class OldServer(stub):
        async def complete(self, request, /):
            await super().complete(request)
            if request.output_mode == "text":
                found.set()
                return FINE
            if request.output_mode == "json_schema" and request.repeat == 1:
                both.set()
                await found.wait()
            await both.wait()
            raise UNHELD

    asked, footing, both, found = OldServer(), SchemaSupport(), asyncio.Event(), asyncio.Event()
    assert asyncio.run(ask(asked, [question(repeat=repeat) for repeat in range(2)], footing)) == [FINE] * 2
    assert sorted((request.repeat, request.output_mode) for request in asked.requests) == [
        (0, "json_object"),
        (0, "json_schema"),
        (0, "text"),
        (1, "json_schema"),
        (1, "text"),
    ]
    assert footing.output_mode == "text"


@pytest.mark.parametrize("error", [AuthenticationError("no key"), ModelError("no model"), QuotaError("spent")])
def test_what_all_would_meet_is_met_by_the_first_alone(stub, question, error):
    asked = stub([error])
    found = asyncio.run(ask(asked, [question()] * 9))
    assert [(type(one), str(one)) for one in found] == [(type(error), str(error))] * 9
    assert len(asked.requests) == 1


@pytest.mark.parametrize("end", [OverloadError("busy"), None], ids=["fails", "is canceled"])
def test_when_the_one_that_went_ahead_is_gone_the_others_go(stub, question, end):
    asked = stub([end or FINE, FINE])

    async def ask_all():
        asked.gate = asyncio.Event()
        held = StructuredOutput(CallRecorder(asked), SchemaSupport())
        first, *others = [asyncio.create_task(held.complete(question())) for _ in range(4)]
        await asyncio.sleep(0)
        if end is None:
            first.cancel()
        asked.gate.set()
        async with asyncio.timeout(0.5):  # of the second that they would wait for a slow one
            with suppress(JudgeError, asyncio.CancelledError):
                await first
            return await asyncio.gather(*others)

    assert asyncio.run(ask_all()) == [FINE] * 3


# Rejections


def rejected(number=0):
    return RejectedError(f"HTTP 400: 'top_k' is not supported (request 20261129-{number:04}-abcdef)")


def test_three_rejections_alike_stop_the_judge_and_nothing_more_is_sent(stub, question):
    asked = stub([rejected(number) for number in range(50)])
    ends = asyncio.run(ask(asked, [question()] * 50))
    assert [type(end) for end in ends[:3]] == [RejectedError, RejectedError, JudgeRejectedError]
    assert {type(end) for end in ends[3:]} == {JudgeRejectedError}
    assert "3 requests were rejected alike" in str(ends[-1])
    assert len(asked.requests) == 3


def test_rejections_stop_no_judge_that_replied(stub, question):
    asked = stub([FINE, *[rejected()] * 20])
    assert {type(end) for end in asyncio.run(ask(asked, [question()] * 20))[1:]} == {RejectedError}
    assert len(asked.requests) == 20


def test_different_rejections_stop_no_judge(stub, question):
    asked = stub([RejectedError(f"message {word} is odd") for word in "abcdefghij"])
    assert {type(end) for end in asyncio.run(ask(asked, [question()] * 10))} == {RejectedError}


def test_too_long_requests_and_requests_with_images_stop_no_judge(stub, question):
    image = Image("data:image/png;base64,iVBORw0KGgo=", "0", "a PNG")
    for error, request in ((ContextError("too long"), question()), (rejected(), question(images=(("[1]", image),)))):
        asked = stub([error])
        assert {type(end) for end in asyncio.run(ask(asked, [request] * 10))} == {type(error)}
        assert len(asked.requests) == 10


def test_a_stopped_judge_is_tried_again_by_the_next_run(stub, question):
    async def run_twice():
        held = StructuredOutput(CallRecorder(stub([*[rejected()] * 3, FINE])), SchemaSupport())
        first = await asyncio.gather(*(held.complete(question()) for _ in range(5)), return_exceptions=True)
        return first, await held.complete(question())

    first, second = asyncio.run(run_twice())
    assert type(first[-1]) is JudgeRejectedError
    assert second == FINE


def test_zero_tokens_that_a_client_of_ones_own_reports_are_unknown(stub, question):
    zero = FINE.model_copy(update={"usage": Usage(input_tokens=0, output_tokens=0), "cost_usd": 0.0})
    with ledger() as calls:
        reply = asyncio.run(StructuredOutput(CallRecorder(stub([zero])), SchemaSupport()).complete(question()))
    assert (reply.usage, reply.cost_usd) == (Usage(), None)
    assert (calls[0].tokens_paid, calls[0].usd_paid) == (None, None)
