"""The provider of decision models: the Decisions API of OpenAI, or of any gateway with the same contract."""

import json
from collections.abc import Callable
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from judgekit.judges.providers.bodies import read_body
from judgekit.judges.providers.completion import no_completion_error, parse_completion
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.request import Reply, Request
from judgekit.traces.images import Image

_MARK = "x-stainless-raw-response"
"""The header by which the SDK knows that a response is to be read by its caller."""


class _StatusError(Exception):
    """A response with another status than success."""

    def __init__(self, status: int, header: Callable[[str], str | None], body: bytes) -> None:
        super().__init__(status)
        self.response = status, header, body


class DecisionsClient(OpenAIClient):
    """A client that sends requests with the SDK's own client, without retries.

    The headers are those of `OpenAIClient`, and none that the SDK finds in the environment.

    Args:
        connection: The settings of the connection.

    Raises:
        ConfigError: The connection cannot be set up, because the address, a proxy or a certificate cannot be used.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        import openai  # noqa: PLC0415 - takes half a second

        self._http.event_hooks = {"request": [self._keep_own_headers], "response": [self._read_problem]}
        self._sdk = openai.AsyncOpenAI(
            api_key=connection.api_key or "no-key", base_url=self._base_url, http_client=self._http, max_retries=0
        )

    async def _keep_own_headers(self, request: Any) -> None:
        for name in {*request.headers} - {*self._http.headers, "host", "content-length", _MARK}:
            del request.headers[name]
        request.headers.update(self._http.headers)

    async def _read_problem(self, response: Any) -> None:
        """Read the body of an error up to a limit, which the SDK does not have."""
        if not response.is_success:
            body = await read_body(self._max_reply_bytes, response)
            raise _StatusError(response.status_code, response.headers.get, body)

    async def _send(self, request: Request) -> tuple[int, Callable[[str], str | None], bytes]:
        system, recording = request.messages
        is_text = "input" not in request.schema
        shown: list[Any] = [{"role": "user", "content": _parts(request)}] if is_text else json.loads(recording.content)
        cache_key = {"prompt_cache_key": request.prefix_key} if request.prefix_key else {}
        try:
            async with self._sdk.decisions.with_streaming_response.create(
                model=request.model,
                input=[{"role": "system", "content": system.content}, *shown],
                questions=cast("Any", request.typed_questions),
                extra_body={**cache_key, **request.params} or None,  # openai 3.26 has no argument for the key
                timeout=self._timeout,
            ) as response:
                raw = response.http_response
                return raw.status_code, raw.headers.get, await read_body(self._max_reply_bytes, raw)
        except Exception as error:  # noqa: BLE001 - the SDK wraps errors of the HTTP client, without their words
            problem = error.__cause__ or error
        if isinstance(problem, _StatusError):
            return problem.response
        raise problem

    def _read(self, body: bytes, where: str) -> Reply:
        """Return a decision as the reply whose text is its answers, as JSON."""
        from openai.types.decision import Usage  # noqa: PLC0415 - takes half a second

        try:
            decision = from_json(body)
            answers = to_json(decision["answers"]).decode()
        except (ValueError, TypeError, KeyError):
            raise no_completion_error(self._masked.body(body), self._masked, where, "decision") from None
        try:
            usage = Usage.model_validate(decision.get("usage"))
        except ValidationError:
            counts = None
        else:
            counts = {
                "prompt_tokens": usage.input_tokens,
                "prompt_tokens_details": usage.input_tokens_details.to_dict(),
                "completion_tokens": usage.output_tokens,
                "completion_tokens_details": usage.output_tokens_details.to_dict(),
                "cost": (usage.model_extra or {}).get("cost"),
            }
        completion = {**decision, "choices": [{"message": {"content": answers}}], "usage": counts}
        return parse_completion(to_json(completion), self._masked, where, self._price)


def _parts(request: Request) -> Any:
    """Return the recording as text, with images in their places."""
    _, recording = request.messages
    if not request.images:
        return recording.content
    return [
        {"type": "input_image", "image_url": part.url, "detail": part.detail}
        if isinstance(part, Image)
        else {"type": "input_text", "text": part}
        for part in request.content(recording)
    ]
