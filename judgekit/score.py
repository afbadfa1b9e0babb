"""Scores of samples, and the ledger of the judge calls made for them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer, model_validator

from judgekit.diff import Diff
from judgekit.errors import UNCHARGED, ConfigError, JudgeError, UnreachableError, count_text
from judgekit.traces.message import FrozenModel, JsonObject, Many, Usage, construct

ScoreStatus: TypeAlias = Literal["scored", "skipped", "failed", "abstained"]
STATUSES: tuple[ScoreStatus, ...] = get_args(ScoreStatus)
ScaleValue: TypeAlias = Annotated[float, Field(ge=0, le=1)] | Literal["skipped", "abstained"]
"""The value of a judge's choice: a number in [0, 1], or the status of a score without a value."""

NOT_APPLICABLE_LABELS = ("not applicable", "not_applicable", "n/a")
"""Labels of any scale that say that the question does not apply to a sample."""
_YES = frozenset({"yes", "pass", "true"})
_NO = frozenset({"no", "fail", "false"})

_UNCHARGED = {error.__name__ for error in UNCHARGED}


def verdict_value(verdict: bool | float | str, scale: Mapping[str, ScaleValue]) -> ScaleValue | None:  # noqa: FBT001
    """Return the value of a label or number on a scale; ``None`` if it has none.

    Labels of the scale take precedence, in any case, so that ``1`` may be its lowest one. Else, a number in [0, 1] is
    its own value, yes, pass and true are 1, no, fail and false are 0, and "n/a" or "not applicable" is ``"skipped"``.
    """
    text = f"{verdict:g}" if isinstance(verdict, float) else str(verdict)
    folded = text.casefold()
    in_any_case: dict[str, ScaleValue] = {name.casefold(): value for name, value in scale.items()}
    found = scale.get(text)
    found = in_any_case.get(folded) if found is None else found
    if found is not None:
        return found
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
        model: The model as reported by the provider, also for cached replies; ``None`` if not reported.
        system_fingerprint: The provider's fingerprint of the system, also for cached replies; ``None`` if not reported.
        cached: Whether the reply came from the cache. It then cost nothing.
        usage: The token counts, for cached replies those of the original request; ``None`` if not reported.
        cost_usd: The cost in US dollars; ``None`` if the price is unknown.
        price_list: The list that the price comes from, such as ``litellm 1.106.2``; ``None`` if there is none.
        seconds: The duration in seconds.
        error: The class of the error; ``None`` if there was none.
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
    seconds: float = 0.0
    error: str | None = None
    exchange: JudgeExchange | None = Field(default=None, exclude=True, repr=False)

    @property
    def is_request(self) -> bool:
        """Whether a server was reached. Cached replies and failed connections are no requests."""
        return not self.cached and self.error != UnreachableError.__name__

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


class Explanation(FrozenModel):
    """The reason and the details of a score."""

    reason: str
    details: JsonObject

    @classmethod
    def from_valid(cls, reason: str, details: JsonObject) -> "Explanation":
        """Return an explanation without validating it, which takes longer than most explanations."""
        return construct(cls, {"reason": reason, "details": details})


ExplainFunction: TypeAlias = Callable[[], tuple[str, Mapping[str, JsonValue]] | Explanation]
"""A function that returns a reason and details; an `Explanation` is not validated once more."""


