"""The contract of scorers: @scorer, attempt, signature, and the sync twin."""

import asyncio
import copy
import hashlib
import json
import math
import os
import signal
import threading
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial, wraps
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, ValidationError

from judgekit.analysis.compare import compare
from judgekit.errors import ConfigError, JudgekitError, OverloadError, ReplyError
from judgekit.jobs.api import run
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import JudgeCall, Score, ledger, record_calls
from judgekit.scorers.criteria import WeightedCriteria
from judgekit.scorers.generalization import Adaptability, CollaborationEfficiency
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scorers.selective import Selective
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.arguments import ArgMatch, compare_arguments
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import Scorer, SyncScore, attempt, run_sync, scorer, signature
from judgekit.traces.message import FrozenModel, HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Sample

SAMPLE = Sample.of([HumanMessage("Hi, please.")], id="one")
ACHIEVED = {"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [1], "verdict": "achieved"}]}


def call(prompt: str = "p@1") -> JudgeCall:
    return JudgeCall(judge="scripted/judge", prompt=prompt)


def tried(one: Scorer) -> Score:
    return asyncio.run(attempt(one, SAMPLE))


@dataclass(frozen=True)
class Given:
    """Does as it is told."""

    does: object
    name: str = "given"

    async def ascore(self, sample: Sample, /) -> Score:
        return await self.does() if asyncio.iscoroutinefunction(self.does) else self.does()


# --- @scorer


@pytest.mark.parametrize(
    ("returned", "value", "reason"),
    [
        (True, 1.0, ""),
        (False, 0.0, ""),
        (1, 1.0, ""),
        (0, 0.0, ""),
        (0.25, 0.25, ""),
        ((0.5, "half"), 0.5, "half"),
        ((True, "all of it"), 1.0, "all of it"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_of_a_sample_is_a_scorer(returned, value, reason, is_async):
    def plain(sample):
        assert sample is SAMPLE
        return returned

    async def waiting(sample):
        await asyncio.sleep(0)
        return plain(sample)

    made = scorer(name="mine")(waiting if is_async else plain)
    assert isinstance(made, Scorer)
    found = tried(made)
    assert found == Score.scored("mine", value, reason=reason)
    assert type(found.value) is float


NUMBERS = [
    *(
        (kind(value), value)
        for kind in (np.float64, np.float32, np.float16, np.longdouble, np.array)
        for value in (0, 0.25, 1)
    ),
    *((kind(value), value) for kind in (np.int64, np.uint8, np.bool_, np.array) for value in (0, 1)),
    *((Fraction(1, 4), 0.25), (Decimal("0.25"), 0.25)),
    *((1.0000000000000002, 1), (-2.7e-17, 0), (-5e-324, 0), (np.float32(1.0000001), 1), (np.float32(-1e-8), 0)),
]


@pytest.mark.parametrize(("number", "value"), NUMBERS, ids=repr)
def test_numbers_of_any_type_are_values_and_rounding_is_undone(number, value):
    text_rules = ArgMatch(text=lambda expected, actual: number)
    call, other = ExpectedCall(name="f", args={"a": "x"}), ToolCall("f", {"a": "y"})
    for found in (
        tried(scorer(name="mine")(lambda sample: number)).value,
        tried(scorer(name="mine")(lambda sample: (number, "why"))).value,
        Score.scored("mine", number, confidence=number).value,
        Score.scored("mine", number, confidence=number).confidence,
        compare_arguments(text_rules, call, other).score,
        compare_arguments(lambda expected, actual: number, call, other).score,
    ):
        assert (type(found), found) == (float, value)


@given(st.floats(allow_nan=True))
def test_a_value_is_kept_or_rounded_to_a_bound_nearby_or_refused(number):
    try:
        value = Score.scored("mine", number).value
    except ValidationError:
        assert not -1e-16 <= number <= 1 + 5e-16
    else:
        assert value == min(max(number, 0), 1)
        assert abs(value - number) < 1e-15


def test_a_check_of_criteria_may_return_a_truth_value_of_numpy():
    criteria = WeightedCriteria({"polite": 1.0}, {"polite": lambda sample: np.array([0.5]).max() > 0.1})
    assert tried(criteria).value == 1


def test_an_object_or_class_with_ascore_gets_score():
    class Plain:
        async def ascore(self, sample: Sample, /) -> Score:
            return Score.scored("Plain", 0.5)

    @scorer
    @dataclass(frozen=True)
    class Counted:
        most: int
        name: str = "counted"

        async def ascore(self, sample: Sample, /) -> Score:
            return Score.scored(self.name, len(sample.trace.messages) <= self.most)

    plain = Plain()
    made = scorer(plain)
    assert made is plain
    assert made.name == "Plain"
    assert made.score(SAMPLE) == Score.scored("Plain", 0.5)
    assert [Counted(most).score(SAMPLE).value for most in (0, 1)] == [0, 1]
    assert Counted(3).name == "counted"
    assert signature(Counted(3)) != signature(Counted(4))
    assert scorer(ToolCallF1()) == ToolCallF1()


@pytest.mark.parametrize("option", [{"name": "x"}, {"version": "1"}])
def test_an_object_with_ascore_takes_no_options(option):
    with pytest.raises(ConfigError, match="takes no options: write @scorer, or scorer"):
        scorer(**option)(ToolCallF1())


@pytest.mark.parametrize(
    "score",
    [
        Score.scored("mine", 0.5, label="half", details={"a": 1}, aggregate="judgekit.aggregates.total:mean"),
        Score.skipped("mine", "no question here", details={"a": 1}),
        Score.failed("mine", "broken"),
        Score(scorer="mine", status="abstained", reason="undecided"),
    ],
    ids=lambda score: score.status,
)
def test_a_score_that_a_function_returns_is_kept_as_it_is(score):
    @scorer(name="mine")
    def mine(sample):
        return score

    assert tried(mine) == score


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "TypeError: mine returned None; expected a number in [0, 1] or a Score"),
        ("good", "TypeError: mine returned 'good'; expected a number in [0, 1] or a Score"),
        ([1], "TypeError: mine returned [1]; expected a number in [0, 1] or a Score"),
        ((None, "why"), "TypeError: mine returned None; expected a number in [0, 1] or a Score"),
        (1.5, "ValueError: mine returned 1.5; expected a number in [0, 1], where 1 is best"),
        (-0.1, "ValueError: mine returned -0.1; expected a number in [0, 1], where 1 is best"),
        (5, "ValueError: mine returned 5; expected a number in [0, 1], where 1 is best"),
        (math.nan, "ValueError: mine returned nan; expected a number in [0, 1], where 1 is best"),
        (math.inf, "ValueError: mine returned inf; expected a number in [0, 1], where 1 is best"),
        (1.0000001, "ValueError: mine returned 1.0000001; expected a number in [0, 1], where 1 is best"),
        (np.float32(1.25), "ValueError: mine returned np.float32(1.25); expected a number in [0, 1], where 1 is best"),
        (np.float64("nan"), "ValueError: mine returned np.float64(nan); expected a number in [0, 1], where 1 is best"),
        (np.array([1.0]), "TypeError: mine returned array([1.]); expected a number in [0, 1] or a Score"),
        (np.str_("1"), "TypeError: mine returned np.str_('1'); expected a number in [0, 1] or a Score"),
        (np.complex64(1), "TypeError: mine returned np.complex64(1+0j); expected a number in [0, 1] or a Score"),
    ],
)
def test_what_is_no_number_from_0_to_1_is_a_failed_score(returned, reason):
    @scorer(name="mine")
    def mine(sample):
        return returned

    assert tried(mine) == Score.failed("mine", reason, error=reason.partition(":")[0])


@pytest.mark.parametrize("returned", [(1, "why", "more"), (1,), (1, None)])
def test_a_tuple_that_is_no_pair_of_number_and_reason_is_a_failed_score(returned):
    @scorer
    def mine(sample):
        return returned

    assert tried(mine).status == "failed"


def test_what_a_function_raises_is_a_failed_score():
    @scorer
    def broken(sample):
        raise KeyError("no such thing")

    @scorer
    async def broken_later(sample):
        await asyncio.sleep(0)
        raise KeyError("no such thing")

    for one in (broken, broken_later):
        place = (
            f"test_scoring.py, line {one.function.__code__.co_firstlineno + 2 + (one is broken_later)}, in {one.name}"
        )
        assert tried(one) == Score.failed(one.name, f"KeyError: 'no such thing' ({place})", error="KeyError")


class Polite:
    """A callable object."""

    def __call__(self, sample: Sample) -> bool:
        return "please" in sample.trace.messages[-1].text


def test_a_scorer_is_called_as_its_function_unless_it_is_named():
    def says_please(sample):
        return "please" in sample.trace.messages[-1].text

    assert scorer(says_please).name == "says_please"
    assert scorer()(says_please).name == "says_please"
    assert scorer(name="manners")(says_please).name == "manners"
    assert scorer(Polite()).name == "Polite"
    assert tried(scorer(Polite())) == Score.scored("Polite", 1)


def first(sample):
    return 1


def second(sample):
    return 0.5


def test_the_version_of_a_function_is_the_hash_of_its_source_unless_it_is_given():
    renamed = [scorer(name="s")(one) for one in (first, first, second)]
    assert renamed[0].version == renamed[1].version != renamed[2].version
    assert len(renamed[0].version) == 12
    assert scorer(version="2")(first).version == "2"
    assert signature(scorer(version="2")(first)) != signature(scorer(version="3")(first))


def closure(rate: float):
    def rated(sample):
        return rate

    return rated


def without_source(rate: float):
    names: dict = {}
    exec(f"def rated(sample): return {rate}", names)  # noqa: S102 - that is what is tried
    return names["rated"]


class Rate:
    """A callable, and a class with a method."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, _sample) -> float:
        return self.rate

    def rated(self, _sample) -> float:
        return self.rate


def rated(sample, rate):
    return rate


INDISTINCT = {
    "closure": closure,
    "without source": without_source,
    "callable": Rate,
    "method": lambda rate: Rate(rate).rated,
    "partial": lambda rate: partial(rated, rate=rate),
    "wrapped": lambda rate: wraps(first)(closure(rate)),
}


@pytest.mark.parametrize("made", INDISTINCT.values(), ids=INDISTINCT)
def test_functions_that_cannot_be_told_apart_have_no_signature(made):
    low, high = (scorer(name="rated")(made(rate)) for rate in (0.1, 0.9))
    assert (tried(low).value, tried(high).value) == (0.1, 0.9)
    with pytest.raises(ConfigError, match=r"rated is a function that judgekit cannot identify.*version='1'"):
        signature(low)
    runs = run([SAMPLE], [low]), run([SAMPLE], [high])
    assert [one.scorers[0].signature for one in runs] == [None, None]
    assert any(
        "rated: it is unknown whether both runs scored in the same way" in one for one in compare(*runs).warnings
    )
    known = [signature(scorer(name="rated", version=version)(made(0.1))) for version in ("1", "2")]
    assert known[0] != known[1]


# --- attempt


class Unprintable(BaseException):
    """Neither an Exception, like the panics of extensions in Rust, nor with a message."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad data"), "ValueError: bad data"),
        (OverloadError("busy"), "OverloadError: busy"),
        (ReplyError("no verdict", text="?"), "ReplyError: no verdict"),
        (TimeoutError(), "TimeoutError: "),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
        (StopAsyncIteration("end"), "StopAsyncIteration: end"),
        (ValueError("\ud800 alone"), "ValueError: \\ud800 alone"),
        (BaseExceptionGroup("two", [GeneratorExit()]), "BaseExceptionGroup: two (1 sub-exception)"),
        (Unprintable(), "Unprintable"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else None,
)
def test_any_error_is_a_failed_score_with_its_type_its_message_and_its_cost(error, reason):
    def work():
        record_calls(call("paid"))
        raise error

    found = tried(Given(work))
    said, _, where = found.reason.partition(" (test_scoring.py, line ")
    expected = Score.failed("given", reason, error=type(error).__name__, calls=[call("paid")])
    assert found.model_copy(update={"reason": said}) == expected
    assert where.endswith(", in work)") or isinstance(error, JudgekitError)
    assert Score.model_validate_json(found.model_dump_json()) == found


