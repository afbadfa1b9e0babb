"""Constraints on tool calls."""

import json
from collections import Counter
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.errors import ConfigError
from judgekit.formats.reading import read
from judgekit.score import Score
from judgekit.scorers.tool_calls.constraints import (
    Before,
    Behavior,
    Constraint,
    Count,
    Forbid,
    MaxSteps,
    NoRepeat,
    Require,
    SchemaValid,
    Status,
    ToolConstraints,
)
from judgekit.scorers.tool_calls.matchers import between, contains
from judgekit.scoring import signature
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

A, B, C = ToolCall("a"), ToolCall("b"), ToolCall("c")
UNREAD = ToolCall("pay", '{"amount": 5')
ALL = [
    Require("a"),
    Forbid("b"),
    Count("a", min=1),
    Before("a", "b"),
    NoRepeat(),
    Status("a", "ok"),
    MaxSteps(3),
    SchemaValid(),
]


def pay(amount: object) -> ToolCall:
    return ToolCall("pay", {"amount": amount, "to": "x"})


def trace(*messages: list[ToolCall], failed: dict[int, bool] | None = None, tools: object = ()) -> Trace:
    """A trace with these calls, message by message from number 2 on; ``failed`` says it of the first of a message."""
    told = [HumanMessage("Hi")]
    for number, calls in enumerate(messages):
        ids = [f"{number}.{position}" for position in range(len(calls))]
        told.append(
            AIMessage(tool_calls=[call.model_copy(update={"id": one}) for call, one in zip(calls, ids, strict=True)])
        )
    results = [ToolMessage(tool_call_id=f"{number}.0", is_error=error) for number, error in (failed or {}).items()]
    return Trace(messages=[*told, *results], tools=tools)


def check(constraint: Constraint, *messages: list[ToolCall], **known: object) -> tuple[bool | None, str]:
    return constraint.check(Behavior(trace(*messages, **known), "assistant"))[:2]


def score(constraints: object, *messages: list[ToolCall], **known: object) -> Score:
    return ToolConstraints(constraints).score(Sample(id="one", trace=trace(*messages, **known)))


CASES = [
    (Require("a"), [[B], [A]], True, "a in message 3"),
    (Require("a"), [[B]], False, "not called"),
    (Require("b*"), [[ToolCall("book")]], True, "book in message 2"),
    (Require("pay", {"amount": 5}), [[pay(5.0)]], True, "pay in message 2"),
    (Require("pay", {"amount": 1}), [[pay(amount=True)]], False, "not called with these arguments"),
    (Require("pay", {"amount": between(1, 9)}), [[pay(20)], [pay(3)]], True, "pay in message 3"),
    (Require("pay", {"amount": {"of": contains("x")}}), [[pay({"of": "xy", "in": 1})]], True, "pay in message 2"),
    (Require("pay", {}), [[UNREAD]], False, "not called with these arguments"),
    (Require("pay"), [[UNREAD]], True, "pay in message 2"),
    (Forbid("a"), [[B]], True, "not called"),
    (Forbid("a"), [[A], [A, B], [A], [A]], False, "a in message 2, a in message 3, a in message 4 and 1 more"),
    (Forbid("del*_all"), [[ToolCall("del_not")], [ToolCall("del_x_all")]], False, "del_x_all in message 3"),
    (Forbid("pay", {"amount": between(100, None)}), [[pay(99)]], True, "not called with these arguments"),
    (Forbid("pay", {"amount": between(100, None)}), [[pay(99), pay(100)]], False, "pay in message 2"),
    (Forbid("pay", {"amount": 5}), [[UNREAD]], None, "unreadable arguments: pay in message 2"),
    (Forbid("pay", {"amount": 5}), [[UNREAD], [pay(5)]], False, "pay in message 3"),
    (Forbid("pay"), [[UNREAD]], False, "pay in message 2"),
    (Count("a", min=1, max=2), [[A], [B, A]], True, "2 calls"),
    (Count("a", min=1, max=2), [[A, A], [A]], False, "3 calls"),
    (Count("a", max=0), [[B]], True, "0 calls"),
    (Count("*", min=3), [[A], [B, C]], True, "3 calls"),
    (Before("a", "b"), [[A], [B], [B]], True, "b in message 3"),
    (Before("a", "b"), [[A, B]], False, "b in message 2 without a before it"),
    (Before("a", "b"), [[A]], True, "b is not called"),
    (Before("a", "*"), [[A], [B]], False, "a in message 2 without a before it"),
    (NoRepeat(), [[A], [B], [A]], False, "a in message 4 repeats message 2"),
    (NoRepeat(), [[A, A]], False, "a in message 2 repeats message 2"),
    (NoRepeat("b"), [[A], [A]], True, "no repeats"),
    (NoRepeat(), [[pay(5)], [pay(5.0)]], False, "pay in message 3 repeats message 2"),
    (NoRepeat(), [[pay(1)], [pay(amount=True)], [pay("1")]], True, "no repeats"),
    (NoRepeat(), [[UNREAD], [ToolCall("pay", '{"amount": 6')], [ToolCall("pay")]], True, "no repeats"),
    (MaxSteps(2), [[A], [], [A]], False, "3 messages"),
    (SchemaValid(), [[A]], None, "the trace defines no tools"),
]  # fmt: skip


