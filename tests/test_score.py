"""The score, and the ledger of paid calls."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.diff import DiffLine
from judgekit.score import (
    JudgeCall,
    Score,
    current_repeat,
    independent_repeat,
    known_outages,
    ledger,
    outage_memory,
    record_calls,
)
from judgekit.traces.message import Usage

STATUSES = ["scored", "skipped", "failed", "abstained"]


def call(prompt: str = "p@1") -> JudgeCall:
    return JudgeCall(judge="scripted/judge", prompt=prompt)


@pytest.mark.parametrize("status", STATUSES)
def test_a_score_has_a_value_if_and_only_if_it_is_scored(status):
    fits, fits_not = (0.5, None) if status == "scored" else (None, 0.5)
    assert Score(scorer="s", status=status, value=fits).value == fits
    with pytest.raises(ValidationError, match=f"a {status} score cannot have the value {fits_not}"):
        Score(scorer="s", status=status, value=fits_not)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 1e-300, 1 / 3])
def test_a_value_lies_between_0_and_1(value):
    assert Score.scored("s", value).value == value


@pytest.mark.parametrize("value", [-1e-9, 1.0000001, 2, float("inf"), float("-inf"), float("nan"), "good", None])
def test_nothing_else_is_a_value(value):
    with pytest.raises(ValidationError):
        Score.scored("s", value)


@pytest.mark.parametrize("fields", [{"status": "ok"}, {"status": "skipped", "vlaue": 1}, {"status": "skipped", "calls": [{}]}])  # fmt: skip
def test_unknown_words_are_refused(fields):
    with pytest.raises(ValidationError):
        Score.model_validate({"scorer": "s", **fields})


@pytest.mark.parametrize("field", ["value", "status", "reason", "scorer"])
def test_a_score_cannot_be_changed(field):
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Score.scored("s", 1), field, "x")


def test_the_constructors_say_all_that_they_are_told():
    made = call()
    assert Score.scored("s", 0.5, reason="r", label="l", details={"tp": 1}, calls=[made], aggregate="m:f") == Score(
        scorer="s", status="scored", value=0.5, reason="r", label="l", details={"tp": 1}, calls=(made,), aggregate="m:f"
    )
    assert Score.skipped("s", "r", details={"tp": 0}, calls=[made]) == Score(
        scorer="s", status="skipped", reason="r", details={"tp": 0}, calls=(made,)
    )
    assert Score.failed("s", "r", calls=[made]) == Score(scorer="s", status="failed", reason="r", calls=(made,))
    assert Score.scored("s", 1).aggregate == "mean"
    assert Score.failed("s", "r", error="ReplyError", calls=[made]) == Score(
        scorer="s", status="failed", reason="r", error="ReplyError", calls=(made,)
    )
    assert Score.abstained("s", "r", details={"tp": 1}, calls=[made]) == Score(
        scorer="s", status="abstained", reason="r", details={"tp": 1}, calls=(made,)
    )


def test_details_are_copied_when_a_score_is_made():
    details = {"tp": 1}
    score = Score.scored("s", 1, details=details)
    details["tp"] = 2
    assert score.details == {"tp": 1}


def test_the_schema_of_a_score_says_nothing_of_it():
    for mode in ("validation", "serialization"):
        described = Score.model_json_schema(mode=mode)
        assert described["properties"].keys() == set(Score.model_fields)
        assert described["additionalProperties"] is False


# --- side by side: see test_diff.py


def test_the_diff_of_a_score_is_that_of_its_details():
    found = Score.scored("s", 1, details={"pairs": [], "missing": [{"expected": 0, "name": "pay"}], "extra": []}).diff()
    assert found == (DiffLine("-", "pay", ""),)
    assert Score.failed("s", "broken").diff() == ()


text = st.text(max_size=10)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    JudgeCall,
    judge=text,
    prompt=text,
    cached=st.booleans(),
    usage=st.none()
    | st.builds(Usage, input_tokens=st.none() | st.integers(0), output_tokens=st.none() | st.integers(0)),
    cost_usd=st.none() | numbers,
    seconds=numbers,
    error=st.none() | text,
)
scores = st.sampled_from(STATUSES).flatmap(
    lambda status: st.builds(
        Score,
        scorer=text,
        status=st.just(status),
        value=st.floats(0, 1) if status == "scored" else st.none(),
        label=st.none() | text,
        reason=text,
        details=st.dictionaries(text, json_values, max_size=3),
        calls=st.lists(calls, max_size=2),
        aggregate=text,
    )
)


@given(scores)
def test_a_score_is_the_same_after_a_round_trip_through_json(score):
    assert Score.model_validate_json(score.model_dump_json()) == score
    assert Score.model_validate(score.model_dump(mode="json")) == score


def test_a_ledger_holds_the_calls_made_while_it_is_open():
    record_calls(call("before"))
    with ledger() as held:
        record_calls(call("one"))
        record_calls(call("two"))
    record_calls(call("after"))
    assert [one.prompt for one in held] == ["one", "two"]


def test_a_call_stands_in_every_ledger_around_it():
    with ledger() as outer:
        record_calls(call("one"))
        with ledger() as inner:
            record_calls(call("two"))
        record_calls(call("three"))
    assert [one.prompt for one in outer] == ["one", "two", "three"]
    assert [one.prompt for one in inner] == ["two"]


def test_a_ledger_keeps_what_was_paid_for_before_an_error():
    held = []

    def work() -> None:
        with ledger() as calls:
            held.append(calls)
            record_calls(call("paid"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    record_calls(call("after"))
    assert held == [[call("paid")]]


def test_tasks_have_ledgers_of_their_own_and_share_the_one_around_them():
    async def one_task(name: str) -> list[str]:
        with ledger() as held:
            record_calls(call(f"{name} first"))
            await asyncio.sleep(0)
            record_calls(call(f"{name} second"))
        return [one.prompt for one in held]

    async def work() -> tuple[list[list[str]], list[str]]:
        with ledger() as held:
            found = await asyncio.gather(one_task("a"), one_task("b"))
        return found, [one.prompt for one in held]

    apart, together = asyncio.run(work())
    assert apart == [["a first", "a second"], ["b first", "b second"]]
    assert together == ["a first", "b first", "a second", "b second"]


def test_a_canceled_task_leaves_its_cost_in_the_ledger():
    async def work() -> list[JudgeCall]:
        async def forever() -> None:
            record_calls(call("paid"))
            await asyncio.Event().wait()

        with ledger() as held:
            task = asyncio.create_task(forever())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return held

    assert asyncio.run(work()) == [call("paid")]


USED = Usage(input_tokens=100, output_tokens=10)


@pytest.mark.parametrize(
    ("fields", "tokens", "usd"),
    [
        ({"usage": USED, "cost_usd": 0.5}, 110, 0.5),
        ({"usage": USED}, 110, None),
        ({}, None, None),
        ({"usage": Usage(input_tokens=100)}, None, None),
        ({"usage": USED, "cost_usd": 0.5, "cached": True}, 0, 0.0),
        ({"error": "RateLimitError"}, 0, 0.0),
        ({"error": "UnreachableError"}, 0, 0.0),
        ({"error": "LostError"}, None, None),
        ({"error": "CancelledError"}, None, None),
        ({"usage": USED, "cost_usd": 0.5, "error": "RefusalError"}, 110, 0.5),
    ],
    ids=[
        *("all said", "no price", "nothing said", "half said", "cached", "refused at the door", "never sent", "lost"),
        *("canceled", "no"),
    ],
)
def test_what_was_paid_for_a_call(fields, tokens, usd):
    paid = JudgeCall(judge="j", prompt="p@1", **fields)
    assert (paid.tokens_paid, paid.usd_paid) == (tokens, usd)


def test_draws_within_draws_are_told_apart():
    found = []
    for outer in range(3):
        with independent_repeat(outer, 3):
            for inner in range(2):
                with independent_repeat(inner, 2):
                    found.append(current_repeat.get())
    assert found == list(range(6))
    assert current_repeat.get() == 0


@pytest.mark.parametrize(
    ("fields", "is_request"),
    [({}, True), ({"error": "LostError"}, True), ({"error": "UnreachableError"}, False), ({"cached": True}, False)],
)
def test_a_request_is_what_reached_a_server(fields, is_request):
    assert JudgeCall(judge="j", prompt="p@1", **fields).is_request is is_request


def test_outages_are_remembered_inside_alone_and_by_each_run_apart():
    known_outages()["server"] = "gone"
    with outage_memory():
        assert known_outages() == {}
        known_outages()["server"] = "gone"
        with outage_memory():
            assert known_outages() == {}
        assert known_outages() == {"server": "gone"}
    assert known_outages() == {}