@given(st.text(st.characters(), max_size=30))
def test_a_failed_score_can_be_written_whatever_the_message_was(message):
    def work():
        raise RuntimeError(message)

    found = tried(Given(work))
    assert Score.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_what_ends_the_work_is_no_failed_score(error):
    """A canceled score is not a failed one: it passes through."""

    async def work():
        raise error

    with pytest.raises(error):
        asyncio.run(attempt(Given(work), SAMPLE))


@pytest.mark.parametrize("returned", [None, 0.5, "good", (1.0, "why")])
def test_a_scorer_that_returns_no_score_has_failed(returned):
    found = tried(Given(lambda: returned))
    assert found == Score.failed(
        "given", f"TypeError: given returned {returned!r} instead of a Score", error="TypeError"
    )


def test_the_calls_of_the_ledger_stand_in_the_score():
    def work():
        record_calls(call("one"))
        record_calls(call("two"))
        return Score.scored("given", 1, reason="kept", calls=[call("two")])

    assert tried(Given(work)) == Score.scored("given", 1, reason="kept", calls=[call("one"), call("two")])


def test_calls_that_a_scorer_counted_itself_are_kept():
    """A scorer may ask a model in its own way, past the ledger; what it says it paid is not lost."""
    mine = Score.scored("given", 1, calls=[call("mine")])
    assert tried(Given(lambda: mine)) == mine


