"""Scores of samples, and the ledger of the judge calls made for them."""

import math
from collections.abc import Generator, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from decimal import Decimal
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from judgekit.diff import Diff
from judgekit.errors import UNCHARGED, ConfigError, JudgeError, UnreachableError
from judgekit.traces.fast_models import construct
from judgekit.traces.message import FrozenModel, JsonObject, Many, Usage

ScoreStatus: TypeAlias = Literal["scored", "skipped", "failed", "abstained"]
STATUSES: tuple[ScoreStatus, ...] = get_args(ScoreStatus)
ScaleValue: TypeAlias = Annotated[float, Field(ge=0, le=1)] | Literal["skipped", "abstained"]
"""The value of a judge's choice: a number in [0, 1], or the status of a score without a value."""

NOT_APPLICABLE_LABELS = ("not applicable", "not_applicable", "n/a")
"""Labels of any scale that say that the question does not apply to a sample."""
NOT_FAILED = "not_failed"
"""The label of a skip by a scorer that looks only at samples that failed: no other scorer says that this one did."""
_YES = frozenset({"yes", "pass", "true"})
_NO = frozenset({"no", "fail", "false"})

_UNCHARGED = {error.__name__ for error in UNCHARGED}


_PRECISION = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}
"""The distance of 1 from the next number, by the bytes of a floating-point number."""
_ROUNDING = 4
"""The number of such distances by which rounding may lead out of [0, 1]."""


def python_scalar(given: Any) -> object:
    """Return a scalar of numpy, torch or the like as one of Python, and anything else as it is."""
    return given.item() if getattr(given, "ndim", None) == 0 and hasattr(given, "item") else given


def rounded_to_unit(given: object) -> object:
    """Return a number of any type as a float, and as 0 or 1 if only rounding led out of [0, 1]; anything else as it is."""
    scalar = given if isinstance(given, float) else python_scalar(given)
    if not isinstance(scalar, Real | Decimal):
        return scalar
    number = float(scalar)
    tolerance = _ROUNDING * _PRECISION.get(getattr(given, "itemsize", 8), _PRECISION[8])
    return min(max(number, 0.0), 1.0) if -tolerance <= number <= 1 + tolerance else number


_UnitNumber = Annotated[float, BeforeValidator(rounded_to_unit), Field(ge=0, le=1)]


def verdict_value(verdict: bool | float | str, scale: Mapping[str, ScaleValue]) -> ScaleValue | None:  # noqa: FBT001
    """Return the value of a label or number on a scale; ``None`` if it has none.

    Labels of the scale take precedence, in any case, so that ``1`` may be its lowest one. Else, a number in [0, 1] is
    its own value, yes, pass and true are 1, no, fail and false are 0, and "n/a" or "not applicable" is ``"skipped"``.
    """
    text = f"{verdict:g}" if isinstance(verdict, float) else str(verdict)
    folded = text.casefold()
    in_any_case: dict[str, ScaleValue] = {name.casefold(): value for name, value in scale.items()}
    scale_value = scale.get(text)
    scale_value = in_any_case.get(folded) if scale_value is None else scale_value
    if scale_value is not None:
        return scale_value
    if folded in NOT_APPLICABLE_LABELS:
        return "skipped"
    if folded in _YES or folded in _NO:
        return float(folded in _YES)
    try:
        number = verdict if isinstance(verdict, float) else float(text.replace(",", "."))
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


class JudgeExchange(FrozenModel):
    """The messages of a judge request and its reply.

    Attributes:
        messages: The messages sent to the judge, as pairs of role and text.
        reply: The raw reply; ``None`` if there was none.
    """

    messages: Many[tuple[str, str]]
    reply: str | None = None


