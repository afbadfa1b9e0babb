"""Questions asked together: one request for the scorers of a sample, and never an answer to another question."""

import asyncio
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judgekit import compare, plan, resume, run
from judgekit.errors import ContextError, JudgekitError, OverloadError, RefusalError, RejectedError
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Reply, Request, TokenLogprob
from judgekit.judges.together import MOST_QUESTIONS, share_call
from judgekit.runs.results import Run
from judgekit.runs.runner import Task, score_tasks
from judgekit.score import JudgeCall, Score, ledger
from judgekit.scorers.criteria import WeightedCriteria
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.judged import JudgedScorer
from judgekit.scorers.pairwise import Pairwise
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scorers.selective import Selective
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import scorer, signature
from judgekit.traces.message import AIMessage, HumanMessage, Usage
from judgekit.traces.sample import Sample

SCALE = (("yes", 1.0), ("no", 0.0))
PRICE = Price(1, 10)


class Answer(BaseModel):
    """What the tests' own scorers ask for."""

    tag: str


def prompt(name: str, *inputs: str, **changes: Any) -> Prompt:
    """A question that names itself, and nothing else does."""
    words = f"Is <{name}> so?" + "".join(f"\n{{{{ {one} }}}}" for one in inputs)
    return Prompt(name, name, ("conversation", *inputs), "", "You judge.", words, scale=SCALE, **changes)


def tags(text: str) -> list[str]:
    return re.findall(r"Is <(.*?)> so\?", text)


def conversation(text: str) -> str:
    return re.findall(r"Hello number (\w+)", text)[0]


@dataclass
class Tagging:
    """A model that answers each question with the question's own name, unless something is to go wrong.

    ``faults`` gives the reply to the names of the questions of a request, by their keys, if it is not a good one.
    """

    faults: Callable[[dict[str, str], dict[str, Any]], Any] = lambda named, good: good
    identity: str = "tagging"
    requests: list[Request] = field(default_factory=list)
    tokens: int = 0
    dollars: list[float] = field(default_factory=list)
    logprobs: bool = False

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        await asyncio.sleep(0)
        user = request.messages[1].content
        of = conversation(user)
        if request.questions == 1:
            (name,) = tags(user)
            text = self.faults({"": name}, {"": self.good(request.schema, name, of)})
            text = text.get("") if isinstance(text, dict) else text
        else:
            sections = re.split(r"^# Question (q\d+)$", user, flags=re.MULTILINE)[1:]
            named = {key: tags(words)[0] for key, words in zip(sections[::2], sections[1::2], strict=True)}
            assert len(named) == request.questions == len(tags(user))
            parts = {key: self.good(self.part(request.schema, key), name, of) for key, name in named.items()}
            text = self.faults(named, parts)
        if isinstance(text, Exception):
            raise text
        usage = Usage(input_tokens=len(user), output_tokens=7, cached_tokens=3)
        self.tokens += len(user) + 7
        self.dollars.append(PRICE.of(usage) or 0)
        if isinstance(text, Reply):
            return text.model_copy(update={"usage": usage, "cost_usd": self.dollars[-1]})
        whole = text if isinstance(text, str) else json.dumps(text)
        tokens = [TokenLogprob(token=token, logprob=-0.1) for token in re.findall(r"\w+|\W", whole)]
        return Reply(
            text=whole, model="m", usage=usage, cost_usd=self.dollars[-1], logprobs=tokens if self.logprobs else None
        )

    @staticmethod
    def part(schema: Any, key: str) -> Any:
        part = schema["properties"][key]
        return schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part

    @staticmethod
    def good(schema: Any, name: str, of: str) -> Any:
        if "tag" in schema["properties"]:
            return {"tag": f"{name} {of}"}
        return {"reason": f"{name} {of}", "evidence": [1], "verdict": "yes"}

    async def aclose(self) -> None:
        pass


def samples(number: int = 1) -> list[Sample]:
    return [Sample.of([HumanMessage(f"Hello number {at}"), AIMessage("Hi")], id=str(at)) for at in range(number)]


