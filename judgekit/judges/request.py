"""Requests to judges, their replies, and the clients that answer them."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from pydantic import AfterValidator, Field, JsonValue

from judgekit.errors import ReplyError
from judgekit.score import JudgeExchange
from judgekit.traces.images import Image
from judgekit.traces.message import FrozenModel, JsonObject, Many, Usage
from judgekit.traces.rendering import cut_middle
from judgekit.traces.shortening import BYTES_A_TOKEN

OutputMode: TypeAlias = Literal["json_schema", "json_object", "text"]
"""The constraint on the form of a reply: a JSON Schema, any JSON, or only the instructions in the request."""

OUTPUT_LIMITS = frozenset({"max_completion_tokens", "max_tokens"})
"""Parameters that limit the tokens of a reply, including reasoning."""
_OVERHEAD = 200
"""Tokens that a server may add to each message, for its chat template and the text around a schema."""
_REPLY_SHOWN = 20_000
_NAME_KEPT = 300


class ChatMessage(NamedTuple):
    """A message of a request."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Request:
    """A question to a judge model.

    Attributes:
        provider: The provider of the model, such as ``"openai"``.
        base_url: The address of the provider.
        model: The provider's name for the model.
        params: Other parameters of the provider's API, such as ``temperature``.
        messages: The conversation with the judge, as text.
        images: The images in it, each with the line of the messages of the user that it stands behind.
        schema_name: The name of the schema that is sent to the provider.
        schema: The JSON Schema of the reply; of a decision model, instead its ``questions``.
        repeat: Distinguishes equal questions that are to be answered independently.
        output_mode: The constraint on the form of the reply. Not part of the key, since the question stays the same.
        prompt: The prompt with its version. Not part of the key, which covers the full text.
        accept: Returns the answer in the text of a reply, or raises ``ValueError``. Not part of the key.
        omitted: The number of characters of the recording that are not in the messages. Not part of the key.
        hidden_media: The number of media of the recording that are not shown, by their kind and the reason. Not part
            of the key.
        repairs: The request with an unusable reply that this one asks to correct, if any. Not part of the key.
        max_output_tokens: The limit on the reply's tokens that judgekit sends if ``params`` set none and a budget needs
            one. Not part of the key, since truncated replies are never stored.
        output_limit_name: The server's name for that limit, if it refused the usual one. Not part of the key.
        tier: ``flex`` asks for the cheaper tier; ``full`` would have, had it capacity. Not part of the key.
        prefix_key: A name for what all questions about the recording begin with, by which a provider finds it in its cache;
            empty if there is nothing of the kind. Not part of the key.
        key_parts: Other values that the reply depends on, by name; see `JudgeSettings.key_parts`.
        is_follow_up: Whether the request follows a paid but unusable reply. Not part of the key.
        questions: The number of questions that it asks together. Not part of the key.
        answers: The number of answers that the reply is expected to have: one a question, or one a turn. Not part of the key.
    """

    provider: str
    base_url: str
    model: str
    params: JsonObject
    messages: tuple[ChatMessage, ...]
    schema_name: str
    schema: JsonObject
    prompt: str
    accept: Callable[[str], object]
    images: tuple[tuple[str, Image], ...] = ()
    omitted: int = 0
    hidden_media: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    repeat: int = 0
    output_mode: OutputMode = "json_schema"
    repairs: "Request | None" = None
    max_output_tokens: int | None = None
    output_limit_name: str | None = None
    tier: Literal["default", "flex", "full"] = "default"
    prefix_key: str = ""
    key_parts: JsonObject = field(default_factory=dict[str, JsonValue])
    is_follow_up: bool = False
    questions: int = 1
    answers: int = 1

    @property
    def judge(self) -> str:
        """The name of the judge: its provider and model."""
        return f"{self.provider}/{self.model}"

    @property
    def typed_questions(self) -> Sequence[JsonObject]:
        """The questions to a decision model, as its API takes them; none for other models."""
        return cast("Sequence[JsonObject]", self.schema.get("questions", ()))

    @property
    def _settings(self) -> JsonObject:
        """The values that the reply may depend on apart from the messages, by name."""
        return {
            "provider": self.provider,
            "base_url": self.base_url,
            "model": self.model,
            "params": self.params,
            "schema": [self.schema_name, self.schema],
            "repeat": self.repeat,
            "messages": len(self.messages),
            **self.key_parts,
        }

    @cached_property
    def digests(self) -> dict[str, str]:
        """A short hash of each part, to find the parts in which two requests differ."""
        parts = {name: _bytes(setting) for name, setting in sorted(self._settings.items())}
        for index, (role, content) in enumerate(self.messages):
            parts[f"messages[{index}] ({role})"] = _bytes(content)
        if self.images:
            parts["images"] = _bytes(self._image_keys)
        return {name: hashlib.sha256(part).hexdigest()[:12] for name, part in parts.items()}

    @cached_property
    def key(self) -> str:
        """The SHA-256 of all values that the reply may depend on. Equal questions have equal keys."""
        digest = hashlib.sha256(_bytes(self._settings))
        for role, content in self.messages:
            text = content.encode(errors="surrogatepass")
            digest.update(b"\n%s %d\n%s" % (role.encode(), len(text), text))
        if self.images:
            digest.update(_bytes(self._image_keys))
        return digest.hexdigest()

    @property
    def _image_keys(self) -> JsonValue:
        return [[line, image.sha256, image.detail] for line, image in self.images]

    def content(self, message: ChatMessage) -> list[str | Image]:
        """Return the text of a message, split where images stand, with the images."""
        parts: list[str | Image] = []
        rest = message.content
        for line, image in self.images if message.role == "user" else ():
            before, marker, after = f"\n{rest}".partition(f"\n{line}\n")
            if marker:
                parts += [f"{before}\n{line}".removeprefix("\n"), image]
                rest = after
        return [*parts, rest]

    @property
    def output_limit(self) -> int | None:
        """The maximum number of tokens of the reply, if there is a limit."""
        return self.max_output_tokens or output_limit(self.params)

    @property
    def output_limit_setting(self) -> str | None:
        """The setting that the limit on the reply's tokens is from, if there is a limit."""
        if self.max_output_tokens is not None:
            return "max_output_tokens"
        limits = _limits(self.params)
        return f"params.{max(limits, key=lambda name: limits[name])}" if limits else None

    def sent_params(self, name: str) -> JsonObject:
        """Return the parameters with the tier and judgekit's own output limit, under its usual ``name`` or the server's."""
        params: JsonObject = {**self.params, **({"service_tier": "flex"} if self.tier == "flex" else {})}
        if self.max_output_tokens is None:
            return params
        others = {other: value for other, value in params.items() if other not in OUTPUT_LIMITS}
        return {**others, self.output_limit_name or name: self.max_output_tokens}

    @cached_property
    def input_tokens(self) -> int:
        """The estimated number of input tokens: one per four bytes, and those of images."""
        text_bytes = sum(len(content.encode(errors="replace")) for _, content in self.messages)
        image_tokens = sum(image.tokens for _, image in self.images)
        return (text_bytes + len(json.dumps(self.schema))) // BYTES_A_TOKEN + image_tokens

    @property
    def most_input_tokens(self) -> int:
        """The maximum number of input tokens. A token of a byte-level tokenizer holds at least one byte of any text."""
        sent = [content for _, content in self.messages]
        sent += (json.dumps(self.schema), json.dumps(self.params))
        image_tokens = sum(image.most_tokens for _, image in self.images)
        return sum(len(text.encode(errors="replace")) + _OVERHEAD for text in sent) + image_tokens

    def exchange(self, reply: "str | None") -> JudgeExchange:
        """Return the messages of the request, with the hashes of images in their places, and the reply."""
        messages = self.messages
        if self.typed_questions:
            messages = (*messages, ChatMessage("user", json.dumps(self.typed_questions, indent=1, ensure_ascii=False)))
        if self.images:
            messages = tuple(
                ChatMessage(message.role, "".join(map(_as_text, self.content(message)))) for message in messages
            )
        return JudgeExchange.model_construct(messages=messages, reply=reply)

    def answer(self, reply: "Reply", *, is_cached: bool = False) -> object:
        """Return the answer in a reply; a cached one may be that of an equal request, which accepts more.

        Raises:
            ReplyError: The reply is no answer to this request.
        """
        try:
            return self.accept(reply.text)
        except ValueError as error:
            problem = f"the cached reply to this request cannot be used: {error}" if is_cached else str(error)
            raise ReplyError(problem, text=reply.text) from error

    def correction_request(self, text: str, problem: str) -> "Request":
        """Return the request that shows the judge its own reply and the problem with it."""
        complaint = f"That reply cannot be used: {problem}\nAnswer the question again, with one JSON object."
        shown = (ChatMessage("assistant", cut_middle(text, _REPLY_SHOWN)),) if text else ()
        messages = (*self.messages, *shown, ChatMessage("user", complaint))
        return replace(self, messages=messages, repairs=self, is_follow_up=True)

    def with_doubled_limit(self) -> "Request | None":
        """Return the request with twice the output limit, or ``None`` if it has no limit or asks several questions."""
        if self.output_limit is None or self.questions > 1:
            return None
        return replace(self.with_output_limit(2), is_follow_up=True)

    def with_output_limit(self, times: int) -> "Request":
        """Return the request with several times the output limit, if it has one."""
        if self.max_output_tokens is not None:
            return replace(self, max_output_tokens=times * self.max_output_tokens)
        room = {name: times * limit for name, limit in _limits(self.params).items()}
        return replace(self, params={**self.params, **room})


