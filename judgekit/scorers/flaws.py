"""Flaws that code finds: ignored errors, invented arguments, unfinished conversations, claims without a call, banned words."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from judgekit.errors import short_repr
from judgekit.score import Score
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.text.matches import compile_pattern
from judgekit.scoring import NO_CONVERSATION
from judgekit.traces.flaws import Flaw, Flaws, claims_without_call, errors_ignored, invented_arguments, unfinished
from judgekit.traces.message import ToolMessage
from judgekit.traces.rendering import message_text
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace
from judgekit.traces.tree import branches

_SECONDS = 0.05


def is_error(result: ToolMessage, pattern: str | None) -> bool | None:
    """Return whether a result is an error, as recorded or else by a pattern of its text; ``None`` if that is unknown.

    Raises:
        TimeoutError: The search takes too long, as nested repeats can.
    """
    if result.is_error is not None or pattern is None:
        return result.is_error
    return compile_pattern(pattern).search(message_text(result), timeout=_SECONDS) is not None


@dataclass(frozen=True)
class _WithoutFlaws(ScopedScorer):
    """A scorer that is 1 without flaws of a kind, and skipped where none is possible."""

    _inapplicable: ClassVar[str]

    async def _score(self, sample: Sample) -> Score:
        if not sample.trace.messages:
            return Score.skipped(self.name, NO_CONVERSATION)
        flaws = self._flaws(sample.trace)
        if not flaws.places:
            return Score.skipped(self.name, self._inapplicable)
        first = next(iter(flaws.flaws), None)
        more = f" and {len(flaws.flaws) - 1} more" if len(flaws.flaws) > 1 else ""
        return Score.scored(
            self.name,
            float(first is None),
            label=None if first is None else first.label,
            reason="none" if first is None else f"message {first.message}: {first.reason}{more}",
            details={"flaws": [flaw._asdict() for flaw in flaws.flaws], "places": flaws.places},
        )

    @abstractmethod
    def _flaws(self, trace: Trace) -> Flaws:
        """Return the flaws."""


@dataclass(frozen=True)
class ErrorsIgnored(_WithoutFlaws):
    r"""1 if the agent retries or mentions each tool result that is an error, else 0.

    A result is an error if the recording says so or, where it does not say, if the ``error_pattern`` is found in its text. It
    is ignored if no later message of the agent has a word of failing, the name of the tool or a word of the error, and the
    tool is not called again. Skipped without errors. No judge. Details: ``flaws``, each with its ``message``, ``label`` and
    ``reason``, and ``places``, the number of errors. Source: `judgekit.traces.flaws`.

    Raises:
        ConfigError: The pattern is invalid.

    Example:
        ``ErrorsIgnored(error_pattern=r"^(Error|Traceback)")``
    """

    error_pattern: str | None = None
    name: str = "errors_ignored"
    _inapplicable: ClassVar[str] = "no tool result is known to be an error"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error_pattern is not None:
            compile_pattern(self.error_pattern)

    def _flaws(self, trace: Trace) -> Flaws:
        return errors_ignored(trace, lambda result: bool(is_error(result, self.error_pattern)))


@dataclass(frozen=True)
class InventedArguments(_WithoutFlaws):
    """1 if each id, number or address in the agent's calls stands in an earlier message, result or tool definition, else 0.

    Arguments count whose name says that they refer to something, such as ``order_id`` or ``email``, and that hold a digit
    or ``@``. Skipped without such arguments. No judge. Details as for `ErrorsIgnored`; ``places`` is the number of these
    arguments. Source: `judgekit.traces.flaws`.
    """

    name: str = "invented_arguments"
    _inapplicable: ClassVar[str] = "no call refers to anything by an id, a number or an address"

    def _flaws(self, trace: Trace) -> Flaws:
        return invented_arguments(trace)


@dataclass(frozen=True)
class Unfinished(_WithoutFlaws):
    """1 if the agent ended the conversation with an answer, else 0.

    The label tells ``limit_reached``, if the recording's termination or error names a limit, from ``stopped_early``. A
    recording that stops after the user's message counts as finished, since the answer may not have been recorded. No
    judge. Details as for `ErrorsIgnored`. Source: `judgekit.traces.ending`.
    """

    name: str = "unfinished"
    _inapplicable: ClassVar[str] = NO_CONVERSATION

    def _flaws(self, trace: Trace) -> Flaws:
        return unfinished(trace)


@dataclass(frozen=True)
class ClaimsWithoutCall(_WithoutFlaws):
    """1 if a call did what the agent says that it did, else 0.

    Claims such as "I have cancelled your order" count where a tool is called ``cancel_order``. In English only. Skipped
    without such claims. No judge. Details as for `ErrorsIgnored`; ``places`` is the number of claims. Source:
    `judgekit.traces.flaws`.
    """

    name: str = "claims_without_call"
    _inapplicable: ClassVar[str] = "the agent does not say that it did what one of its tools does"

    def _flaws(self, trace: Trace) -> Flaws:
        return claims_without_call(trace)


@dataclass(frozen=True)
class NeverSays(_WithoutFlaws):
    r"""1 if the pattern is in no message of the agent, or with ``scope="tree"`` of its sub-agents, else 0.

    For the last message alone, there is `Regex`, whose syntax this is; ``(?i)`` at the start ignores case. Arguments of calls are not searched. Skipped if the
    agent says nothing. No judge. Details as for `ErrorsIgnored`; ``places`` is the number of messages with a text. Source:
    https://github.com/mrabarnett/mrab-regex.

    Raises:
        ConfigError: The pattern is invalid.

    Example:
        ``NeverSays(r"(?i)as an ai\b")``
    """

    pattern: str
    name: str = "never_says"
    _inapplicable: ClassVar[str] = "the agent says nothing"

    def __post_init__(self) -> None:
        super().__post_init__()
        compile_pattern(self.pattern)

    def _flaws(self, trace: Trace) -> Flaws:
        search = compile_pattern(self.pattern).search
        texts = [
            (branch.number(index), message.text)
            for branch in branches(trace)
            for index, message in enumerate(branch.trace.messages)
            if message.role == "assistant"
        ]
        flaws = [
            Flaw(number, "said", f"says {short_repr(match[0])}")
            for number, text in texts
            if (match := search(text, timeout=_SECONDS))
        ]
        return Flaws(flaws, sum(bool(text) for _, text in texts))