def together(client: Any, **settings: Any) -> Judge:
    return Judge("any/m", client=client, together=True, **settings)


def prompted(judge: Judge, *names: str) -> list[PromptScorer]:
    return [PromptScorer(prompt(name), judge) for name in names]


def rows(scored: Run) -> Mapping[str, Score]:
    return {row.scorer: row.score for row in scored}


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_scorers_of_a_sample_ask_in_one_request_in_the_order_of_the_run():
    model = Tagging()
    scored = run(samples(3), prompted(together(model), "b", "a", "c"))
    assert [tags(request.messages[1].content) for request in model.requests] == [["b", "a", "c"]] * 3
    for row in scored:
        assert row.score.reason == f"{row.scorer} {row.sample_id}"
        (call,) = row.score.calls
        assert [name.partition("@")[0] for name in call.together] == ["b", "a", "c"]
        assert call.prompt.startswith(f"{row.scorer}@")
        assert row.score.details["asked_together"] == list(call.together)
    assert sum(line.requests for line in scored.summary) == pytest.approx(3)
    assert sum(line.tokens for line in scored.summary) == model.tokens
    assert fsum(row.score.usd_paid for row in scored) == fsum(model.dollars)


def test_the_words_are_those_of_each_question_alone_and_shared_inputs_stand_once(sample):
    judge = together(Tagging())
    client = judge.client
    scorers = [AgentGoalAccuracyWithReference(judge), TopicAdherence(judge), PromptScorer("answer_correctness", judge)]

    async def refuse(request):
        client.requests.append(request)
        raise JudgekitError("nothing")

    client.complete = refuse
    run([sample], scorers)
    (request,) = client.requests
    system, user = request.messages
    assert system.content == load_prompt("tone").system
    assert user.content.count(sample.trace.render()) == 1
    assert user.content.count("reference begins]") == 1
    assert user.content.count("topics begins]") == 1
    assert "stands for material that an earlier question shows" in user.content
    assert "Answer 3 separate questions about this recording, in this order." in user.content
    for name in ("agent_goal_with_reference", "topic_adherence", "answer_correctness"):
        for line in re.split(r"\{[{%].*?[%}]\}", load_prompt(name).question):
            assert line in user.content
    assert [*request.schema["properties"]] == ["q1", "q2", "q3"]


def test_at_most_twelve_questions_stand_in_a_request():
    model = Tagging()
    names = [f"n{at}" for at in range(MOST_QUESTIONS + 2)]
    scored = run(samples(), prompted(together(model), *names))
    assert [request.questions for request in model.requests] == [12, 2]
    assert {name: score.reason for name, score in rows(scored).items()} == {name: f"{name} 0" for name in names}


@pytest.mark.parametrize(
    "fault",
    [
        lambda parts: {**parts, "q2": {"reason": 3}},
        lambda parts: {**parts, "q2": "I will not answer this."},
        lambda parts: {key: part for key, part in parts.items() if key != "q2"},
        lambda parts: {**{key: part for key, part in parts.items() if key != "q2"}, "Q2": parts["q2"]},
        lambda parts: {**parts, "q2": {**parts["q2"], "evidence": [99]}},
        lambda parts: json.dumps({"q1": parts["q1"], "q3": parts["q3"]})[:-1],
    ],
)
def test_a_part_that_cannot_be_used_is_asked_again_alone(fault):
    model = Tagging(lambda named, parts: fault(parts) if len(named) > 1 else parts)
    scored = run(samples(), prompted(together(model), "a", "b", "c"))
    assert [tags(request.messages[1].content) for request in model.requests] == [["a", "b", "c"], ["b"]]
    assert len(model.requests[1].messages) == 2  # it is no correction
    assert [request.is_follow_up for request in model.requests] == [False, True]  # which goes before new questions
    assert {name: score.reason for name, score in rows(scored).items()} == {name: f"{name} 0" for name in "abc"}
    assert [len(score.calls) for score in rows(scored).values()] == [1, 2, 1]
    assert "asked_together" not in rows(scored)["b"].details
    assert sum(line.tokens for line in scored.summary) == model.tokens