def _as_text(part: str | Image) -> str:
    return part if isinstance(part, str) else f" (sha256 {part.sha256})\n"


def output_limit(params: JsonObject) -> int | None:
    """Return the output limit that parameters set; of two, the larger, since servers differ in which one they apply."""
    return max(_limits(params).values(), default=None)


def _limits(params: JsonObject) -> dict[str, int]:
    given = {name: params[name] for name in OUTPUT_LIMITS & params.keys()}
    return {name: limit for name, limit in given.items() if type(limit) is int and limit > 0}  # -1 means no limit


_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _bytes(value: JsonValue) -> bytes:
    return _canonical(value).encode(errors="surrogatepass")


class TokenLogprob(FrozenModel):
    """The log probability of a token (natural logarithm), and the most likely tokens in its place."""

    token: str
    logprob: float
    top_logprobs: Many["TokenLogprob"] = ()


def _name(name: str | None) -> str | None:
    return name[:_NAME_KEPT] or None if name else None


def possible_usage(usage: Usage | None, text: str) -> Usage | None:
    """Return usage without zeros that cannot be true, since any prompt has tokens, and so has any text of a reply."""
    if usage is None or (usage.input_tokens != 0 and (usage.output_tokens != 0 or not text)):
        return usage
    output = usage.output_tokens or (None if text or not usage.input_tokens else 0)
    return usage.model_copy(update={"input_tokens": usage.input_tokens or None, "output_tokens": output})


