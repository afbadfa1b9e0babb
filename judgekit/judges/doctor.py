"""A short question that tests a judge and its abilities."""

from dataclasses import dataclass
from datetime import date
from time import perf_counter
from typing import Literal, TypeAlias

from pydantic import BaseModel

from judgekit import errors
from judgekit.judges.answer import read_answer
from judgekit.judges.call_recorder import CallRecorder
from judgekit.judges.decisions import read_decisions
from judgekit.judges.judge import Judge
from judgekit.judges.layers import provider_client
from judgekit.judges.providers.deferred import DeferredClient
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.providers.price_list import find_list_shutdown_date
from judgekit.judges.request import ChatMessage, Client, OutputMode, Request
from judgekit.judges.schema import strict_schema
from judgekit.judges.structured_output import SchemaSupport, StructuredOutput
from judgekit.threads import run_in_thread
from judgekit.traces.message import JsonObject, Usage

KeyStatus: TypeAlias = Literal["found", "missing", "refused", "none"]

_LOGPROBS = {"logprobs": True, "top_logprobs": 2}


_TYPED: list[JsonObject] = [{"type": "predicate", "name": "q1", "instructions": "It is true that 2 + 2 = 4."}]


class _Sum(BaseModel):
    reason: str
    verdict: Literal["true", "false"]


@dataclass(frozen=True)
class JudgeDiagnosis:
    """The abilities of a judge.

    Attributes:
        problem: The problem with its answer; empty if there is none.
        key: The state of its key; ``none`` for the user's own server, and for ``litellm``, which finds keys by itself.
        is_reachable: Whether its server responded.
        output_mode: The constraint on the form of its replies that works.
        logprobs: Whether it reports the probabilities of its tokens.
        model: The model that answered, as its provider reports it; ``None`` if it reports none.
        system_fingerprint: The provider's name for the configuration of the model; ``None`` if it reports none.
        usage: The tokens that it reports; ``None`` if it reports none.
        cost_usd: The cost of the answer in US dollars; ``None`` if unknown.
        price_list: The list that the price is from, such as ``litellm 1.106.2``, if it is from one.
        seconds: The duration of the request.
        shutdown_date: The date on which the provider shuts the model down, even if it has passed: as its server reports
            it, or for ``litellm`` as litellm's list has it. ``None`` if none is known, or the model does not answer.
    """

    problem: str = ""
    key: KeyStatus = "none"
    is_reachable: bool = False
    output_mode: OutputMode | None = None
    logprobs: bool = False
    model: str | None = None
    system_fingerprint: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    price_list: str | None = None
    seconds: float | None = None
    shutdown_date: date | None = None


async def diagnose(judge: Judge) -> JudgeDiagnosis:
    """Ask a judge a short question, past its cache and its budget; ask again if it rejects logprobs."""
    footing = SchemaSupport()
    try:
        await run_in_thread(judge.check)
        provider = await run_in_thread(lambda: provider_client(judge))
        if isinstance(provider, DeferredClient):
            provider = await run_in_thread(provider.connect)
    except errors.JudgekitError as error:
        return JudgeDiagnosis(
            _error_text(error), "missing" if isinstance(error, errors.AuthenticationError) else "none"
        )
    client = StructuredOutput(CallRecorder(provider, judge.price), footing)
    key: KeyStatus = "found" if judge.sends_a_key else "none"
    try:
        started = perf_counter()
        try:
            reply = await client.complete(_question(judge, asks_logprobs=not judge.decides))
        except errors.RejectedError:
            started = perf_counter()
            reply = await client.complete(_question(judge, asks_logprobs=False))
        seconds = perf_counter() - started
        shutdown_date = await _shutdown_date(judge, provider)
    except errors.AuthenticationError as error:
        return JudgeDiagnosis(_error_text(error), "refused", is_reachable=True)
    except errors.JudgeError as error:
        unreached = isinstance(error, errors.OfflineError | errors.UnreachableError)
        reached = error.status is not None if isinstance(error, errors.OverloadError) else not unreached
        return JudgeDiagnosis(_error_text(error), key, is_reachable=reached)
    finally:
        await provider.aclose()
    return JudgeDiagnosis(
        "" if _is_right(judge, reply.text) else "the judge says that 2 + 2 is not 4",
        key,
        is_reachable=True,
        output_mode=None if judge.decides else footing.output_mode,
        logprobs=reply.logprobs is not None,
        model=reply.model,
        system_fingerprint=reply.system_fingerprint,
        usage=reply.usage,
        cost_usd=reply.cost_usd,
        price_list=reply.price_list,
        seconds=seconds,
        shutdown_date=shutdown_date,
    )


async def _shutdown_date(judge: Judge, client: Client) -> date | None:
    if isinstance(client, OpenAIClient):
        return await client.find_shutdown_date(_model(judge))
    return find_list_shutdown_date(judge.model) if judge.asks_the_providers_server else None


def _error_text(error: errors.JudgekitError) -> str:
    return f"{type(error).__name__}: {error}"


def _question(judge: Judge, *, asks_logprobs: bool) -> Request:
    return Request(
        provider=judge.provider,
        base_url=judge.endpoint,
        model=_model(judge),
        params={**judge.params, **(_LOGPROBS if asks_logprobs else {})},
        messages=(
            ChatMessage("system", "You check sums."),
            ChatMessage("user", "Is it true that 2 + 2 = 4? A short reason first."),
        ),
        schema_name="sum",
        schema={"questions": [*_TYPED]} if judge.decides else strict_schema(_Sum),
        prompt="doctor",
        accept=lambda text: _is_right(judge, text),
        max_output_tokens=judge.own_output_limit,
        key_parts=judge.key_parts,
    )


def _model(judge: Judge) -> str:
    return judge.model.partition("/")[2]


def _is_right(judge: Judge, text: str) -> bool:
    if judge.decides:
        (decided,) = read_decisions(text, _TYPED)
        return decided is not None and decided.label == "yes"
    return read_answer(text, _Sum).verdict == "true"
