"""What a judge is asked and what it answers; whoever answers is a client."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import JsonValue

from judgekit.traces.message import JsonObject, Record, Usage


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
        prompt: The prompt with its version. Not part of the key, which holds all its words.
        accept: Raises ``ValueError`` on a reply that is not what was asked for. Not part of the key.
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
    draw: int = 0

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

    def repaired(self, text: str, problem: str) -> "Request":
        """The request that shows the judge its own reply and what is wrong with it."""
        complaint = f"That reply cannot be used: {problem}\nAnswer the question again, with one JSON object."
        return replace(self, messages=(*self.messages, Turn("assistant", text), Turn("user", complaint)))


def _digest(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Reply(Record):
    """What a judge model answered. ``model`` is the one that the provider names."""

    text: str
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None


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