def test_a_constraint_holds_or_not_and_says_why():
    for constraint, messages, holds, reason in CASES:
        assert check(constraint, *messages) == (holds, reason)


STATUSES = [
    ("ok", {0: False, 1: False}, True, "a: 0 of 2 calls failed, the last one succeeded"),
    ("ok", {0: True, 1: False}, False, "a: 1 of 2 calls failed, the last one succeeded"),
    ("ok", {1: False}, None, "a: 0 of 2 calls failed, 1 may have failed, the last one succeeded"),
    ("recovered", {0: True, 1: False}, True, "a: 1 of 2 calls failed, the last one succeeded"),
    ("recovered", {0: True, 1: True}, False, "a: 2 of 2 calls failed, the last one failed"),
    ("recovered", {0: True}, None, "a: 1 of 2 calls failed, 1 may have failed"),
    ("error", {0: False, 1: True}, True, "a: 1 of 2 calls failed, the last one failed"),
    ("error", {0: True}, None, "a: 1 of 2 calls failed, 1 may have failed"),
]


def test_how_the_calls_of_a_tool_ended():
    for status, failed, holds, reason in STATUSES:
        assert check(Status("a", status), [A], [A], failed=failed) == (holds, reason)


def test_where_a_pattern_fits_several_tools_each_of_them_must_have_ended_so():
    failed = {0: True, 1: False, 2: False}
    assert check(Status("*", "recovered"), [A], [A], [B], failed=failed) == (False, "b: 0 of 1 call failed")
    assert check(Status("*", "recovered"), [A], [A], [C], failed={0: True, 1: False})[0] is False
    assert check(Status("*", "ok"), [B], [C], failed={0: False}) == (None, "c: 0 of 1 call failed, 1 may have failed")
    assert check(Status("*", "ok"), [B], [C], failed={0: False, 1: False})[0] is True


def test_arguments_fit_the_schemas_of_the_trace():
    tools = [
        ToolDefinition("pay", parameters={"properties": {"amount": {"type": "number"}}}),
        ToolDefinition("a"),
        ToolDefinition("b", parameters={"type": "nothing"}),
    ]
    assert check(SchemaValid(), tools=tools) == (True, "0 calls, all valid")
    assert check(SchemaValid(), [pay(5), A], tools=tools) == (True, "2 calls, all valid")
    assert check(SchemaValid(), [pay("5")], tools=tools) == (
        False,
        "pay in message 2: args.amount: '5' is not of type 'number'",
    )
    assert check(SchemaValid(), [C], tools=tools) == (False, "c in message 2: tool 'c' is not defined")
    assert check(SchemaValid(), [UNREAD], tools=tools)[0] is False
    holds, reason = check(SchemaValid(), [A, B], tools=tools)
    assert holds is None
    assert reason.startswith("b in message 2: the JSON Schema of the tool 'b' is unusable: ")
    assert check(SchemaValid(), [B, C], tools=tools)[0] is False