@pytest.mark.parametrize(
    "whole",
    [
        Reply(text="I will not.", finish_reason="refusal"),
        Reply(text="", finish_reason="filter"),
        Reply(text='{"q1": {', finish_reason="length"),
        "{}",
        "no JSON",
        '{"first": {}, "second": {}}',
    ],
)
def test_after_a_reply_that_is_unusable_as_a_whole_each_is_asked_alone(whole):
    model = Tagging(lambda named, parts: whole if len(named) > 1 else parts)
    scored = run(samples(), prompted(together(model, params={"max_tokens": 100}), "a", "b"))
    assert tags(model.requests[0].messages[1].content) == ["a", "b"]
    assert sorted(tags(request.messages[1].content)[0] for request in model.requests[1:]) == ["a", "b"]
    assert {name: score.reason for name, score in rows(scored).items()} == {name: f"{name} 0" for name in "ab"}
    assert sum(line.tokens for line in scored.summary) == model.tokens
    assert sum(line.requests for line in scored.summary) == pytest.approx(3)


def test_an_error_of_ones_own_check_fails_that_score_alone():
    def check(answer, sample):
        raise TypeError("a mistake")

    broken = Asker(together(model := Tagging()), [prompt("a")], check=check)
    scored = run(samples(), [broken, *prompted(broken.judge, "b")])
    assert [rows(scored)[name].error for name in ("asker", "b")] == ["TypeError", None]
    assert rows(scored)["b"].reason == "b 0"
    assert len(model.requests) == 2


def test_the_output_limit_is_the_sum():
    model = Tagging()
    run(samples(), prompted(together(model, params={"max_tokens": 50}), "a", "b", "c"))
    run(samples(), prompted(together(model, budget={"tokens": 10**6}, max_output_tokens=70), "d", "e"))
    assert [request.output_limit for request in model.requests] == [150, 140]


def test_a_reply_is_stored_if_any_part_is_usable_and_read_from_the_cache():
    model = Tagging(lambda named, parts: {"q1": parts["q1"]} if len(named) > 1 else parts)
    run(samples(), prompted(together(model), "a", "b", "c"))
    before = len(model.requests)
    again = run(samples(), prompted(together(model), "a", "b", "c"))
    assert len(model.requests) == before == 3
    assert all(call.cached for row in again for call in row.score.calls)
    assert sum(line.tokens for line in again.summary) == 0
    assert {name: score.reason for name, score in rows(again).items()} == {name: f"{name} 0" for name in "abc"}
    replayed = run(samples(), prompted(together(model, cache_mode="replay"), "a", "b", "c"))
    assert {name: score.reason for name, score in rows(replayed).items()} == {name: f"{name} 0" for name in "abc"}


def test_replies_to_questions_asked_alone_and_together_are_never_used_for_each_other():
    model = Tagging()
    for judge in (Judge("any/m", client=model), together(model), together(model)):
        run(samples(), prompted(judge, "a"))
    run(samples(), prompted(together(model), "a", "b"))
    assert [request.questions for request in model.requests] == [1, 1, 2]
    assert len({request.key for request in model.requests}) == 3


def test_the_signature_says_that_it_is_asked_together_and_nothing_of_the_company():
    model = Tagging()
    alone, joint = (PromptScorer(prompt("a"), Judge("any/m", client=model, together=on)) for on in (False, True))
    assert signature(alone) != signature(joint)
    assert signature(joint) == signature(PromptScorer(prompt("a"), together(model)))
    assert signature(alone) == signature(PromptScorer(prompt("a"), Judge("any/m", client=model)))


