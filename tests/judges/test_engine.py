"""Judges against a real engine: llama.cpp's server with a model of random weights, see engine.py."""

import asyncio
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from judgekit.errors import ContextError, LostError, TruncatedError
from judgekit.jobs.api import run
from judgekit.judges.cache.replies import ReplyDatabase
from judgekit.judges.judge import Judge
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import independent_repeat, ledger
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.topic import TopicAdherence
from judgekit.traces.message import HumanMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

pytestmark = [
    pytest.mark.processes,
    pytest.mark.usefixtures("no_waits"),
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="needs a real engine: xllamacpp"),
]

GOAL = load_prompt("agent_goal_without_reference")
KEY = "sk-engine"


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    """The address of an engine that runs as long as the tests do."""
    script, model = Path(__file__).with_name("engine.py"), tmp_path_factory.mktemp("engine") / "random.gguf"
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, script, model, KEY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        address = running.stdout.readline().strip()
        assert address, "the engine did not start"
        yield f"{address}/v1"
        running.stdin.close()
        assert running.wait(10) == 0


@pytest.fixture
def local(engine, monkeypatch):
    """A judge that asks the engine. Without a limit, what it says by chance may be very long."""
    monkeypatch.setenv("ENGINE_KEY", KEY)
    own = {"base_url": engine, "api_key_env": "ENGINE_KEY", "cache_mode": "off"}
    return lambda **settings: Judge("openai/random", **own | {"params": {"max_tokens": 1000, "seed": 7}} | settings)


@pytest.fixture
def asked(sample):
    """The judgment of a judge on the sample, in a loop of its own."""
    return lambda judge, answer: asyncio.run(judge.ask(GOAL, sample, answer))


class Mood(BaseModel):
    """An object in an answer."""

    kind: bool
    words: Annotated[list[str], Field(max_length=2)]


class Opinion(BaseModel):
    """What strict schemas can say: ranges of numbers and of lists, choices, nothing, an object."""

    reason: str
    points: Annotated[int, Field(ge=1, le=5)]
    seen: Annotated[list[Literal["start", "end"]], Field(min_length=1, max_length=3)]
    doubt: Literal["some", "much"] | None
    mood: Mood
    verdict: Literal["yes", "no"]


class Word(BaseModel):
    """An answer of few words: one token for each character."""

    verdict: Literal["certainly, for all that anybody can see", "hardly, for all that anybody can see"]


class Unparsable(BaseModel):
    """Asks for repetitions, of which the engine allows no more than 2,000; any object will do."""

    code: Annotated[str, Field(pattern="^a{2001}$")] = ""


# Structured replies


def test_a_model_that_speaks_at_random_is_held_to_the_schema_word_by_word(local, asked):
    found = [asked(local(params={"max_tokens": 1000, "seed": seed}), Opinion) for seed in range(6)]
    assert [[one.error for one in judgment.calls] for judgment in found] == [[None]] * 6
    assert len({judgment.answer.reason for judgment in found}) > 1  # by chance, and not by heart


def test_a_schema_that_the_engine_cannot_use_is_left_out_from_then_on(local, sample):
    judge = local()

    async def ask():
        return [await judge.ask(GOAL, sample, Unparsable) for _ in range(2)]

    first, second = asyncio.run(ask())
    assert first.calls[0].error == "FormatError"
    assert "FormatError" not in [one.error for one in (*first.calls[1:], *second.calls)]


@pytest.mark.parametrize("form", ["Well: {}. So it is.", "```json\n{}\n```"])
def test_a_model_that_is_held_to_nothing_is_read_all_the_same(local, asked, form):
    answer = Word(verdict="certainly, for all that anybody can see")
    said = form.replace("{}", answer.model_dump_json())
    judge = local(params={"grammar": f"root ::= {json.dumps(said)}"})  # which the engine heeds if nothing else holds it
    judge._schema_support.output_mode = "text"
    judgment = asked(judge, Word)
    assert judgment.answer == answer
    assert [one.error for one in judgment.calls] == [None]


# Refusals


def test_a_conversation_that_is_too_long_is_not_asked_for_again_but_by_another_judge(local):
    long = Sample.of([HumanMessage("Hello! " * 2_000)])
    with ledger() as calls, pytest.raises(ContextError, match=r"request \(\d+ tokens\) exceeds the available context"):
        asyncio.run(local().ask(GOAL, long, Word))
    assert [one.error for one in calls] == ["ContextError"]
    answer = Word(verdict="hardly, for all that anybody can see")
    larger = ScriptedJudge([answer])
    judgment = asyncio.run(local(fallback=(larger,)).ask(GOAL, long, Word))
    assert judgment.answer == answer
    assert [(one.judge, one.error) for one in judgment.calls] == [
        ("openai/random", "ContextError"),
        ("scripted/judge", None),
    ]