calls = st.sampled_from([A, B, C, pay(5), pay(5.0), pay(amount=True), UNREAD])
conversations = st.lists(st.lists(calls, max_size=3), max_size=5)
flags = st.dictionaries(st.integers(0, 4), st.sampled_from([True, False, None]), max_size=5)


def same(one: ToolCall, other: ToolCall) -> bool:
    if one.name != other.name or one.args_raw != other.args_raw:
        return False
    return [(type(value) is bool, value) for value in one.args.values()] == [
        (type(value) is bool, value) for value in other.args.values()
    ]


@settings(max_examples=2 * settings.default.max_examples)
@given(conversations, flags)
def test_no_call_repeats_where_all_earlier_equal_ones_failed_in_earlier_messages(messages, failed):
    made = [
        (number, call, position == 0 and failed.get(number) is True)
        for number, message in enumerate(messages)
        for position, call in enumerate(message)
    ]
    failed = {number: error for number, error in failed.items() if number < len(messages) and messages[number]}
    repeats = any(
        same(call, earlier) and not (error and before < number)
        for at, (number, call, _) in enumerate(made)
        for before, earlier, error in made[:at]
    )
    assert check(NoRepeat(), *messages, failed=failed)[0] is not repeats


@settings(max_examples=2 * settings.default.max_examples)
@given(conversations, st.sampled_from(["a", "pay", "p*", "*"]), st.sampled_from([None, {}, {"amount": 5}]))
def test_what_is_required_and_made_would_break_being_forbidden(messages, tool, args):
    required, forbidden = check(Require(tool, args), *messages)[0], check(Forbid(tool, args), *messages)[0]
    assert required is (forbidden is False)
    assert (forbidden is None) <= any(call is UNREAD for message in messages for call in message)


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=5),
    st.sampled_from(["ok", "error", "recovered"]),
)
def test_a_status_is_decided_where_it_does_not_hang_on_what_is_not_known(failures, status):
    def is_so(known: tuple[bool, ...]) -> bool:
        if status == "ok":
            return not any(known)
        return known[-1] if status == "error" else any(known) and not known[-1]

    ways = {is_so(known) for known in product(*([one] if one is not None else [True, False] for one in failures))}
    found = check(Status("a", status), *[[A]] * len(failures), failed=dict(enumerate(failures)))[0]
    assert found is (ways.pop() if len(ways) == 1 else None)


@given(conversations, flags, st.lists(st.sampled_from(ALL), min_size=1, max_size=6))
def test_the_value_is_the_share_that_holds_of_those_decided(messages, failed, constraints):
    failed = {number: error for number, error in failed.items() if number < len(messages) and messages[number]}
    found = score(constraints, *messages, failed=failed)
    verdicts = [check(constraint, *messages, failed=failed)[0] for constraint in constraints]
    decided = [verdict for verdict in verdicts if verdict is not None]
    assert (found.details["held"], found.details["broken"]) == (decided.count(True), decided.count(False))
    assert [one["holds"] for one in found.details["constraints"]] == verdicts
    assert found.value == (sum(decided) / len(decided) if decided else None)
    assert found.status == ("scored" if decided else "skipped")


def test_a_score_says_what_does_not_hold_and_what_is_not_decided():
    found = score([Require("b"), Status("b", "ok"), Before("a", "b"), MaxSteps(3)], [B])
    assert found.value == 2 / 3
    assert found.reason == (
        "2 of 3 constraints hold; before(a, b): b in message 2 without a before it; "
        "status(b, ok) is undecided: b: 0 of 1 call failed, 1 may have failed"
    )
    assert found.details == {
        "constraints": [
            {"constraint": "require(b)", "holds": True, "reason": "b in message 2"},
            {"constraint": "status(b, ok)", "holds": None, "reason": "b: 0 of 1 call failed, 1 may have failed"},
            {"constraint": "before(a, b)", "holds": False, "reason": "b in message 2 without a before it"},
            {"constraint": "max_steps(3)", "holds": True, "reason": "1 message"},
        ],
        "held": 2,
        "broken": 1,
    }


