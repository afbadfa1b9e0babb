"""The provider of decision models: the Decisions API of OpenAI, or of any gateway with the same contract."""

from typing import cast

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json, to_json

from judgekit.judges.providers.completion import no_completion_error, parse_completion
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.request import Reply, Request
from judgekit.traces.images import Image
from judgekit.traces.message import JsonObject


class DecisionsClient(OpenAIClient):
    """A client of decision models, over the connections of `OpenAIClient`."""

    _route = "decisions"

    def _content(self, request: Request) -> JsonObject:
        system, recording = request.messages
        shown: list[JsonValue] = [
            {"type": "input_image", "image_url": part.url, "detail": part.detail}
            if isinstance(part, Image)
            else {"type": "input_text", "text": part}
            for part in request.content(recording)
        ]
        user = shown if request.images else recording.content
        cache_key: JsonObject = {"prompt_cache_key": request.prefix_key} if request.prefix_key else {}
        return {
            "model": request.model,
            "input": [{"role": "system", "content": system.content}, {"role": "user", "content": user}],
            "questions": cast("list[JsonValue]", request.typed_questions),
            **cache_key,
            **request.params,
        }

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