class Score(FrozenModel):  # noqa: PLW1641 - like any record with a dictionary, it has no hash
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
        confidence: The judge's confidence in its verdict, in [0, 1]: the share of draws or votes for it, or the
            probability of its tokens; ``None`` if unknown.
        error: The class of the error that caused a failure.
        aggregate: The way in which scores of many samples become one number: a name in `judgekit.aggregates.total`, or
            ``"package.module:function"``.
        warnings: Possible distortions of the value, in the same words for all affected samples.
    """

    __slots__ = ("_explain",)  # computes the reason and the details on first access; until then they are not set

    scorer: str
    status: ScoreStatus
    value: float | None = Field(default=None, ge=0, le=1)
    label: str | None = None
    calls: Many[JudgeCall] = ()
    confidence: float | None = Field(default=None, ge=0, le=1)
    error: str | None = None
    aggregate: str = "mean"
    warnings: Many[str] = ()
    reason: str = ""  # the reason and the details are last, since they may be set last
    details: JsonObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _value_if_and_only_if_scored(self) -> "Score":
        if (self.status == "scored") != (self.value is not None) or (self.value is not None and math.isnan(self.value)):
            raise ValueError(f"a {self.status} score cannot have the value {self.value}")
        return self

    def _explained(self) -> "Score":
        """Return the score itself, after the reason and the details are set.

        Two threads may both compute them; one result is kept.
        """
        fields = vars(self)
        explain: ExplainFunction | None = None if "details" in fields else object.__getattribute__(self, "_explain")
        if explain is not None:
            try:
                told = explain()
            except AttributeError as error:  # raised here, it would look as if the field did not exist
                raise RuntimeError(f"a score could not be explained: AttributeError: {error}") from error
            if not isinstance(told, Explanation):
                reason, details = told
                told = Explanation(reason=reason, details=dict(details))
            fields.setdefault("reason", told.reason)
            fields.setdefault("details", told.details)
            object.__setattr__(self, "_explain", None)  # frees what only the explanation needs
        return self

    if not TYPE_CHECKING:  # everything that handles a record as a whole needs the reason and the details

        def __getattr__(self, name: str) -> object:
            if name in {"reason", "details"}:
                return self._explained().__dict__[name]
            return super().__getattr__(name)

        def __eq__(self, other: object) -> bool:
            if isinstance(other, Score):
                other._explained()
            return super(Score, self._explained()).__eq__(other)

        def __iter__(self) -> Iterator[tuple[str, object]]:
            return super(Score, self._explained()).__iter__()

        def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
            return super(Score, self._explained()).__repr_args__()

        def __copy__(self) -> "Score":
            return super(Score, self._explained()).__copy__()

        def __deepcopy__(self, memo: dict[int, object] | None = None) -> "Score":
            return super(Score, self._explained()).__deepcopy__(memo)

        def __getstate__(self) -> dict[object, object]:
            return super(Score, self._explained()).__getstate__()

        @model_serializer(mode="wrap")
        def _serialize(self, write: SerializerFunctionWrapHandler):  # noqa: ANN202 - would become the JSON schema
            return write(self._explained())

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
        explain: ExplainFunction | None = None,
    ) -> "Score":
        """Return a score with a value in [0, 1].

        ``explain`` computes the reason and the details on first access and replaces these arguments. If it raises an
        error, the access raises it, and the next access calls it again.
        """
        fields: dict[str, Any] = {
            "scorer": scorer,
            "status": "scored",
            "value": value,
            "label": label,
            "calls": tuple(calls),
            "confidence": confidence,
            "error": None,
            "aggregate": aggregate,
            "warnings": tuple(warnings),
        }
        if explain is None:
            return cls(**fields, reason=reason, details=dict(details or {}))
        if reason or details:
            raise TypeError("pass either a reason and details, or explain, not both")
        is_plain = label is None and confidence is None and aggregate == "mean" and not (calls or warnings)
        if not (
            is_plain
            and cls is Score
            and type(scorer) is str
            and scorer.isascii()
            and type(value) is float
            and 0 <= value <= 1
        ):
            valid = cls(**fields)
            fields = {name: getattr(valid, name) for name in fields}
        return cls.from_valid(fields, explain)

    @classmethod
    def from_valid(cls, fields: dict[str, object], explain: ExplainFunction) -> "Score":
        """Return a score of all its fields but the reason and the details, which ``explain`` computes.

        The fields are not validated, which would take most of the time of a fast scorer, and of reading a stored score.
        """
        score = construct(cls, fields)
        _set_explain(score, explain)
        return score

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

    def _repr_html_(self) -> str:
        from judgekit.notebook import details_html, fragment, text_block  # noqa: PLC0415 - only notebooks need it

        value = self.status if self.value is None else f"{self.value:.3f}"
        head = value if self.label is None else f"{value} ({self.label})"
        lines = filter(None, (self.reason, *self._notes()))
        return fragment(text_block(head, self.scorer), *map(text_block, lines), details_html(self.details))

    def _notes(self) -> Iterator[str]:
        """Yield notes on the confidence, the warnings and the cost."""
        if self.confidence is not None:
            yield f"confidence {self.confidence:.2f}"
        yield from (f"warning: {warning}" for warning in self.warnings)
        if self.calls:
            cached, tokens, usd = sum(call.cached for call in self.calls), self.tokens_paid, self.usd_paid
            judges = ", ".join(dict.fromkeys(call.judge for call in self.calls))
            took = "tokens unknown" if tokens is None else count_text(tokens, "token")
            cost = "cost unknown" if usd is None else f"${usd:.4f}"
            yield f"{count_text(len(self.calls), 'call')} of {judges}, {cached:,} from cache: {took}, {cost}"

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


_set_explain = vars(Score)["_explain"].__set__

_Value = TypeVar("_Value")
_Entered = TypeVar("_Entered")


class _Setting(
    AbstractContextManager[_Entered]
):  # every score enters three of these, and a generator takes twice as long
    """A context in which a variable has a value; entering it returns ``entered``."""

    __slots__ = ("_entered", "_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[_Value], value: _Value, entered: _Entered) -> None:
        self._variable: ContextVar[Any] = variable
        self._value = value
        self._entered = entered

    def __enter__(self) -> _Entered:
        self._token = self._variable.set(self._value)
        return self._entered

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


def _set(variable: ContextVar[_Value], value: _Value) -> AbstractContextManager[None]:
    return _Setting(variable, value, None)


_ledgers: ContextVar[tuple[list[JudgeCall], ...]] = ContextVar("judgekit_ledgers", default=())


def ledger(*, isolated: bool = False) -> AbstractContextManager[list[JudgeCall]]:
    """Collect the judge calls made inside, as they happen, so that failed and cancelled work keeps its cost.

    Outer ledgers collect the calls as well, unless this one is kept ``isolated`` from them.
    """
    calls: list[JudgeCall] = []
    return _Setting(_ledgers, (calls,) if isolated else (*_ledgers.get(), calls), calls)


_draw: ContextVar[int] = ContextVar("judgekit_draw", default=0)


def independent_draw(index: int, of: int) -> AbstractContextManager[None]:
    """Ask judges for an independent verdict inside: draw ``index`` of ``of``.

    Nested draws are independent as well.
    """
    return _set(_draw, _draw.get() * of + index)


def current_draw() -> int:
    """Return the index of the current draw, from 0."""
    return _draw.get()


def record_calls(*new_calls: JudgeCall) -> None:
    """Add judge calls to all open ledgers."""
    for calls in _ledgers.get():
        calls.extend(new_calls)


_run: ContextVar[str | None] = ContextVar("judgekit_run", default=None)


def in_run(run: str) -> AbstractContextManager[None]:
    """Charge costs inside to the run with this id."""
    return _set(_run, run)


def current_run() -> str | None:
    """Return the id of the current run, if there is one."""
    return _run.get()


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
        missing = [one for one in ("prompts", "label_values", "has_confidence") if not hasattr(scorer, one)]
        if not missing and prompt in getattr(scorer, "prompts", ()):
            continue
        called = getattr(scorer, "name", type(scorer).__name__)
        what = f"has no {' and no '.join(missing)}" if missing else f"does not have {name!r} among its prompts"
        raise ConfigError(
            f"{called} asks a judge for {name!r}, but {what}: inherit from judgekit.JudgedScorer and list the prompt "
            "in prompts, or decorate a function with @scorer(judge=..., prompts=[...])"
        )


_plan: ContextVar[MutableMapping[object, object] | None] = ContextVar("judgekit_plan", default=None)


def planning() -> AbstractContextManager[None]:
    """Send nothing inside: judges record their requests in the ledger and raise `PlannedError`."""
    return _set(_plan, {})


def current_plan() -> MutableMapping[object, object] | None:
    """Return the data that judges keep for the current plan, if there is one."""
    return _plan.get()


_outages: ContextVar[MutableMapping[object, JudgeError] | None] = ContextVar("judgekit_outages", default=None)


def outage_memory() -> AbstractContextManager[None]:
    """Stop requests inside to servers that are down and judges without quota; afterwards, they are tried again."""
    return _set(_outages, {})


def known_outages() -> MutableMapping[object, JudgeError]:
    """Return the errors of servers that are down and quotas that are spent, by connection; callers may add to it."""
    known = _outages.get()
    return {} if known is None else known
