"""Scores without text, as they are kept with ``store_text = false``."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from judgekit.aggregates.classification import UNLISTED
from judgekit.aggregates.total import details_needed
from judgekit.runs.draws import without_words
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import JsonObject

_DIGITS = 16


@dataclass(frozen=True)
class Textless:
    """Scores without their reasons, and with those details alone that numbers over all samples are made of.

    Attributes:
        key: By it equal answers can be told without being kept. It is written nowhere, so that nobody can try answers.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def score(self, score: Score) -> Score:
        """Return the score without text."""
        details = {**without_words(score.details), **self._classified(details_needed(score))}
        kept = {"reason": "", "details": details, "calls": tuple(map(self.call, score.calls))}
        return score.model_copy(update=kept)

    @staticmethod
    def call(call: JudgeCall) -> JudgeCall:
        """Return the call without what was sent and replied."""
        usage = None if call.usage is None else call.usage.model_copy(update={"extra": {}})
        return call.model_copy(update={"usage": usage, "exchange": None})

    def _classified(self, details: Mapping[str, JsonValue]) -> JsonObject:
        """Details in which a prediction that may be any text is one no more; see `judgekit.aggregates.classification`."""
        if "predicted" not in details:
            return dict(details)
        true, predicted = str(details.get("true")), str(details["predicted"])
        is_label = predicted in ("", true, details.get("positive"))
        return {**details, "predicted": predicted if is_label else self._mark(predicted), "mark": self._mark(true)}

    def _mark(self, text: str) -> str:
        def digest(value: bytes) -> str:
            return hmac.digest(self.key, value, "sha256").hex()

        return f"{UNLISTED}{digest(b'')[:4]}-{digest(b'=' + text.encode())[:_DIGITS]}"