def test_a_score_bears_the_name_of_its_scorer():
    """Else the skipped ones would be counted on another line than the scored ones."""
    assert tried(Given(lambda: Score.skipped("another", "no question"))) == Score.skipped("given", "no question")


def test_attempts_in_one_another_keep_their_cost_apart_and_together():
    def fails():
        record_calls(call("member"))
        raise ValueError

    async def panel():
        record_calls(call("own"))
        member = await attempt(Given(fails, name="member"), SAMPLE)
        return Score.scored("given", 1, details={"member": [one.prompt for one in member.calls]})

    found = tried(Given(panel))
    assert found.details == {"member": ["member"]}
    assert [one.prompt for one in found.calls] == ["own", "member"]


# --- the sync twin


@dataclass(frozen=True)
class Threaded(SyncScore):
    """Tells in which thread and loop it ran."""

    name: str = "threaded"

    async def ascore(self, sample: Sample, /) -> Score:
        await asyncio.sleep(0)
        record_calls(call("paid"))
        return Score.scored(self.name, 1, reason=threading.current_thread().name)


def test_score_is_the_sync_twin():
    assert Threaded().score(SAMPLE) == Score.scored("threaded", 1, reason=threading.current_thread().name)


def test_under_a_running_loop_score_uses_a_thread_of_its_own():
    async def notebook():
        loop = asyncio.get_running_loop()
        found = Threaded().score(SAMPLE)
        assert asyncio.get_running_loop() is loop
        return found

    assert asyncio.run(notebook()).reason.startswith("judgekit")