class JudgeCall(FrozenModel):
    """A request to a judge, including requests that failed or never reached the server.

    Attributes:
        judge: The name of the judge.
        prompt: The name of the prompt with its version.
        model: The model as reported by the provider, even for cached replies; ``None`` if not reported.
        system_fingerprint: The provider's fingerprint of the system, even for cached replies; ``None`` if not reported.
        cached: Whether the reply came from the cache. It then cost nothing.
        usage: The token counts, for cached replies those of the original request; ``None`` if not reported.
        cost_usd: The cost in US dollars; ``None`` if the price is unknown.
        price_list: The list that the price comes from, such as ``litellm 1.106.2``; ``None`` if there is none.
        saved_usd: What input tokens that the provider had cached saved, in US dollars; ``None`` if it is unknown.
        tier: If the flex tier was asked for, the one that was billed: ``flex``, or ``full`` at the full price.
        seconds: The duration in seconds.
        error: The class of the error; ``None`` if there was none.
        share: The share of this question in a request that answers several, which usage and cost are those of; ``None``
            if they are those of the whole request.
        together: The prompts of all questions of that request, in its order; empty if it has only one.
        exchange: The messages and the reply, which a run stores separately; not part of the JSON.
    """

    judge: str
    prompt: str
    model: str | None = None
    system_fingerprint: str | None = None
    cached: bool = False
    usage: Usage | None = None
    cost_usd: float | None = None
    price_list: str | None = None
    saved_usd: float | None = None
    tier: Literal["flex", "full"] | None = None
    seconds: float = 0.0
    error: str | None = None
    share: float | None = None
    together: Many[str] = ()
    exchange: JudgeExchange | None = Field(default=None, exclude=True, repr=False)

    @property
    def is_request(self) -> bool:
        """Whether a server was reached. Cached replies and failed connections are no requests."""
        return not self.cached and self.error != UnreachableError.__name__

    @property
    def count(self) -> float:
        """1, or the share of this question in a request that answers several."""
        return 1 if self.share is None else self.share

    @property
    def requests(self) -> float:
        """The number of requests that were sent: 1, a share of one, or 0."""
        return self.count if self.is_request else 0

    @property
    def tokens_paid(self) -> int | None:
        """The number of input and output tokens paid for; ``None`` if unknown."""
        if self.cached:
            return 0
        usage = self.usage
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            return usage.input_tokens + usage.output_tokens
        return 0 if self.error in _UNCHARGED else None

    @property
    def is_paid(self) -> bool:
        """Whether the call was charged, or may have been."""
        return self.tokens_paid != 0

    @property
    def usd_paid(self) -> float | None:
        """The amount paid in US dollars; ``None`` if the price or the tokens are unknown."""
        if self.cached:
            return 0.0
        return 0.0 if self.cost_usd is None and self.error in _UNCHARGED else self.cost_usd


class Explanation(NamedTuple):
    """The reason and the details of a score."""

    reason: str
    details: JsonObject


class Score(FrozenModel):
    """The score that one scorer gives one sample.

    Attributes:
        scorer: The name of the scorer.
        value: A number in [0, 1], where 1 is best. Set if and only if ``status`` is ``"scored"``.
        label: The verdict in one word, such as a label of the judge's scale. A score without a value can have one too,
            such as ``not_applicable``.
        status: ``skipped``: the question does not apply. ``failed``: it applies, but could not be answered.
            ``abstained``: the judge was asked and declined to decide. None of the three counts in a mean.
        reason: The explanation, for people to read.
        details: The data behind the value, sufficient to recompute it by hand.
        calls: The judge calls that were made for it.
        confidence: The judge's confidence in its verdict, in [0, 1]: the share of repeats or votes for it, or the
            probability of its tokens; ``None`` if unknown.
        error: The class of the error that caused a failure.
        aggregate: The way in which scores of many samples become one number: a name in `judgekit.aggregates.total`, or
            ``"package.module:function"``.
        warnings: Possible distortions of the value, in the same words for all affected samples.
    """

    scorer: str
    status: ScoreStatus
    value: _UnitNumber | None = None
    label: str | None = None
    calls: Many[JudgeCall] = ()
    confidence: _UnitNumber | None = None
    error: str | None = None
    aggregate: str = "mean"
    warnings: Many[str] = ()
    reason: str = ""
    details: JsonObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _value_if_and_only_if_scored(self) -> "Score":
        if (self.status == "scored") != (self.value is not None) or (self.value is not None and math.isnan(self.value)):
            raise ValueError(f"a {self.status} score cannot have the value {self.value}")
        return self

    @classmethod
    def scored(
        cls,
        scorer: str,
        value: float,
        *,
        reason: str = "",
        label: str | None = None,
        details: Mapping[str, JsonValue] | None = None,
        calls: Iterable[JudgeCall] = (),
        confidence: float | None = None,
        aggregate: str = "mean",
        warnings: Iterable[str] = (),
    ) -> "Score":
        """Return a score with a value in [0, 1]."""
        return cls(
            scorer=scorer,
            status="scored",
            value=value,
            label=label,
            calls=tuple(calls),
            confidence=confidence,
            aggregate=aggregate,
            warnings=tuple(warnings),
            reason=reason,
            details=dict(details or {}),
        )

    @classmethod
    def computed(cls, scorer: str, value: float, explanation: Explanation, warnings: Iterable[str] = ()) -> "Score":
        """Return a score with a value in [0, 1] that no judge gave, from parts that are valid for sure."""
        return construct(
            cls,
            {
                "scorer": scorer,
                "status": "scored",
                "value": value,
                "label": None,
                "calls": (),
                "confidence": None,
                "error": None,
                "aggregate": "mean",
                "warnings": tuple(warnings),
                "reason": explanation.reason,
                "details": explanation.details,
            },
        )

    @property
    def tokens_paid(self) -> int | None:
        """The number of tokens paid for; ``None`` if a provider did not report them."""
        paid = [call.tokens_paid for call in self.calls]
        return None if None in paid else sum(filter(None, paid))

    @property
    def usd_paid(self) -> float | None:
        """The cost of the judge calls in US dollars; ``None`` if a price is unknown."""
        paid = [call.usd_paid for call in self.calls]
        return None if None in paid else math.fsum(filter(None, paid))

    def diff(self) -> Diff:
        """Return expected and actual calls side by side, as far as the details contain them; it prints as a table."""
        return Diff.of(self.details)

    @classmethod
    def skipped(
        cls,
        scorer: str,
        reason: str,
        *,
        label: str | None = None,
        details: Mapping[str, JsonValue] | None = None,
        calls: Iterable[JudgeCall] = (),
    ) -> "Score":
        """Return a score for a sample to which the question does not apply; ``reason`` says why."""
        kept = dict(details or {})
        return cls(scorer=scorer, status="skipped", label=label, reason=reason, details=kept, calls=tuple(calls))

    @classmethod
    def failed(cls, scorer: str, reason: str, *, error: str | None = None, calls: Iterable[JudgeCall] = ()) -> "Score":
        """Return a score for a sample whose question applies but could not be answered; ``reason`` says why."""
        return cls(scorer=scorer, status="failed", reason=reason, error=error, calls=tuple(calls))

    @classmethod
    def abstained(
        cls,
        scorer: str,
        reason: str,
        *,
        label: str | None = None,
        details: Mapping[str, JsonValue] | None = None,
        calls: Iterable[JudgeCall] = (),
    ) -> "Score":
        """Return a score for a sample on which the judge declined to decide; ``reason`` says why."""
        kept = dict(details or {})
        return cls(scorer=scorer, status="abstained", label=label, reason=reason, details=kept, calls=tuple(calls))