def test_where_nothing_is_decided_the_sample_is_skipped():
    found = score([Status("a", "ok"), SchemaValid()], [B])
    assert (found.status, found.value) == ("skipped", None)
    assert found.reason == (
        "status(a, ok) is undecided: not called; schema_valid() is undecided: the trace defines no tools"
    )
    assert (found.details["held"], found.details["broken"]) == (0, 0)


def test_whose_calls_are_looked_at_can_be_said():
    sample = Sample.of([HumanMessage(tool_calls=[A, A]), AIMessage(tool_calls=[B]), AIMessage(), AIMessage()])
    constraints = [Count("a", min=2), Forbid("b"), MaxSteps(1)]
    assert ToolConstraints(constraints).score(sample).value == 0
    assert ToolConstraints(constraints, requestor="user").score(sample).value == 1


TABLES = [
    ({"type": "require", "tool": "a"}, Require("a"), "require(a)"),
    ({"type": "forbid", "tool": "a*", "args": {"n": 1}}, Forbid("a*", {"n": 1}), 'forbid("a*", {"n":1})'),
    ({"type": "count", "tool": "a", "min": 1, "max": 2}, Count("a", min=1, max=2), "count(a, min=1, max=2)"),
    ({"type": "count", "tool": "a", "max": 0}, Count("a", max=0), "count(a, max=0)"),
    ({"type": "before", "first": "a", "then": "b"}, Before("a", "b"), "before(a, b)"),
    ({"type": "no_repeat"}, NoRepeat(), "no_repeat()"),
    ({"type": "no_repeat", "tool": "a"}, NoRepeat("a"), "no_repeat(a)"),
    ({"type": "status", "tool": "a", "status": "ok"}, Status("a", "ok"), "status(a, ok)"),
    ({"type": "max_steps", "n": 5}, MaxSteps(5), "max_steps(5)"),
    ({"type": "schema_valid"}, SchemaValid(), "schema_valid()"),
]


def test_a_constraint_can_be_written_as_a_table_and_reads_as_in_python():
    for table, constraint, text in TABLES:
        scorer = ToolConstraints([table])
        assert scorer == ToolConstraints([constraint])
        assert signature(scorer) == signature(ToolConstraints([constraint]))
        assert scorer.constraints == (constraint,)
        assert str(constraint) == text


def test_constraints_that_do_not_fit_are_refused_when_the_scorer_is_made():
    cases = [
        ([], "constraints: expected one or more"),
        ([{"type": "requires", "tool": "a"}], r"constraints: \[0\]: .*'requires'.*'require', 'forbid'"),
        ([{"tool": "a"}], r"constraints: \[0\]: .*'type'"),
        ([Require("a"), {"type": "before", "first": "a"}], r"constraints: \[1\]\.then: Field required"),
        ([{"type": "require", "tool": "a", "arg": {}}], r"constraints: \[0\]\.arg: Extra inputs"),
        ([{"type": "count", "tool": "a"}], "min or max is required"),
        ([{"type": "max_steps", "n": -1}], r"constraints: \[0\]\.n: .*greater than or equal to 0, found -1"),
        ([{"type": "status", "tool": "a", "status": "fine"}], "'ok', 'error' or 'recovered', found 'fine'"),
        ([{"type": "forbid", "tool": "a", "args": {"n": [{"$judgekit": "neer"}]}}], "Did you mean 'near'"),
        ({"type": "require", "tool": "a"}, "should be a list"),
        ("require", "should be a list, found 'require'"),
    ]
    for constraints, message in cases:
        with pytest.raises(ConfigError, match=message):
            ToolConstraints(constraints)