def test_score_raises_what_ascore_raises():
    @scorer
    def broken(sample):
        raise KeyError("no such thing")

    async def notebook():
        return broken.score(SAMPLE)

    with pytest.raises(KeyError, match="no such thing"):
        broken.score(SAMPLE)
    with pytest.raises(KeyError, match="no such thing"):
        asyncio.run(notebook())


def test_what_the_sync_twin_pays_under_a_running_loop_stands_in_the_ledger():
    """A function that asks another scorer with ``.score`` has its cost in its own score."""

    @scorer
    def mine(sample):
        return Threaded().score(sample).value

    assert [one.prompt for one in tried(mine).calls] == ["paid"]
    with ledger() as held:
        Threaded().score(SAMPLE)
    assert [one.prompt for one in held] == ["paid"]


def test_ctrl_c_under_a_running_loop_stops_the_work_and_gets_through():
    """It reaches the main thread alone, which waits; the thread of the work is told and is done before that goes on."""
    seen: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.1)  # the main thread is to be waiting, and not still at starting this one
        await asyncio.sleep(0.1)  # until the main thread does wait
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("stopped")
            raise

    async def notebook() -> None:
        run_sync(work)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()  # as a notebook has it: a loop that does not catch Ctrl-C itself
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(notebook())
        assert seen == ["stopped"]
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)


# --- signature


def test_a_signature_is_the_same_for_the_same_scorer():
    assert signature(ToolCallF1()) == signature(ToolCallF1())
    assert signature(TopicAdherence(Judge("openai/a"))) == signature(TopicAdherence(Judge("openai/a")))
    assert len(signature(ToolCallF1())) == 16