def test_confidence_is_from_the_tokens_of_the_part_alone():
    verdicts = {"a": "yes", "b": "no"}

    def answer(named, parts):
        return {key: {**part, "verdict": verdicts[named[key]]} for key, part in parts.items()}

    model = Tagging(answer, logprobs=True)
    inner = model.complete

    async def complete(request):
        reply = await inner(request)
        sure = {"yes": 0.0, "no": -0.5}
        tokens = [token.model_copy(update={"logprob": sure.get(token.token, 0.0)}) for token in reply.logprobs]
        return reply.model_copy(update={"logprobs": tokens})

    model.complete = complete
    scored = rows(run(samples(), prompted(together(model, cache_mode="off"), "a", "b")))
    assert scored["a"].confidence == 1
    assert scored["b"].confidence == pytest.approx(0.6065, abs=1e-4)


def test_there_is_no_confidence_if_the_tokens_of_parts_cannot_be_told_apart():
    model = Tagging()
    inner = model.complete

    async def complete(request):
        reply = await inner(request)
        return reply.model_copy(update={"logprobs": (TokenLogprob(token=reply.text, logprob=0.0),)})

    model.complete = complete
    scored = rows(run(samples(), prompted(together(model, cache_mode="off"), "a", "b")))
    assert [score.confidence for score in scored.values()] == [None, None]


def test_what_needs_independent_answers_is_asked_apart():
    model = Tagging()
    judge = together(model)
    other = Judge("any/n", client=model)
    first, second = prompted(judge, "a")[0], prompted(other, "b")[0]
    scorers = [
        *prompted(judge, "c", "d"),
        Repeat(first, 2),
        Panel([prompted(judge, "e")[0], second]),
        Pairwise("Is <f> so?", judge),
        WeightedCriteria({"g": 0.5, "h": 0.5}, {"g": "Is <g> so?", "h": "Is <h> so?"}, judge, separate_requests=True),
    ]
    pair = samples(1)[0]
    pair = replace_baseline(pair)
    run([pair], scorers)
    joint = [tags(request.messages[1].content) for request in model.requests if request.questions > 1]
    assert joint == [["c", "d"]]


def replace_baseline(sample: Sample) -> Sample:
    other = Sample.of([HumanMessage("Hello number 0"), AIMessage("Go away")]).trace
    return sample.model_copy(update={"baseline": other})


def test_a_recording_that_is_shown_in_another_way_is_asked_about_by_itself():
    model = Tagging()
    long = together(model)
    short = together(model, conversation_tokens=100)
    run(samples(), [*prompted(long, "a", "b"), *prompted(short, "c", "d")])
    assert sorted(tags(request.messages[1].content) for request in model.requests) == [["a", "b"], ["c", "d"]]


def test_a_scorer_in_a_thread_with_an_event_loop_of_its_own_asks_apart():
    model = Tagging()
    judge = together(model)

    @scorer(judge=judge, prompts=[prompt("a")])
    def in_thread(sample):
        return float(asyncio.run(judge.ask(prompt("a"), sample, Answer)).answer.tag == f"a {sample.id}")

    scored = run(samples(), [in_thread, *prompted(judge, "b", "c")])
    assert {name: score.value for name, score in rows(scored).items()} == {"in_thread": 1, "b": 1, "c": 1}
    assert sorted(request.questions for request in model.requests) == [1, 2]


def test_resume_asks_the_same_group_from_the_cache_and_writes_only_missing_rows(tmp_path):
    model = Tagging()
    judge = together(model)
    scorers = prompted(judge, "a", "b", "c")
    store = tmp_path / "runs.sqlite"
    scored = run(samples(2), scorers, store=store)
    with scored.store.transaction() as db:
        db.execute("DELETE FROM scores WHERE sample = 1 AND scorer = 1")
        db.execute("DELETE FROM results")
    again = resume(Run(scored.store, scored.record), data=samples(2), scorers=scorers)
    assert len(model.requests) == 2
    assert len([*again]) == 6
    (row,) = [row for row in again if row.index == 1 and row.scorer == "b"]
    assert row.score.reason == "b 1"
    assert [call.cached for call in row.score.calls] == [True]
    assert [len(again_row.score.calls) for again_row in again] == [1] * 6
    resume(again, data=samples(2), scorers=scorers)
    assert len(model.requests) == 2


