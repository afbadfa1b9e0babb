"""Requests to judges and their replies; whatever answers a request is a client."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import AfterValidator, JsonValue

from judgekit.score import Exchange
from judgekit.traces.message import JsonObject, Many, Record, Usage
from judgekit.traces.rendering import cut_middle
from judgekit.traces.shortening import BYTES_A_TOKEN

Step: TypeAlias = Literal["json_schema", "json_object", "text"]
"""How a model is held to the form of its reply: by a JSON Schema, to be JSON, or by the words of the request alone."""

_TOKEN_LIMITS = ("max_completion_tokens", "max_tokens")
_REPLY_SHOWN = 20_000
_NAME_KEPT = 300


class Turn(NamedTuple):
    """One message of a request."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Request:
    """One question to a judge model.

    Attributes:
        provider: Who serves the model, such as ``"openai"``.
        base_url: Where.
        model: The provider's name of it.
        params: Further parameters of the provider's API, such as ``temperature``.
        messages: The conversation with the judge.
        schema_name: What the provider is told the reply is called.
        schema: The JSON Schema of the reply.
        draw: Tells equal questions apart that are to be answered independently.
        step: How the model is held to the form of its reply. Not part of the key: another step is the same question.
        prompt: The prompt with its version. Not part of the key, which holds all its words.
        accept: Raises ``ValueError`` on a reply that is not what was asked for. Not part of the key.
        omitted: How many characters of the recording are not in the messages. Not part of the key.
        mends: The request whose reply could not be used, where this one asks for a better one. Not part of the key.
    """

    provider: str
    base_url: str
    model: str
    params: JsonObject
    messages: tuple[Turn, ...]
    schema_name: str
    schema: JsonObject
    prompt: str
    accept: Callable[[str], object]
    omitted: int = 0
    draw: int = 0
    step: Step = "json_schema"
    mends: "Request | None" = None

    @property
    def judge(self) -> str:
        """Provider and model, as a judge is named."""
        return f"{self.provider}/{self.model}"

    @cached_property
    def _parts(self) -> dict[str, JsonValue]:
        """All that the reply may depend on, by name."""
        parts: dict[str, JsonValue] = {
            "provider": self.provider,
            "base_url": self.base_url,
            "model": self.model,
            "params": self.params,
            "schema": [self.schema_name, self.schema],
            "draw": self.draw,
            "messages": len(self.messages),
        }
        for index, (role, content) in enumerate(self.messages):
            parts[f"messages[{index}] ({role})"] = content
        return parts

    @cached_property
    def digests(self) -> dict[str, str]:
        """A short hash of each part, to tell in which part two requests differ."""
        return {name: _digest(part)[:12] for name, part in self._parts.items()}

    @cached_property
    def key(self) -> str:
        """The SHA-256 of all that the reply may depend on. Equal keys are equal questions."""
        return _digest(self._parts)

    @property
    def output_limit(self) -> int | None:
        """The most tokens that the reply may have, where the parameters set a limit."""
        limits = [limit for name in _TOKEN_LIMITS if isinstance(limit := self.params.get(name), int)]
        return min(limits, default=None)

    @cached_property
    def input_tokens(self) -> int:
        """About how many tokens are sent: one for four bytes."""
        said = sum(len(content.encode(errors="replace")) for _, content in self.messages)
        return (said + len(json.dumps(self.schema))) // BYTES_A_TOKEN

    def exchange(self, reply: "str | None") -> Exchange:
        """The messages that are sent, with the reply."""
        return Exchange(messages=self.messages, reply=reply)

    def repaired(self, text: str, problem: str) -> "Request":
        """The request that shows the judge its own reply and what is wrong with it."""
        complaint = f"That reply cannot be used: {problem}\nAnswer the question again, with one JSON object."
        shown = (Turn("assistant", cut_middle(text, _REPLY_SHOWN)),) if text else ()
        return replace(self, messages=(*self.messages, *shown, Turn("user", complaint)), mends=self)

    def roomier(self) -> "Request | None":
        """The request with twice the room for its reply, or ``None`` where the parameters set no limit to it."""
        if self.output_limit is None:
            return None
        room = {name: 2 * limit for name in _TOKEN_LIMITS if isinstance(limit := self.params.get(name), int)}
        return replace(self, params={**self.params, **room})


_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()


class TokenLogprob(Record):
    """The natural logarithm of a token's probability, and the likeliest tokens in its place."""

    token: str
    logprob: float
    top_logprobs: Many["TokenLogprob"] = ()


def _name(said: str | None) -> str | None:
    return said[:_NAME_KEPT] or None if said else None


Name: TypeAlias = Annotated[str | None, AfterValidator(_name)]
"""A name that a provider reports: its first 300 characters, or ``None`` where it is empty."""


class Reply(Record):
    """The answer of a judge model.

    Attributes:
        text: Its words; of a model that refused, its refusal.
        ending: Why it ended: ``stop`` is whole, ``length`` is cut off at the token limit, ``filter`` is withheld by the
            provider, ``refusal`` is no answer.
        model: The model that answered, as the provider reports it.
        system_fingerprint: The provider's name for the configuration that the model ran with, where it reports one.
        usage: Tokens, where the provider says.
        cost_usd: ``None`` where it is unknown.
        price_list: The list that the cost was taken from, such as ``litellm 1.106.2``; ``None`` of a price that was set,
            or that the provider reported.
        logprobs: One for each token, where they were asked for (``params = {logprobs = true}``).
    """

    text: str
    ending: Literal["stop", "length", "filter", "refusal"] = "stop"
    model: Name = None
    system_fingerprint: Name = None
    usage: Usage | None = None
    cost_usd: float | None = None
    price_list: str | None = None
    logprobs: Many[TokenLogprob] | None = None


@runtime_checkable
class Client(Protocol):
    """Answers requests: a provider over HTTP, or a layer around another client."""

    async def complete(self, request: Request, /) -> Reply:
        """The reply to a request.

        Raises:
            JudgeError: There is no usable one.
        """
        ...

    async def aclose(self) -> None:
        """Lets go of connections and files."""
        ...