_Value = TypeVar("_Value")


@contextmanager
def _set(variable: ContextVar[_Value], value: _Value) -> Generator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_ledgers: ContextVar[tuple[list[JudgeCall], ...]] = ContextVar("judgekit_ledgers", default=())


@contextmanager
def ledger(*, isolated: bool = False) -> Generator[list[JudgeCall]]:
    """Collect the judge calls made inside, as they happen, so that failed and canceled work keeps its cost.

    Outer ledgers collect the calls as well, unless this one is kept ``isolated`` from them.
    """
    calls: list[JudgeCall] = []
    with _set(_ledgers, (calls,) if isolated else (*_ledgers.get(), calls)):
        yield calls


current_repeat: ContextVar[int] = ContextVar("judgekit_repeat", default=0)
"""The index of the current repeat, from 0."""


def independent_repeat(index: int, of: int) -> AbstractContextManager[None]:
    """Ask judges for an independent verdict inside: repeat ``index`` of ``of``.

    Nested repeats are independent as well.
    """
    return _set(current_repeat, current_repeat.get() * of + index)


def record_calls(*new_calls: JudgeCall) -> None:
    """Add judge calls to all open ledgers."""
    for calls in _ledgers.get():
        calls.extend(new_calls)


current_run: ContextVar[str | None] = ContextVar("judgekit_run", default=None)
"""The id of the current run, if there is one."""


def in_run(run: str) -> AbstractContextManager[None]:
    """Charge costs inside to the run with this id."""
    return _set(current_run, run)


_scorers: ContextVar[tuple[object, ...]] = ContextVar("judgekit_scorers", default=())


def scored_by(scorer: object) -> AbstractContextManager[None]:
    """Mark the judge requests made inside, also through other scorers, as made by this scorer."""
    return _set(_scorers, (*_scorers.get(), scorer))


def check_declared(prompt: object, name: str) -> None:
    """Check that each scorer that currently asks a judge declares this prompt.

    Raises:
        ConfigError: A scorer does not declare it; the error says what to add.
    """
    for scorer in _scorers.get():
        missing = [name for name in ("prompts", "label_values", "has_confidence") if not hasattr(scorer, name)]
        if not missing and prompt in getattr(scorer, "prompts", ()):
            continue
        called = getattr(scorer, "name", type(scorer).__name__)
        what = f"has no {' and no '.join(missing)}" if missing else f"does not have {name!r} among its prompts"
        raise ConfigError(
            f"{called} asks a judge for {name!r}, but {what}: inherit from judgekit.JudgedScorer and list the prompt "
            "in prompts, or decorate a function with @scorer(judge=..., prompts=[...])"
        )


current_plan: ContextVar[MutableMapping[object, object] | None] = ContextVar("judgekit_plan", default=None)
"""The data that judges keep for the current plan, if there is one."""


def planning() -> AbstractContextManager[None]:
    """Send nothing inside: judges record their requests in the ledger and raise `PlannedError`."""
    return _set(current_plan, {})


cache_bypassed: ContextVar[bool] = ContextVar("judgekit_cache_bypassed", default=False)
"""Whether judges send each question, and neither read nor fill their caches."""


def bypass_cache() -> AbstractContextManager[None]:
    """Send all questions inside to the judges, also those that were answered before, and store no replies."""
    return _set(cache_bypassed, True)  # noqa: FBT003 - the value of a variable


_outages: ContextVar[MutableMapping[object, JudgeError] | None] = ContextVar("judgekit_outages", default=None)


def outage_memory() -> AbstractContextManager[None]:
    """Stop requests inside to servers that are down and judges without quota; afterwards, they are tried again."""
    return _set(_outages, {})


def known_outages() -> MutableMapping[object, JudgeError]:
    """Return the errors of servers that are down and quotas that are spent, by connection; callers may add to it."""
    outages = _outages.get()
    return {} if outages is None else outages
