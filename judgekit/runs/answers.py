"""The models that answered for each judge, as far as their providers report them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from judgekit.errors import count_text, join_limited
from judgekit.score import JudgeCall
from judgekit.traces.rendering import cut_middle

UNREPORTED = "reports no model, so a change behind this name would go unnoticed"

_PLAIN = re.compile(r"[\w./:@+-]+")
_NAMES_SHOWN = 8
_NAME_SHOWN = 100

ReportedNames: TypeAlias = Counter[str | None]
"""The number of answers by the name that a provider reported; ``None`` counts answers without one."""


class AnswerCounts(Counter[tuple[str, str | None, str | None]]):
    """The number of answers by judge, reported model and reported system fingerprint."""

    def add(self, call: JudgeCall) -> None:
        """Count a call, unless it failed."""
        if call.error is None:
            self[call.judge, call.model, call.system_fingerprint] += 1

    @property
    def models(self) -> Mapping[str, ReportedNames]:
        """The reported models by judge."""
        return self._by_judge(1)

    @property
    def fingerprints(self) -> Mapping[str, ReportedNames]:
        """The reported system fingerprints by judge."""
        return self._by_judge(2)

    def _by_judge(self, part: Literal[1, 2]) -> Mapping[str, ReportedNames]:
        names: dict[str, ReportedNames] = {}
        for answer, times in self.items():
            names.setdefault(answer[0], Counter())[answer[part]] += times
        return names

    def notes(self) -> Iterator[str]:
        """Yield a line for each judge that answered as several models, or as one with several system fingerprints."""
        fingerprints = self.fingerprints
        for judge, models in self.models.items():
            if len(models) > 1:
                yield f"{quote_name(judge)} answered as {count_text(len(reported_names(models)), 'model')}: {format_shares(models)}"
            elif (times := len(reported_names(fingerprints[judge]))) > 1:
                reported = f"{count_text(times, 'system fingerprint')}: {format_shares(fingerprints[judge])}"
                yield f"{quote_name(judge)} answered with {reported}"


def reported_names(reported: Mapping[str | None, int]) -> set[str]:
    """Return the names that were reported."""
    return {name for name in reported if name is not None}


def format_shares(reported: ReportedNames) -> str:
    """Return each name with how often it was reported, most frequent first."""
    names = (("not reported" if name is None else quote_name(name), times) for name, times in reported.most_common())
    return join_limited((f"{name} ({times:,})" for name, times in names), _NAMES_SHOWN, ", ")


def quote_name(name: str) -> str:
    """Return the name cut to fit a line, and quoted and escaped if it holds unusual characters."""
    return cut_middle(name if _PLAIN.fullmatch(name) else ascii(name), _NAME_SHOWN, " ")