def test_resume_without_a_cached_reply_asks_the_whole_group_and_the_missing_score_pays(tmp_path):
    model = Tagging()
    scorers = prompted(together(model, cache_mode="off"), "a", "b", "c")
    scored = run(samples(1), scorers, store=tmp_path / "runs.sqlite")
    with scored.store.transaction() as db:
        db.execute("DELETE FROM scores WHERE scorer = 1")
        db.execute("DELETE FROM results")
    again = resume(Run(scored.store, scored.record), data=samples(1), scorers=scorers)
    assert [request.questions for request in model.requests] == [3, 3]
    (call,) = rows(again)["b"].calls
    assert call.share is None
    assert len(call.together) == 3
    assert call.tokens_paid == model.tokens // 2


@dataclass(frozen=True)
class Asker(JudgedScorer):
    """Asks its questions one after the other or at the same time, with pauses, and may fail, be canceled or give up."""

    judge: Judge
    questions: Sequence[Prompt]
    pauses: Sequence[int] = (0, 0, 0, 0)
    at_once: bool = False
    ends: str = "well"
    check: Any = None
    name: str = "asker"

    @property
    def prompts(self):
        return tuple(self.questions) or (prompt("none"),)

    async def _asked(self, question: Prompt, sample: Sample) -> None:
        found = await self.judge.ask(question, sample, Answer, self.check)
        assert found.answer.tag == f"{question.name} {sample.id}"

    async def ascore(self, sample: Sample, /) -> Score:
        async def work():
            if self.at_once:
                await asyncio.gather(*(self._asked(question, sample) for question in self.questions))
                return
            for question, pause in zip(self.questions, self.pauses, strict=False):
                for _ in range(pause):
                    await asyncio.sleep(0)
                await self._asked(question, sample)

        with ledger() as calls:
            if self.ends == "canceled":
                task = asyncio.ensure_future(work())
                for _ in range(self.pauses[-1]):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    task.result()
            else:
                await work()
            if self.ends == "badly":
                raise RuntimeError("failed")
            if self.ends == "by itself":
                raise asyncio.CancelledError
        return Score.scored(self.name, 1.0, calls=calls)


@st.composite
def askers(draw, judge):
    def asker(number: int) -> Asker:
        named = [prompt(f"n{number}_{at}") for at in range(draw(st.integers(0, 3)))]
        pauses = draw(st.lists(st.integers(0, 6), min_size=4, max_size=4))
        ends = draw(st.sampled_from(["well", "well", "badly", "canceled", "by itself"]))
        return Asker(judge, named, pauses, draw(st.booleans()), ends, name=f"asker_{number}")

    return [asker(number) for number in range(draw(st.integers(1, 6)))]


@given(st.data())
def test_no_score_is_of_another_question_whatever_scorers_and_replies_do(data):
    """They ask from 0 to 3 times, fail, are canceled; replies lack parts, swap their order, or are no answers at all."""
    dice = random.Random(data.draw(st.integers()))  # noqa: S311 - no secret

    def faulty(named, parts):
        drawn = dice.random()
        if drawn < 0.1:
            return dice.choice(
                ["", "{}", Reply(text="no", finish_reason="refusal"), Reply(text="{", finish_reason="length")]
            )
        kept = [key for key in parts if dice.random() < 0.9]
        dice.shuffle(kept)
        return {key: {"wrong": 1} if dice.random() < 0.1 else parts[key] for key in kept}

    model = Tagging(faulty)
    judge = together(model, cache_mode=data.draw(st.sampled_from(["off", "read_write"])))
    scorers = data.draw(askers(judge))
    wanted = [scorer for scorer in scorers if data.draw(st.integers(0, 3))]  # the others have their scores already
    emitted = []
    ledgers = []

    async def work():
        scoring = score_tasks(
            (Task(number, sample, wanted) for number, sample in enumerate(samples(3))),
            scorers,
            emitted.append,
            concurrency=data.draw(st.integers(1, 3)),
            companies=[scorers],
            begin=lambda index, name, calls: ledgers.append(calls),
        )
        await asyncio.wait_for(scoring, 30)

    asyncio.run(work())
    assert len(emitted) == 3 * len(wanted)
    alone = {tags(request.messages[1].content)[0] for request in model.requests if request.questions == 1}
    assert alone <= {question.name for scorer in wanted for question in scorer.questions}
    for row in emitted:
        assert row.score.error != "AssertionError", row.score.reason
    paid = [call for calls in ledgers for call in calls if not call.cached]
    assert sum(call.tokens_paid or 0 for call in paid) == model.tokens
    assert sum(call.requests for call in paid) == pytest.approx(len(model.requests))
    assert fsum(call.cost_usd or 0 for call in paid) == pytest.approx(fsum(model.dollars))