def test_an_unknown_requestor_is_refused():
    with pytest.raises(ConfigError, match=r"no requestor is called 'asistant'. Did you mean 'assistant'"):
        ToolConstraints([Require("a")], requestor="asistant")


@pytest.mark.parametrize("bounds", [{}, {"min": 0}, {"min": 3, "max": 2}, {"max": -1}, {"min": -1, "max": 1}], ids=str)
def test_bounds_that_none_or_all_numbers_keep_are_refused(bounds):
    with pytest.raises(ValidationError):
        Count("a", **bounds)


def test_hostile_names_and_many_calls_are_told_in_short_lines():
    hostile = ToolCall("x\n\x1b[31m" + "y" * 10_000, {"\x00": {"$judgekit": "near"}})
    found = score(
        [Forbid("*"), NoRepeat(), Before("a", "*"), Status("*", "ok"), SchemaValid()], *[[hostile] * 20] * 100
    )
    assert found.value == 0
    assert len(found.reason) < 2_000
    assert found.reason.isprintable()
    json.loads(found.model_dump_json())


def whole(value: object) -> object:
    if isinstance(value, dict):
        return {key: whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_by_hand(simulation: dict, role: str) -> list[tuple[int, str, str, bool | None]]:
    """Message, name, arguments and failure of each call, from the raw file: a result answers the last call of its id."""
    made: list[tuple[int, dict, bool | None]] = []
    for number, message in enumerate(simulation["messages"], 1):
        if message["role"] == role:
            made += [(number, call, None) for call in message["tool_calls"] or ()]
        elif message["role"] == "tool" and message["requestor"] == role:
            at = max(at for at, (_, call, _) in enumerate(made) if call["id"] == message["id"])
            made[at] = *made[at][:2], message["error"]
    return [
        (number, call["name"], json.dumps(whole(call["arguments"]), sort_keys=True), error)
        for number, call, error in made
    ]


@pytest.mark.parametrize(("domain", "role"), [("retail", "assistant"), ("telecom", "user")])
def test_real_conversations_have_the_verdicts_that_reading_by_hand_gives(shared_data, domain, role):
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    simulations = json.loads(path.read_text())["simulations"]
    raw = {f"{one['task_id']}#{one['trial']}": one for one in simulations}
    names = sorted({name for one in simulations for _, name, _, _ in read_by_hand(one, role)})
    counted = Counter()
    for sample in islice(read(path, on_error="raise"), 0, None, 6):
        made = read_by_hand(raw[sample.id], role)
        steps = sum(message["role"] == role for message in raw[sample.id]["messages"])
        constraints: list[tuple[Constraint, bool | None]] = [(MaxSteps(n), steps <= n) for n in (5, 10, 20)]
        constraints.append(
            (
                NoRepeat(),
                not any(
                    one[1:3] == other[1:3] and not (other[3] and other[0] < one[0])
                    for at, one in enumerate(made)
                    for other in made[:at]
                ),
            )
        )
        for name in names:
            ends = [error for _, called, _, error in made if called == name]
            constraints += [
                (Require(name), len(ends) > 0),
                (Forbid(name), len(ends) == 0),
                (Count(name, min=1, max=2), 1 <= len(ends) <= 2),
                (Status(name, "ok"), not any(ends) if ends else None),
                (Status(name, "error"), ends[-1] if ends else None),
                (Status(name, "recovered"), any(ends) and not ends[-1] if ends else None),
            ]
            for first in names:
                starts = [number for number, called, _, _ in made if called == first]
                constraints.append(
                    (
                        Before(first, name),
                        all(any(start < number for start in starts) for number, called, _, _ in made if called == name),
                    )
                )
        found = ToolConstraints([one for one, _ in constraints], requestor=role).score(sample)
        assert [one["holds"] for one in found.details["constraints"]] == [holds for _, holds in constraints]
        counted.update((one.type, holds) for one, holds in constraints)
    assert all(counted[kind, verdict] for kind in ("require", "forbid", "count", "before") for verdict in (True, False))
