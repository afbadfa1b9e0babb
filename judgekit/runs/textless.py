"""Scores without text, as runs with ``store_text = false`` keep them."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from judgekit.aggregates.classification import HASHED_PREFIX
from judgekit.aggregates.total import aggregate_details
from judgekit.runs.repeats import without_text
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import JsonObject

_DIGITS = 16


@dataclass(frozen=True)
class TextRemover:
    """A filter that strips scores of their reasons, and of all details that aggregates do not need.

    Attributes:
        key: A secret by which equal answers can be recognized without being kept. It is never written, so that nobody
            can test guesses against it.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def score(self, score: Score) -> Score:
        """Return the score without text."""
        details = {**without_text(score.details), **self._classified(aggregate_details(score))}
        kept = {"reason": "", "details": details, "calls": tuple(map(self.call, score.calls))}
        return score.model_copy(update=kept)

    @staticmethod
    def call(call: JudgeCall) -> JudgeCall:
        """Return the call without its request and reply."""
        usage = None if call.usage is None else call.usage.model_copy(update={"extra": {}})
        return call.model_copy(update={"usage": usage, "exchange": None})

    def _classified(self, details: Mapping[str, JsonValue]) -> JsonObject:
        """Return details with a mark in place of a free-text prediction; see `judgekit.aggregates.classification`."""
        if "predicted" not in details:
            return dict(details)
        true, predicted = str(details.get("true")), str(details["predicted"])
        is_label = predicted in ("", true, details.get("positive"))
        return {**details, "predicted": predicted if is_label else self._mark(predicted), "mark": self._mark(true)}

    def _mark(self, text: str) -> str:
        of_key, of_text = (hmac.digest(self.key, part, "sha256").hex() for part in (b"", b"=" + text.encode()))
        return f"{HASHED_PREFIX}{of_key[:4]}-{of_text[:_DIGITS]}"
