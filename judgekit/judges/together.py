"""Questions that the scorers of a sample ask a judge together: one request, which answers each of them by itself."""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from math import fsum
from typing import Any, Self, cast

from pydantic import BaseModel, RootModel, create_model, model_validator

from judgekit.errors import ContextError, FilterError, JudgeError, RefusalError, ReplayError, ReplyError, TruncatedError
from judgekit.gathering import Participant
from judgekit.judges.answer import read_answer
from judgekit.judges.decisions import MOST_TYPED_QUESTIONS, join_decisions
from judgekit.judges.prompt import Digests, FilledPrompt, Prompt, ask_about, shared_text
from judgekit.judges.request import ChatMessage, Reply, Request, TokenLogprob
from judgekit.judges.schema import strict_schema
from judgekit.judges.settings import JudgeSettings
from judgekit.judges.template import fill_question
from judgekit.score import JudgeCall, current_plan, current_repeat, ledger, record_calls
from judgekit.traces.message import JsonObject, Usage
from judgekit.traces.rendering import fence_text
from judgekit.traces.sample import Sample

MOST_QUESTIONS = 12
"""The maximum number of questions in a request, but for those to a decision model."""
_NAMES = tuple(f"q{number}" for number in range(1, MOST_TYPED_QUESTIONS + 1))
_ASKED_ALONE = (ContextError, FilterError, RefusalError, ReplayError, ReplyError, TruncatedError)
"""Errors of a request with several questions after which each is asked by itself."""
_FENCE = " begins]"


@dataclass(eq=False)
class Question:
    """A question of a scorer, which may be asked together with others about the same sample.

    Attributes:
        judge: The settings of the judge.
        complete: Sends a request to the judge.
        reply: Sends it, and if its reply cannot be used, asks the judge once to correct it.
        read: Reads the recordings of questions that go together, if they are too long.
        rebuilt: Returns the question with digests in place of recordings, by the name of the input.
        prompt: The prompt.
        sample: The sample, as the judge sees it.
        answer: The model of the reply.
        filled: The prompt filled by the sample.
        request: The request with this question alone.
        too_long: The inputs that are recordings too long for one request, and have to be read in parts before.
        reading: The numbers of findings, if recordings were read in parts.
        is_needed: Whether its answer is needed; else it only completes the request of all questions.
        joint: The request that it is part of, once that is sent; ``None`` to ask it alone.
    """

    judge: JudgeSettings
    complete: Callable[[Request], Awaitable[Reply]]
    reply: Callable[[Request], Awaitable[Reply]]
    read: "Callable[[Sequence[Question]], Awaitable[None]]"
    rebuilt: "Callable[[Digests], Question]"
    prompt: Prompt
    sample: Sample
    answer: type[BaseModel]
    filled: FilledPrompt
    request: Request
    too_long: Sequence[str] = ()
    reading: dict[str, int] = field(default_factory=dict[str, int])
    is_needed: bool = True
    joint: "asyncio.Future[JointRequest | None]" = field(init=False)
    context: Context = field(default_factory=copy_context, init=False)

    def goes_with(self, other: "Question") -> bool:
        """Return whether both are about the same recording, shown in the same way to the same judge."""
        return (
            self.filled.conversation == other.filled.conversation
            and self.filled.messages[0] == other.filled.messages[0]
            and all(getattr(self.judge, name) == getattr(other.judge, name) for name in type(self.judge).model_fields)
            and self.sample == other.sample
        )


async def ask_together(question: Question, participant: Participant) -> Reply | None:
    """Return the part of a joint reply that answers a scorer's question; ``None`` if it is to be asked alone.

    Raises:
        CancelledError: The score of its scorer is not needed.
        JudgeError: The joint request failed, and so would the question alone.
    """
    is_planned = current_plan.get() is not None  # a plan compares both ways
    question.is_needed, is_added = participant.is_needed, False
    if participant.is_in_loop and (question.judge.together or is_planned) and not current_repeat.get():
        question.joint = asyncio.get_running_loop().create_future()
        is_added = participant.gathering.add(participant.position, question, _send)
    else:
        participant.settle()
    if not question.is_needed:
        raise asyncio.CancelledError
    if not is_added:
        return None
    try:
        await asyncio.wait((question.joint,))
    except asyncio.CancelledError:
        question.is_needed = False
        if question.joint.done() and (joint := question.joint.result()) is not None:
            await joint.leave(question)
        raise
    joint = question.joint.result()
    return None if joint is None else await joint.part(question)


def _send(questions: Sequence[Question]) -> None:
    """Send questions about one sample, those that go together in one request."""
    groups: list[list[Question]] = []
    try:
        for question in questions:
            group = next((group for group in groups if question.goes_with(group[0])), None)
            if group is None:
                groups.append([question])
            else:
                group.append(question)
        for group in groups:
            for some in _batches(group):
                is_joint = len(some) > 1 and any(question.is_needed for question in some)
                joint = JointRequest(some) if is_joint else None
                for question in some:
                    question.joint.set_result(joint)
    finally:
        for question in questions:
            if not question.joint.done():  # samples that cannot be compared
                question.joint.set_result(None)


