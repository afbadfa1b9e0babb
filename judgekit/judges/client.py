"""Requests to judges and their replies; whatever answers a request is a client."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import AfterValidator, JsonValue

from judgekit.score import Exchange
from judgekit.traces.message import JsonObject, Many, Record, Usage
from judgekit.traces.rendering import cut_middle
from judgekit.traces.shortening import BYTES_A_TOKEN

Step: TypeAlias = Literal["json_schema", "json_object", "text"]
"""How a model is held to the form of its reply: by a JSON Schema, to be JSON, or by the words of the request alone."""

OUTPUT_LIMITS = frozenset({"max_completion_tokens", "max_tokens"})
"""Parameters that limit the tokens of a reply, reasoning included."""
_OVERHEAD = 200
"""Tokens that a server may add to each message: those of its chat template, and of the words around a schema."""
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
        max_output_tokens: The limit to the reply's tokens that judgekit sends, where ``params`` set none and a budget
            needs one. Not part of the key, since replies that are cut off are never kept.
        key_parts: What else the reply depends on, by name; see `JudgeSettings.key_parts`.
        is_follow_up: Whether it follows a reply that was paid for and could not be used. Not part of the key.
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
    max_output_tokens: int | None = None
    key_parts: JsonObject = field(default_factory=dict[str, JsonValue])
    is_follow_up: bool = False

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
            **self.key_parts,
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
        """The most tokens that the reply may have, if there is a limit."""
        return self.max_output_tokens or output_limit(self.params)

    def limited_params(self, name: str) -> JsonObject:
        """Return the parameters with judgekit's own output limit, if there is one, by the server's ``name`` for it."""
        if self.max_output_tokens is None:
            return self.params
        others = {other: value for other, value in self.params.items() if other not in OUTPUT_LIMITS}
        return {**others, name: self.max_output_tokens}

    @cached_property
    def input_tokens(self) -> int:
        """About how many tokens are sent: one for four bytes."""
        said = sum(len(content.encode(errors="replace")) for _, content in self.messages)
        return (said + len(json.dumps(self.schema))) // BYTES_A_TOKEN

    @property
    def most_input_tokens(self) -> int:
        """The most tokens that are sent. A token of a byte-level tokenizer holds one byte or more, in any text."""
        sent = [content for _, content in self.messages]
        sent += (json.dumps(self.schema), json.dumps(self.params))
        return sum(len(text.encode(errors="replace")) + _OVERHEAD for text in sent)

    def exchange(self, reply: "str | None") -> Exchange:
        """The messages that are sent, with the reply."""
        return Exchange(messages=self.messages, reply=reply)

    def repaired(self, text: str, problem: str) -> "Request":
        """The request that shows the judge its own reply and what is wrong with it."""
        complaint = f"That reply cannot be used: {problem}\nAnswer the question again, with one JSON object."
        shown = (Turn("assistant", cut_middle(text, _REPLY_SHOWN)),) if text else ()
        messages = (*self.messages, *shown, Turn("user", complaint))
        return replace(self, messages=messages, mends=self, is_follow_up=True)

    def roomier(self) -> "Request | None":
        """The request with twice the room for its reply, or ``None`` where there is no limit to it."""
        if self.output_limit is None:
            return None
        if self.max_output_tokens is not None:
            return replace(self, max_output_tokens=2 * self.max_output_tokens, is_follow_up=True)
        room = {name: 2 * limit for name, limit in _limits(self.params).items()}
        return replace(self, params={**self.params, **room}, is_follow_up=True)


def output_limit(params: JsonObject) -> int | None:
    """Return the limit that parameters set to the tokens of a reply; of two, the larger, as servers differ in which holds."""
    return max(_limits(params).values(), default=None)


def _limits(params: JsonObject) -> dict[str, int]:
    given = {name: params[name] for name in OUTPUT_LIMITS & params.keys()}
    return {name: limit for name, limit in given.items() if type(limit) is int and limit > 0}  # -1 means no limit


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
    """Answers requests: a provider over HTTP, or a layer around another client.

    A client of your own may have an ``identity``: a text that is another one wherever its replies may be, such as the
    address of its server with its version. It is part of the cache key. The replies of a client without one are not
    cached.
    """

    async def complete(self, request: Request, /) -> Reply:
        """The reply to a request.

        Raises:
            JudgeError: There is no usable one.
        """
        ...

    async def aclose(self) -> None:
        """Lets go of connections and files."""
        ...
