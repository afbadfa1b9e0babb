"""Judges: LLMs that scorers ask."""

import asyncio
import sys
from asyncio import AbstractEventLoop, Task
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Generic, Self, TypeAlias, cast
from weakref import ReferenceType, WeakKeyDictionary, ref

from pydantic import JsonValue, PrivateAttr

from judgekit import errors
from judgekit.errors import count_text
from judgekit.gathering import current_participant
from judgekit.judges.answer import Answer, read_answer
from judgekit.judges.decisions import Decisions, decision_request, no_text_message
from judgekit.judges.inputs import CONVERSATION, RenderOptions
from judgekit.judges.layers import build_client, check_replies, provider_client
from judgekit.judges.limits.rate_limit import Account
from judgekit.judges.limits.spending import Spending, SQLiteSpending
from judgekit.judges.parts import read_parts
from judgekit.judges.prompt import Digests, Prompt, shared_text
from judgekit.judges.redaction.redact import redact_sample
from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.request import Layer, Reply, Request, TokenLogprob
from judgekit.judges.schema import strict_schema
from judgekit.judges.settings import JudgeSettings
from judgekit.judges.structured_output import SchemaSupport
from judgekit.judges.together import Question, ask_together
from judgekit.score import (
    JudgeCall,
    ScaleValue,
    Score,
    cache_bypassed,
    check_declared,
    current_plan,
    current_repeat,
    ledger,
)
from judgekit.traces.equality import copy_json
from judgekit.traces.message import JsonObject
from judgekit.traces.rendering import Rendering
from judgekit.traces.sample import Sample
from judgekit.traces.shortening import BYTES_A_TOKEN

AnswerCheck: TypeAlias = Callable[[Answer, Sample], None]
_FALLS_BACK = (errors.OverloadError, errors.UnreachableError, errors.ContextError, errors.QuotaError)
"""Errors on which the next judge is asked. A spent budget is not among them, since it is the user's own limit."""

_Clients: TypeAlias = WeakKeyDictionary[AbstractEventLoop, tuple[Task[Layer], AsyncGenerator[Layer]]]
"""The client of each event loop, since connections and locks belong to the loop in which they were created."""


@dataclass(frozen=True)
class Judgment(Generic[Answer]):
    """A judge's answer, and the requests it took.

    Attributes:
        answer: The answer.
        calls: The requests.
        sample: The sample, as the judge saw it.
        omitted: The number of characters of the recording that the judge was not shown.
        characters: The number of characters of the recording.
        reading: The numbers of findings, and of those dropped and merged, if the recording was read in parts.
        hidden_media: The number of media of the recording that it was not shown, by their kind and the reason.
        logprobs: The log probabilities of the reply's tokens, if the judge's ``params`` request them.
    """

    answer: Answer
    calls: tuple[JudgeCall, ...]
    sample: Sample
    omitted: int = 0
    hidden_media: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    logprobs: Sequence[TokenLogprob] | None = None
    characters: int = 0
    reading: Mapping[str, int] = field(default_factory=dict[str, int])

    def joined(self, other: "Judgment[Any]", answer: Answer) -> "Judgment[Answer]":
        """Return an answer made of those of two judgments of one recording, which is as unread as in the worse of them."""
        return replace(
            self,
            answer=answer,
            calls=(*self.calls, *other.calls),
            omitted=max(self.omitted, other.omitted),
            characters=max(self.characters, other.characters),
            hidden_media={**other.hidden_media, **self.hidden_media},
            reading={key: self.reading.get(key, 0) + count for key, count in other.reading.items()} or self.reading,
        )

    def score(
        self,
        scorer: str,
        grade: ScaleValue,
        *,
        reason: str,
        details: Mapping[str, JsonValue],
        label: str | None = None,
        confidence: float | None = None,
    ) -> Score:
        """Return the score for the answer, whose reason begins with how much of the recording the judge was not shown.

        Media that it was not shown are in the warnings, and as ``hidden_media`` in the details. Questions that were
        answered in the same request are there as ``asked_together``.
        """
        answered = next((call for call in reversed(self.calls) if call.error is None), None)
        if answered is not None and answered.together:
            details = {**details, "asked_together": list(answered.together)}
        if self.omitted:
            share = f"{self.omitted / (self.characters or self.omitted):.1%}"
            reason = f"{self.omitted:,} characters of the recording ({share}) were not shown to the judge. {reason}"
            details = {**details, "omitted_characters": self.omitted}
        if self.omitted or self.reading:
            details = {**details, "coverage": 1 - self.omitted / (self.characters or 1), **self.reading}
            details |= {"requests": len(self.calls)} if self.reading else {}
        if self.hidden_media:
            hidden: list[JsonValue] = [
                {"kind": kind, "reason": why, "count": number} for (kind, why), number in self.hidden_media.items()
            ]
            details = {**details, "hidden_media": hidden}
        scored_value = None if isinstance(grade, str) else grade
        return Score(
            scorer=scorer,
            status=grade if isinstance(grade, str) else "scored",
            value=scored_value,
            label=label,
            calls=self.calls,
            confidence=None if scored_value is None else confidence,
            warnings=["the judge was not shown all of the recording"] * bool(self.omitted)
            + [
                f"{count_text(number, 'audio recording' if kind == 'audio' else kind)} not shown to the judge: {why}"
                for (kind, why), number in self.hidden_media.items()
            ],
            reason=reason,
            details=dict(details),
        )