def test_the_signature_of_a_shipped_scorer_stays_from_release_to_release():
    """Rows will be found by it: whoever changes it makes all of them unknown, and should mean to."""
    rules = {
        "mode": "equal",
        "only": None,
        "ignore": [],
        "defaults": {},
        "types": "strict",
        "text": "exact",
        "lists": "ordered",
    }
    options = {
        "args": ["judgekit.scorers.tool_calls.arguments.ArgMatch", rules],
        "include_delegations": True,
        "include_failed": True,
        "name": "tool_call_f1",
        "requestor": "assistant",
        "scope": "own",
    }
    identity = ["judgekit.scorers.tool_calls.f1.ToolCallF1", options, None]
    assert signature(ToolCallF1()) == hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


BASE = TopicAdherence(Judge("openai/a"))
WITH_PARAMS = Judge("openai/a", params={"temperature": 0})


@pytest.mark.parametrize(
    "other",
    [
        TopicAdherence(Judge("openai/a"), mode="recall"),
        TopicAdherence(Judge("openai/a"), name="other"),
        TopicAdherence(Judge("openai/b")),
        TopicAdherence(Judge("openai/a", base_url="http://localhost:1/v1")),
        TopicAdherence(WITH_PARAMS),
        TopicAdherence(Judge("openai/a", params={"temperature": 1})),
        TopicAdherence(ScriptedJudge([])),
        AgentGoalAccuracyWithReference(Judge("openai/a"), name="topic_adherence"),
        ToolCallF1(name="topic_adherence"),
    ],
    ids=range(9),
)
def test_what_changes_a_score_changes_the_signature(other):
    assert signature(other) != signature(BASE)


def test_all_signatures_of_different_scorers_differ():
    judge = Judge("openai/a")
    made = [
        ToolCallAccuracy(),
        ToolCallF1(),
        *(TopicAdherence(judge, mode=mode) for mode in ("precision", "recall", "f1", "accuracy")),
        AgentGoalAccuracyWithReference(judge),
        AgentGoalAccuracyWithoutReference(judge),
        TopicAdherence(WITH_PARAMS),
    ]
    assert len({signature(one) for one in made}) == len(made)


@pytest.mark.parametrize(
    "settings_of_no_effect",
    [
        {"cache": Path("elsewhere.sqlite")},
        {"cache_mode": "off"},
        {"cache_mode": "refresh"},
        {"store_text": False},
        {"offline": True},
        {"concurrency": 2},
        {"attempts": 9},
        {"timeout": 5},
        {"budget": {"requests": 7}},
        {"price": Price(1, 2)},
        {"api_key_env": "MY_KEY"},
    ],
    ids=lambda found: next(iter(found)),
)
def test_where_replies_are_kept_and_what_they_cost_leaves_the_signature(settings_of_no_effect):
    assert signature(TopicAdherence(Judge("openai/a", **settings_of_no_effect))) == signature(BASE)


@dataclass(frozen=True)
class Asking:
    """A scorer with one prompt."""

    prompt: Prompt = field(compare=False)
    name: str = "asking"

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self.prompt,)

    async def ascore(self, sample: Sample, /) -> Score:
        raise NotImplementedError


def test_a_changed_word_in_a_prompt_changes_the_signature(tmp_path):
    def asking(question: str) -> Asking:
        folder = tmp_path / question
        folder.mkdir(exist_ok=True)
        path = folder / "mine.md"
        path.write_text(f"---\ndescription: d\ninputs: [conversation]\nsource: s\n---\n{question}\n")
        return Asking(load_prompt(path))

    assert signature(asking("Was it good?")) == signature(asking("Was it good?")) != signature(asking("Was it fine?"))


@dataclass(frozen=True)
class WithOption:
    """A scorer with an option of any type."""

    option: object
    name: str = "with_option"

    async def ascore(self, sample: Sample, /) -> Score:
        raise NotImplementedError


class Mark(Enum):
    """What is no JSON."""

    FIRST = 1
    SECOND = 2


class Versioned:
    """A callable with a version."""

    def __init__(self, version: str) -> None:
        self.version = version

    def __call__(self) -> None: ...