@given(
    st.integers(1, MOST_QUESTIONS),
    st.integers(0, 10**7),
    st.integers(0, 10**5),
    st.floats(0, 1e6) | st.none(),
)
def test_shares_add_up_to_the_request(number, input_tokens, output_tokens, cost):
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cached_tokens=input_tokens // 3)
    call = JudgeCall(judge="j", prompt="together@1", usage=usage, cost_usd=cost, saved_usd=cost)
    shares = [share_call(call, at, number, f"p{at}", ["p"] * number) for at in range(number)]
    assert sum(share.usage.input_tokens for share in shares) == input_tokens
    assert sum(share.usage.output_tokens for share in shares) == output_tokens
    assert sum(share.tokens_paid for share in shares) == call.tokens_paid
    assert all(share.usage.cached_tokens <= share.usage.input_tokens for share in shares)
    assert all(share.usage.reasoning_tokens is None for share in shares)
    assert fsum(share.requests for share in shares) == pytest.approx(1)
    if cost is not None:
        assert fsum(share.cost_usd for share in shares) == cost
        assert fsum(share.saved_usd for share in shares) == cost


@pytest.mark.parametrize("is_together", [False, True])
@pytest.mark.parametrize("is_cached", [False, True])
def test_a_plan_has_both_ways_to_ask(is_together, is_cached):
    client = Tagging()

    def scorers(on):
        judge = Judge("any/m", client=client, together=on, price=PRICE)
        return [*prompted(judge, "a", "b", "c"), Repeat(prompted(judge, "d")[0], 2)]

    if is_cached:
        run(samples(2), scorers(is_together)[:3])
        client.requests.clear()
    planned, other = (plan(samples(4), scorers(on)) for on in (is_together, not is_together))
    assert client.requests == []
    assert planned.requests == (2 if is_cached else 4) * (1 if is_together else 3) + 8
    assert planned.requests + planned.other_way.requests == pytest.approx(other.requests)
    assert planned.tokens + planned.other_way.tokens == other.tokens
    assert planned.cost_usd + planned.other_way.usd == pytest.approx(other.cost_usd)
    names = [line.partition(":")[0] for line in planned.ways()]
    assert names == ["asked together", "each question by itself"][:: 1 if is_together else -1]
    assert [line.partition(": ")[2] for line in planned.ways()] == [line.partition(": ")[2] for line in other.ways()][
        ::-1
    ]


def test_a_plan_whose_questions_do_not_go_together_has_one_way():
    judge = together(Tagging())
    assert plan(samples(2), prompted(judge, "a")).other_way is None
    assert plan(samples(2), [Repeat(prompted(judge, "a")[0], 2), *prompted(judge, "b")]).other_way is None