def _batches(group: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """Yield questions in groups that fit into a request."""
    batch: list[Question] = []
    size = 0
    for question in group:
        typed = len(question.request.typed_questions)
        if size + (typed or 1) > (MOST_TYPED_QUESTIONS if typed else MOST_QUESTIONS):
            yield batch
            batch, size = [], 0
        batch.append(question)
        size += typed or 1
    yield batch


class JointRequest:
    """A request with several questions under way, and the scorers that wait for its reply and share its cost.

    If all stop waiting, the request is canceled, and the last one pays.
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self._questions = questions
        self._payers = [question for question in questions if question.is_needed]
        self._calls: list[JudgeCall] = []
        first = questions[0]
        self._task = asyncio.create_task(self._replies(), context=first.context)

    async def part(self, question: Question) -> Reply | None:
        """Return the part of the reply that answers a question; ``None`` if it is to be asked alone."""
        try:
            await asyncio.wait((self._task,))
        except asyncio.CancelledError:
            await self.leave(question)
            raise
        self._pay(question)
        replies = self._task.result()
        if (other_way := OtherWay.of_plan()) is not None and not question.judge.together:
            with ledger() as calls:
                try:
                    await question.read([question])
                    return await question.complete(question.request)
                finally:
                    other_way.add(calls, -1)
        if question not in replies:
            question.request = replace(question.request, is_follow_up=True)
        return replies.get(question)

    async def leave(self, question: Question) -> None:
        """Stop waiting: the others pay, or if there are none, the request is canceled."""
        if not self._task.done():
            if len(self._payers) > 1:
                self._payers.remove(question)
                return
            self._task.cancel()
            while not self._task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((self._task,))
        if not self._task.cancelled():
            self._task.exception()  # marks the error as retrieved
        self._pay(question)

    def _pay(self, question: Question) -> None:
        """Record the share of a question in the ledgers that are open here."""
        position, together = self._payers.index(question), [each.request.prompt for each in self._questions]
        for call in self._calls:
            record_calls(share_call(call, position, len(self._payers), question.request.prompt, together))

    async def _replies(self) -> Mapping[Question, Reply]:
        """Return the parts of the reply that are answers, by their questions."""
        first = self._questions[0]
        other_way = None if first.request.typed_questions else OtherWay.of_plan()
        if other_way is not None:
            is_together = first.judge.together
            key_parts = first.judge.model_copy(update={"together": not is_together}).request_key_parts
            others = [copy(question) for question in self._questions]
            for other in others:
                other.request = replace(other.request, key_parts=key_parts)
            with ledger(isolated=True) as calls:
                for group in [[other] for other in others] if is_together else [others]:
                    with suppress(JudgeError):
                        await first.read(group)
                        request = join_questions(group) if len(group) > 1 else group[0].request
                        await first.complete(replace(request, key_parts=key_parts))
            other_way.add(calls, 1)
            if not is_together:
                return {}
        with ledger(isolated=True) as self._calls:
            try:
                await first.read(self._questions)
                request = join_questions(self._questions)
                reply = await first.complete(request)
                texts = cast("Mapping[str, str]", request.answer(reply))
            except _ASKED_ALONE:
                if first.request.typed_questions:
                    raise
                return {}
            finally:
                if other_way is not None:
                    other_way.add(self._calls, -1)
        return {
            question: reply.model_copy(
                update={"text": texts[name], "logprobs": _part_logprobs(reply, name, texts[name])}
            )
            for name, question in zip(_NAMES, self._questions, strict=False)
            if name in texts
        }


@dataclass
class OtherWay:
    """The difference if the judges of a plan asked the other way: together if they ask alone, and the reverse.

    Attributes:
        requests: The number of requests more.
        tokens: The number of tokens more.
        usd: The US dollars more; ``None`` if a price is unknown.
    """

    requests: float = 0
    tokens: int = 0
    usd: float | None = 0.0

    @classmethod
    def of_plan(cls) -> Self | None:
        """Return that of the current plan, if there is one."""
        plan = current_plan.get()
        return None if plan is None else cast("Self", plan.setdefault(cls, cls()))

    def add(self, calls: Sequence[JudgeCall], sign: int) -> None:
        """Add or subtract calls."""
        self.requests += sign * sum(call.requests for call in calls)
        self.tokens += sign * sum(call.tokens_paid or 0 for call in calls)
        usd = [call.usd_paid for call in calls]
        self.usd = None if self.usd is None or None in usd else self.usd + sign * fsum(filter(None, usd))


def join_questions(questions: Sequence[Question]) -> Request:
    """Return the request that asks several questions about a sample, each in its own words, with equal inputs once."""
    first, named = questions[0], dict(zip(_NAMES, questions, strict=False))
    if first.request.typed_questions:
        return join_decisions([question.request for question in questions], [*named])
    worded, is_repeated = word_questions(named)
    numbers = ("number", f"{len(questions)}"), ("repeated", "yes" if is_repeated else "")
    opening = fill_question(shared_text("question.together.md"), numbers)
    text = ask_about(first.filled.conversation, "\n\n".join((opening, *worded)))
    schema = strict_schema(
        _joint_model(tuple(question.answer for question in questions)), has_sub_agents=first.filled.has_sub_agents
    )
    digest = hashlib.sha256("\n".join(question.request.prompt for question in questions).encode()).hexdigest()

    def accept(reply: str) -> Mapping[str, str]:
        """Return the parts of a reply that answer their questions, as JSON."""
        answers = read_answer(reply, _Answers).root
        texts: dict[str, str] = {}
        problems: list[str] = []
        for name, question in named.items():
            part = json.dumps(answers.get(name))
            try:
                question.request.accept(part)
            except Exception as error:  # noqa: BLE001 - it concerns this question alone, which is then asked by itself
                problems.append(f"{name}: {error}")
            else:
                texts[name] = part
        if not texts:
            raise ValueError("; ".join(problems))
        return texts

    return replace(
        first.request.with_output_limit(len(questions)),
        messages=(first.request.messages[0], ChatMessage("user", text)),
        images=tuple({image[0]: image for question in questions for image in question.request.images}.values()),
        schema_name="together",
        schema=schema,
        prompt=f"{'+'.join(question.prompt.name for question in questions)}@{digest[:8]}",
        accept=accept,
        questions=len(questions),
        answers=sum(question.request.answers for question in questions),
    )


def word_questions(questions: Mapping[str, Question]) -> tuple[list[str], bool]:
    """Return questions in their words under their names, and whether some inputs stand once for several."""
    shown, repeated = set[str](), set[str]()
    elsewhere = fence_text("recording", "not shown in this request")
    worded: list[str] = []
    for name, question in questions.items():
        inputs = {**question.filled.inputs, **dict.fromkeys(question.too_long, elsewhere)}
        for key, text in inputs.items():
            heading, fence, _ = text.partition(_FENCE)
            inputs[key] = f"{heading} as above]" if text in shown else text
            (repeated if text in shown else shown).update({text} if fence else ())
        worded.append(f"# Question {name}\n{question.prompt.words(inputs)}")
    return worded, bool(repeated)


class _Answers(RootModel[JsonObject]):
    """The answers in a reply by the names of their questions, at least one of them."""

    @model_validator(mode="after")
    def _has_names(self) -> Self:
        if self.root.keys().isdisjoint(_NAMES):
            raise ValueError(f"has no answer under {_NAMES[0]} or another name of a question")
        return self


@cache
def _joint_model(answers: tuple[type[BaseModel], ...]) -> type[BaseModel]:
    fields: dict[str, Any] = dict(zip(_NAMES, answers, strict=False))
    return create_model("Answers", **fields)


def _part_logprobs(reply: Reply, name: str, part: str) -> Sequence[TokenLogprob] | None:
    """Return the tokens of a part of a reply; ``None`` if they cannot be told from those of other parts."""
    tokens = reply.logprobs or ()
    text = "".join(token.token for token in tokens)
    begin = end = 0
    for key in re.finditer(rf'"{name}"\s*:\s*', text):
        with suppress(ValueError):
            written, stop = json.JSONDecoder().raw_decode(text, key.end())
            begin, end = (key.end(), stop) if written == json.loads(part) else (begin, end)
    stops = accumulate(len(token.token) for token in tokens)
    inside = [
        token for token, stop in zip(tokens, stops, strict=True) if stop > begin and stop - len(token.token) < end
    ]
    outside = "".join(token.token for token in inside).replace(text[begin:end], "", 1)
    return None if any(map(str.isalnum, outside)) else inside or None


def share_call(call: JudgeCall, position: int, number: int, prompt: str, together: Sequence[str]) -> JudgeCall:
    """Return the share of the question at a position among those of a request, which all shares add up to.

    Args:
        call: The request.
        position: The position of the question, from 0.
        number: The number of questions that share the request.
        prompt: The prompt of the question.
        together: The prompts of all questions in the request.
    """
    changes: dict[str, object] = {"prompt": prompt, "together": tuple(together)}
    if number > 1:
        changes["share"] = 1 / number
        if (usage := call.usage) is not None:
            counts = usage.model_dump(exclude={"extra"}).items()
            changes["usage"] = Usage(
                **{name: count and (count + number - 1 - position) // number for name, count in counts}
            )
        for name, usd in (("cost_usd", call.cost_usd), ("saved_usd", call.saved_usd)):
            if usd is not None:
                changes[name] = usd / number if position else fsum((usd, *[-usd / number] * (number - 1)))
    return call.model_copy(update=changes)