def test_options_of_all_kinds_stand_in_the_signature():
    options = [
        None,
        True,
        1,
        "1",
        1.5,
        (1, 2),
        (2, 1),
        {"a": 1},
        {"a": 2},
        {"b": 1},
        ToolCallF1(),
        ToolCallF1(name="x"),
    ]
    options += [Versioned("1"), Versioned("2"), (Versioned("1"), 3), {"f": Versioned("1")}]
    signatures = [signature(WithOption(option)) for option in options]
    assert len(set(signatures)) == len(options)
    assert signatures == [signature(WithOption(copy.deepcopy(option))) for option in options]
    assert signature(WithOption([1, 2])) == signature(WithOption((1, 2)))
    assert signature(WithOption({"a": 1, "b": 2})) == signature(WithOption({"b": 2, "a": 1}))


class Rules(FrozenModel):
    """Options that belong together."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    compare: object = None
    inner: "Rules | None" = None
    shown: object = Field(default=None, exclude=True)


def test_the_fields_of_a_record_stand_in_the_signature_one_by_one():
    options = [
        None,
        1,
        "1",
        ("a",),
        {"a": 1},
        Versioned("1"),
        Versioned("2"),
        {"f": Versioned("1")},
        Path("a"),
        Path("b"),
        datetime(2025, 1, 2, tzinfo=UTC),
        date(2025, 1, 2),
        Mark.FIRST,
        Mark.SECOND,
    ]
    made = [Rules(compare=option) for option in options]
    made += [Rules(inner=one) for one in made] + [Rules(compare=(one,)) for one in made]
    signatures = [signature(WithOption(one)) for one in made]
    assert len(set(signatures)) == len(made)
    assert signatures == [signature(WithOption(one.model_copy(deep=True))) for one in made]


def test_a_field_that_is_not_written_is_no_part_of_the_signature():
    assert signature(WithOption(Rules(shown=len))) == signature(WithOption(Rules()))


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (Rules(compare=len), "needs a version"),
        (Rules(inner=Rules(compare=[len])), "needs a version"),
        (Rules(compare=object()), "cannot be part of a scorer's signature"),
        (len, "needs a version"),
        (lambda: None, "needs a version"),
        ([len], "needs a version"),
        ({"f": len}, "needs a version"),
        (WithOption(len), "needs a version"),
        ({1, 2}, "cannot be part of a scorer's signature"),
        (object(), "cannot be part of a scorer's signature"),
    ],
    ids=range(10),
)
def test_an_option_that_cannot_be_told_from_another_is_an_error(option, said):
    with pytest.raises(ConfigError, match=said):
        signature(WithOption(option))


def test_a_judged_scorer_has_a_sync_twin_too():
    judge = ScriptedJudge([ACHIEVED])
    assert AgentGoalAccuracyWithoutReference(judge).score(SAMPLE).value == 1.0
    assert len(judge.requests) == 1


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: Repeat(ToolCallF1, 3), "scorer: expected a scorer, found the class ToolCallF1: call it, ToolCallF1()"),
        (
            lambda: Selective(PromptScorer, 0.5),
            "scorer: expected a scorer, found the class PromptScorer: call it, PromptScorer(prompt, judge)",
        ),
        (
            lambda: Selective(Repeat(ToolCallF1(), 3), 0.5, "tone"),
            "escalate: expected a scorer, found 'tone': pass names to run in a list",
        ),
        (
            lambda: Panel([ToolCallF1(), ToolCallF1]),
            "scorers[1]: expected a scorer, found the class ToolCallF1: call it, ToolCallF1()",
        ),
        (lambda: Panel(ToolCallF1()), "scorers must be a list: write [scorer]"),
        (
            lambda: Adaptability(ToolCallF1),
            "scorer: expected a scorer, found the class ToolCallF1: call it, ToolCallF1()",
        ),
        (
            lambda: CollaborationEfficiency("fine"),
            "scorer: expected a scorer, found 'fine': pass names to run in a list",
        ),
        (lambda: ToolCallF1().score({}), "what is scored is of type dict: build a sample from it"),
    ],
)
def test_what_is_no_scorer_or_no_sample_says_what_to_write(made, told):
    with pytest.raises(ConfigError) as caught:
        made()
    assert str(caught.value).startswith(told)