ReportedName: TypeAlias = Annotated[str | None, AfterValidator(_name)]
"""A name that a provider reports: its first 300 characters, or ``None`` if it is empty."""


class Reply(FrozenModel):
    """The answer of a judge model.

    Attributes:
        text: The text of the answer, or of the refusal.
        finish_reason: The reason for the end: ``stop`` is complete, ``length`` truncated at the token limit, ``filter``
            withheld by the provider, ``refusal`` no answer.
        model: The model that answered, as the provider reports it.
        system_fingerprint: The provider's name for the configuration that the model ran with, if reported.
        usage: The tokens used, if reported.
        cost_usd: The cost in US dollars; ``None`` if it is unknown.
        price_list: The list that the price is from, such as ``litellm 1.106.2``; ``None`` if the price was set by the
            user, or the provider reported the cost.
        service_tier: The tier that the request was billed in, such as ``flex``, if reported.
        saved_usd: What the input tokens that the provider had cached saved, in US dollars; ``None`` if it is unknown.
        logprobs: One for each token, if requested (``params = {logprobs = true}``).
    """

    text: str
    finish_reason: Literal["stop", "length", "filter", "refusal"] = "stop"
    model: ReportedName = None
    system_fingerprint: ReportedName = None
    usage: Usage | None = None
    cost_usd: float | None = Field(default=None, allow_inf_nan=False)
    price_list: str | None = None
    service_tier: ReportedName = None
    saved_usd: float | None = Field(default=None, allow_inf_nan=False)
    logprobs: Many[TokenLogprob] | None = None


class Layer(Protocol):
    """An object that answers requests: a client, or a layer around one or around another layer."""

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply to a request.

        Raises:
            JudgeError: There is no usable reply.
        """
        ...


@runtime_checkable
class Client(Layer, Protocol):
    """An object that answers requests, such as a provider over HTTP.

    Your own client may have an ``identity``: a text that changes whenever its replies may change, such as the address
    of its server with its version. It is part of the cache key. Replies of a client without an identity are not cached.
    """

    async def aclose(self) -> None:
        """Release connections and files."""
        ...