def test_a_comparison_warns_if_questions_were_asked_in_another_company_or_way():
    model = Tagging()
    judge = together(model)
    runs = [
        run(samples(2), prompted(judge, "a", "b")),
        run(samples(2), prompted(judge, "a", "b", "c")),
        run(samples(2), prompted(Judge("any/m", client=model), "a", "b")),
    ]

    def told(first, second):
        return [warning for warning in compare(first, second).warnings if warning.startswith("a: ")]

    assert told(runs[0], runs[0]) == []
    (company,) = told(runs[0], runs[1])
    assert "was not asked together with the same ones in both runs" in company
    assert re.search(r"only A has a@\w+, b@\w+; only B has a@\w+, b@\w+, c@\w+$", company)
    (way,) = told(runs[0], runs[2])
    assert "the scorer changed between the runs" in way
    assert "together was True and is None" in way


def test_a_joint_request_has_little_beside_the_recording_and_its_questions(sample):
    """At most 1.15 times their tokens, even if the recording is short."""
    client = Tagging(lambda named, parts: Reply(text="no", finish_reason="refusal"))
    client.complete = refusing(client)
    names = ["task_completion", "tool_result_use", "step_efficiency", "user_frustration"]
    for on in (False, True):
        judge = Judge("any/m", client=client, together=on)
        goal = AgentGoalAccuracyWithoutReference(judge)
        run([sample], [goal, *(PromptScorer(name, judge) for name in names)])
    *alone, joint = client.requests[:6]
    system, _ = alone[0].messages
    recording = (len(system.content) + len(sample.trace.render())) // 4
    questions = sum(request.input_tokens - recording for request in alone)
    assert joint.questions == len(alone) == 5
    assert recording + questions < joint.input_tokens <= 1.15 * (recording + questions)


def refusing(client):
    async def complete(request):
        client.requests.append(request)
        raise RefusalError("no")

    return complete


@pytest.mark.usefixtures("no_waits")
def test_a_fallback_is_asked_each_question_by_itself():
    down, other = Tagging(lambda named, parts: OverloadError("too busy")), Tagging()
    judge = together(down, attempts=1, fallback=[Judge("any/other", client=other)])
    scored = run(samples(), prompted(judge, "a", "b"))
    assert [request.questions for request in down.requests] == [2]
    assert [request.questions for request in other.requests] == [1, 1]
    assert {name: score.reason for name, score in rows(scored).items()} == {name: f"{name} 0" for name in "ab"}


def test_a_request_that_is_rejected_fails_its_scores_and_is_not_asked_alone_in_silence():
    model = Tagging(lambda named, parts: RejectedError("max_tokens is too large") if len(named) > 1 else parts)
    scored = run(samples(), prompted(together(model), "a", "b"))
    assert [score.error for score in rows(scored).values()] == ["RejectedError"] * 2
    assert len(model.requests) == 1


def test_a_request_that_is_too_long_is_asked_in_parts():
    model = Tagging(lambda named, parts: ContextError("too long") if len(named) > 1 else parts)
    scored = run(samples(), prompted(together(model), "a", "b"))
    assert {name: score.reason for name, score in rows(scored).items()} == {name: f"{name} 0" for name in "ab"}
    assert len(model.requests) == 3


def test_what_a_selective_scorer_asks_first_goes_together_and_its_escalation_alone():
    model = Tagging(logprobs=True)
    judge = together(model, cache_mode="off", params={"logprobs": True})
    unsure, second, other = prompted(judge, "a", "b", "c")
    scored = run(samples(), [Selective(unsure, 1.0, second), other])
    assert [tags(request.messages[1].content) for request in model.requests] == [["a", "c"], ["b"]]
    assert rows(scored)["a"].reason.endswith("b 0")


def test_samples_that_cannot_be_compared_fail_one_score_and_keep_no_other_waiting(monkeypatch):
    def raises(self, other):
        raise ValueError("ambiguous")

    monkeypatch.setattr("judgekit.judges.together.Question.goes_with", raises)
    scored = rows(run(samples(), prompted(together(Tagging()), "a", "b", "c")))
    assert [scored[name].status for name in "abc"] == ["scored", "scored", "failed"]
    assert "ambiguous" in scored["c"].reason