class Judge(JudgeSettings):
    """An LLM that scorers ask.

    Its replies are cached, so runs that use the same cache send each request only once.
    The settings are those of `JudgeSettings`.

    Example:
        ``Judge("openai/gpt-6-luna", params={"reasoning_effort": "low"}, budget=Budget(usd=5))``
    """

    _spending: Spending | None = PrivateAttr()
    _schema_support: SchemaSupport = PrivateAttr()
    _account: Account = PrivateAttr()
    _clients: _Clients = PrivateAttr()
    _uncached_clients: _Clients = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Check the settings, and start with nothing spent."""
        super().model_post_init(context)
        if self.long == "parts" and (self.decides or self.conversation_tokens is None):
            needs = "a judge that writes" if self.decides else "conversation_tokens, the size of a part"
            raise errors.ConfigError(f"long = 'parts' needs {needs}")
        self._spending = SQLiteSpending() if self.budget else None
        self._schema_support = SchemaSupport()
        self._account = Account()
        self._clients = WeakKeyDictionary()
        self._uncached_clients = WeakKeyDictionary()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return an independent judge, since clients and spending belong to the settings that they began with."""
        copied = super().model_copy(update=update, deep=deep)
        copied.model_post_init(None)
        return copied

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied.model_post_init(None)
        return copied

    def __deepcopy__(self, _memo: dict[int, object] | None = None) -> Self:
        """Return a shallow copy: the values in a judge are frozen, or shared on purpose."""
        return self.__copy__()

    def __eq__(self, other: object) -> bool:
        """Return whether both give the same verdicts; settings that do not affect verdicts are ignored."""
        return isinstance(other, Judge) and self.client is other.client and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.model)

    def check(self) -> None:
        """Check for problems that no request could succeed with: a missing key, a cache that cannot be used.

        Raises:
            AuthenticationError: The environment has no key, or lacks a value of ``query`` or ``headers``.
            StoreError: The cache cannot be used.
        """
        if self.uses_provider:
            provider_client(self)
        if self.cache_mode_used != "off" or isinstance(self.cache, RedisAddress):
            check_replies(self)
        for other in self.fallback:
            other.check()

    async def ask(
        self, prompt: Prompt, sample: Sample, answer: type[Answer], check: AnswerCheck[Answer] | None = None
    ) -> Judgment[Answer]:
        """Ask a question about a sample. If the reply cannot be used, ask the judge once to correct it.

        With ``together``, a run sends it in one request with the questions of its other scorers. If that has no usable
        answer to it, it is sent alone. Inside `judgekit.score.independent_repeat`, equal questions are answered independently.

        Args:
            prompt: The question.
            sample: The sample that fills its inputs.
            answer: The model of the reply, with explanations before verdicts.
            check: Raises ``ValueError`` on an answer that cannot be right, such as one that cites a message that does
                not exist. It gets the sample as the judge saw it.

        Raises:
            JudgeError: There is no usable answer.
            ConfigError: The scorer does not declare the prompt; see `judgekit.JudgedScorer`.
        """
        check_declared(prompt, prompt.name)
        if self.redact:
            sample = redact_sample(sample, self.redact)
        with ledger() as calls:
            try:
                if self.images is None:
                    question = self._question(prompt, sample, answer, check)
                else:  # to decode and hash images takes milliseconds
                    question = await asyncio.to_thread(self._question, prompt, sample, answer, check)
                participant = current_participant.get()
                if participant is None or (reply := await ask_together(question, participant)) is None:
                    if question.too_long:
                        await read_parts([question])
                    reply = await self._reply(question.request)
                request, shown = question.request, (question.filled.characters, question.reading)
                answered, unread = cast("Answer", request.answer(reply)), (request.omitted, request.hidden_media)
                return Judgment(answered, tuple(calls), sample, *unread, reply.logprobs, *shown)
            except _FALLS_BACK as error:
                problems: list[errors.JudgeError] = [error]
            for other in self.fallback:
                try:
                    judgment = await other.ask(prompt, sample, answer, check)
                except (*_FALLS_BACK, errors.BudgetError) as error:
                    problems.append(error)
                else:
                    return replace(judgment, calls=tuple(calls))
            if others := [problem for problem in problems if not isinstance(problem, errors.STOPS_JUDGE)]:
                raise others[-1]
            raise errors.merge_errors(problems) from problems[-1]

    def build_request(
        self, prompt: Prompt, sample: Sample, answer: type[Answer], check: AnswerCheck[Answer] | None = None
    ) -> Request:
        """Return the request that `ask`, with the same arguments, would send for a sample without anything to redact."""
        return self._question(prompt, sample, answer, check).request

    def _question(
        self,
        prompt: Prompt,
        sample: Sample,
        answer: type[Answer],
        check: AnswerCheck[Answer] | None,
        digests: Digests | None = None,
    ) -> Question:
        is_typed = issubclass(answer, Decisions)
        if is_typed and not self.decides:
            raise errors.ConfigError(f"{prompt.name}: typed questions are for decision models, not for {self.model}")
        if self.decides and not is_typed:
            raise errors.ConfigError(f"{prompt.name}: {no_text_message(self.model)}")
        if is_typed:
            prompt = replace(prompt, system=shared_text("system.decisions.md"))
        budget, in_parts = self.conversation_tokens, self.long == "parts"
        shown = RenderOptions(None, self.images, sys.maxsize) if in_parts else RenderOptions(budget, self.images)
        filled = prompt.fill(sample, shown, digests)
        recordings = {CONVERSATION: filled.conversation, **filled.inputs} if in_parts and not digests else {}
        room = BYTES_A_TOKEN * (budget or 0)
        too_long = [name for name, text in recordings.items() if isinstance(text, Rendering) and text.size > room]
        schema: JsonObject = {} if is_typed else strict_schema(answer, has_sub_agents=filled.has_sub_agents)
        version = prompt.version(schema, filled.messages[0].content)
        repeat, params = current_repeat.get(), {name: copy_json(param) for name, param in self.params.items()}
        if repeat and isinstance(seed := params.get("seed"), int):  # equal seeds would give equal repeats
            params["seed"] = seed + repeat

        def accept(text: str) -> Answer:
            answered = read_answer(text, answer)
            if check is not None:
                check(answered, sample)
            return answered

        request = Request(
            provider=self.provider,
            base_url=self.endpoint,
            model=self.model.partition("/")[2],
            params=params,
            messages=filled.messages,
            schema_name=prompt.name,
            schema=schema,
            prompt=version,
            accept=accept,
            images=filled.images,
            omitted=filled.omitted,
            hidden_media=filled.hidden_media,
            repeat=repeat,
            max_output_tokens=self.own_output_limit,
            tier=self.tier,
            prefix_key=filled.conversation and sha256(filled.conversation.encode(errors="replace")).hexdigest()[:32],
            key_parts=self.request_key_parts,
            answers=max(1, len(prompt.turns)),
        )
        if is_typed:
            request = decision_request(request, cast("type[Decisions]", answer), prompt, filled)
        asking = self._complete, self._reply, read_parts, partial(self._question, prompt, sample, answer, check)
        return Question(self, *asking, prompt, sample, answer, filled, request, too_long)

    async def _reply(self, request: Request) -> Reply:
        try:
            return await self._complete(request)
        except errors.ReplyError as error:
            if self.cache_mode == "replay" or self.decides:
                raise
            return await self._complete(request.correction_request(error.text, str(error)))

    async def _complete(self, request: Request) -> Reply:
        loop, plan = asyncio.get_running_loop(), current_plan.get()
        clients = self._uncached_clients if cache_bypassed.get() else self._clients
        if plan is not None:  # each plan counts from zero
            fresh: _Clients = WeakKeyDictionary()
            _, clients = cast("tuple[Self, _Clients]", plan.setdefault(id(self), (self, fresh)))
        if loop not in clients:  # concurrent requests wait for the client of the first
            closing = AsyncExitStack()
            building = build_client(self, self._spending, self._schema_support, closing, self._account)
            opened = _open_until_end(building, closing, ref(clients))
            clients[loop] = loop.create_task(anext(opened)), opened
        opening, _ = clients[loop]
        client = await asyncio.shield(opening)
        return await client.complete(request)


async def _open_until_end(
    building: Awaitable[Layer], closing: AsyncExitStack, clients: ReferenceType[_Clients]
) -> AsyncGenerator[Layer]:
    """Yield a client, and close it when the loop ends or its judge is dropped, as async generators are finalized then.

    So connections are closed in their own loop, and nobody has to close a judge.
    """
    async with closing:
        try:
            yield await building
        finally:
            if (open_clients := clients()) is not None:  # if it could not be built, the next request tries again
                open_clients.pop(asyncio.get_running_loop(), None)


async def close_plan() -> None:
    """Close the clients that judges opened for the current plan, in this event loop."""
    for entry in (current_plan.get() or {}).values():
        if not isinstance(entry, tuple):
            continue
        _, clients = cast("tuple[Judge, _Clients]", entry)
        opening, closing = clients.get(asyncio.get_running_loop(), (None, None))
        if closing is not None and opening is not None and opening.done():
            await closing.aclose()


def find_judges(value: object) -> Iterator[Judge]:
    """Yield the judges in a scorer, without those that they fall back to."""
    if isinstance(value, Judge):
        yield value
    elif is_dataclass(value):
        for setting in fields(value):
            yield from find_judges(getattr(value, setting.name))
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from find_judges(item)