def test_a_reply_that_is_cut_off_is_given_twice_the_room_once(local, asked):
    judgment = asked(local(params={"max_tokens": 48}), Word)
    assert [one.error for one in judgment.calls] == ["TruncatedError", None]
    with ledger() as calls, pytest.raises(TruncatedError):
        asked(local(params={"max_tokens": 10}), Word)
    assert [one.error for one in calls] == ["TruncatedError"] * 2
    assert [one.usage.output_tokens for one in calls] == [10, 20]


def test_a_reply_that_does_not_end_is_given_up_in_time_and_the_engine_goes_on(local, asked):
    judge = local(params={"ignore_eos": True}, timeout=0.1, attempts=1)
    judge._schema_support.output_mode = "text"
    with pytest.raises(LostError, match=r"no reply within 0.1 s"):
        asked(judge, Word)
    assert [one.error for one in asked(local(), Word).calls] == [None]


# What a reply carries


def test_logprobs_come_with_the_answer_where_they_are_asked_for(local, asked):
    judgment = asked(local(params={"logprobs": True, "top_logprobs": 3}), Word)
    assert judgment.answer.verdict in "".join(one.token for one in judgment.logprobs)
    for one in judgment.logprobs:
        assert one.logprob <= 0
        assert len(one.top_logprobs) == 3
        assert 0 < sum(math.exp(other.logprob) for other in one.top_logprobs) <= 1
    assert asked(local(), Word).logprobs is None


def test_what_is_asked_again_about_a_conversation_is_read_from_the_engines_own_cache(local, sample):
    judge = local()

    async def ask():
        return [await judge.ask(GOAL, sample, Word) for _ in range(2)]

    _, second = asyncio.run(ask())
    [usage] = [one.usage for one in second.calls]
    bytes_sent = sum(len(turn.content.encode()) for turn in GOAL.fill(sample).messages)
    assert usage.input_tokens > bytes_sent  # a token for each, and the marks of who speaks
    assert usage.input_tokens - usage.cached_tokens < bytes_sent / 10
    assert usage.output_tokens > len(second.answer.model_dump_json())  # and one for the end


# Repeats and what is kept


def test_a_seed_makes_a_draw_reproducible_and_each_draw_has_its_own(local, sample, tmp_path):
    async def repeat(judge):
        found = []
        for index in range(5):
            with independent_repeat(index, 5):
                found.append((await judge.ask(GOAL, sample, Opinion)).answer)
        return found

    kept = tmp_path / "cache.sqlite"
    params = {"max_tokens": 1000, "seed": 7, "cache_prompt": False}  # what the engine caches, it rounds otherwise
    judges = [local(params=params, cache_mode=mode, cache=kept) for mode in ("read_write", "off")]
    first, again = (asyncio.run(repeat(judge)) for judge in judges)
    assert first == again
    assert len({answer.model_dump_json() for answer in first}) == 5
    replies = ReplyDatabase(kept)
    assert len({(parts["repeat"], parts["params"]) for parts in (line.digests for line in replies.recorded())}) == 5
    replies.close()


# Whole runs


def test_every_sample_of_a_run_is_scored_or_failed_for_a_reason_that_has_a_name(local, sample):
    judge = local(concurrency=8)
    answerable = AgentGoalAccuracyWithoutReference(judge), TopicAdherence(judge), PromptScorer("tone", judge)
    scorers = [*answerable, AgentGoalAccuracyWithReference(judge)]
    messages = sample.trace.messages
    numbered = [Trace(messages=[*messages, HumanMessage(f"{number}")]) for number in range(5)]
    samples = [sample.model_copy(update={"id": str(number), "trace": one}) for number, one in enumerate(numbered)]
    scores = [row.score for row in run(samples, scorers)]
    assert len(scores) == 20
    for score in scores:
        assert score.error in (None, "ReplyError", "TruncatedError"), score.reason
        assert all(call.usage.output_tokens for call in score.calls)
        assert len(score.calls) <= 4  # twice too long, and its repair
    answered = {score.scorer for score in scores if score.status in ("scored", "skipped")}
    assert answered >= {one.name for one in answerable}  # by chance it lists nothing, which a reference forbids
