"""Scores of samples, and the ledger of judge calls that were paid on the way."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import GetSetDescriptorType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, Field, JsonValue, model_validator

from judgekit.diff import Diff
from judgekit.errors import UNCHARGED, ConfigError, JudgeError, UnreachableError, number_of
from judgekit.traces.message import Many, Record, Usage

Status: TypeAlias = Literal["scored", "skipped", "failed", "abstained"]
STATUSES: tuple[Status, ...] = get_args(Status)
Grade: TypeAlias = Annotated[float, Field(ge=0, le=1)] | Literal["skipped", "abstained"]
"""The worth of a judge's choice: a value in [0, 1], or the status of a score that has none."""
Explain: TypeAlias = Callable[[], tuple[str, Mapping[str, JsonValue]]]
"""Gives a reason and details."""

_UNCHARGED = {error.__name__ for error in UNCHARGED}


class Exchange(Record):
    """The messages to a judge, as pairs of role and text, and the reply as it came; ``None`` if none came."""

    messages: Many[tuple[str, str]]
    reply: str | None = None


class JudgeCall(Record):
    """One request to a judge, also one that failed or never reached its server.

    ``prompt`` is the prompt with its version. ``model`` and ``system_fingerprint`` are what the provider reported with
    the reply, also with one that is cached since; ``None`` where it reported none. ``cost_usd`` is ``None`` where the
    price is unknown; ``price_list`` is the list that it was taken from, such as ``litellm 1.106.2``, if it was.
    ``cached`` replies cost nothing; their usage is what they once cost. ``exchange`` is no part of it as JSON: a run
    keeps it apart.
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
    exchange: Exchange | None = Field(default=None, exclude=True, repr=False)

    @property
    def is_request(self) -> bool:
        """Whether a server was reached for it. Cached replies and connections that failed are no requests."""
        return not self.cached and self.error != UnreachableError.__name__

    @property
    def tokens_paid(self) -> int | None:
        """Input and output tokens that were paid for; ``None`` where nobody said."""
        if self.cached:
            return 0
        usage = self.usage
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            return usage.input_tokens + usage.output_tokens
        return 0 if self.error in _UNCHARGED else None

    @property
    def is_paid(self) -> bool:
        """Whether it cost anything, or may have."""
        return self.tokens_paid != 0

    @property
    def usd_paid(self) -> float | None:
        """The amount paid in US dollars; ``None`` where the price or the tokens are unknown."""
        if self.cached:
            return 0.0
        return 0.0 if self.cost_usd is None and self.error in _UNCHARGED else self.cost_usd


_held = cast("GetSetDescriptorType", vars(BaseModel)["__dict__"])
"""The dictionary that a record keeps its fields in."""


class _Explained(Record):
    """A record whose ``reason`` and ``details`` may be made when somebody first looks at them.

    Until then its dictionary holds what makes them in their place. Whatever sees a record as a whole (what writes,
    compares, prints or copies it) asks for its ``__dict__``, so that this is where they are made. Other fields are read
    past it, as fast as ever. Two threads may both make them; one result stays.
    """

    def _explain_with(self, explain: Explain) -> None:
        fields: dict[str, object] = _held.__get__(self)
        del fields["reason"], fields["details"]
        fields["_explain"] = explain

    if not TYPE_CHECKING:

        @property
        def __dict__(self) -> dict[str, object]:
            fields = _held.__get__(self)
            if "_explain" not in fields:
                return fields
            told = dict(fields)
            try:
                reason, details = told.pop("_explain")()
            except AttributeError as error:  # from here it would mean that a score has no fields
                raise RuntimeError(f"a score could not be explained: AttributeError: {error}") from error
            explained = type(self)(**told, reason=reason, details=dict(details))
            _held.__set__(self, explained.__dict__)
            return explained.__dict__

        __dict__ = __dict__.setter(_held.__set__)

        def __getattr__(self, name: str) -> object:
            if name in {"reason", "details"} and name in self.__dict__:
                return self.__dict__[name]
            return super().__getattr__(name)


class Score(_Explained):
    """The score that one scorer gives one sample.

    Attributes:
        value: In [0, 1], 1 is best. Set if and only if ``status`` is ``"scored"``.
        label: The verdict in a word, such as a label of the judge's scale; also of a score without a value, such as
            ``not_applicable``.
        status: ``skipped``: the question does not apply. ``failed``: it applies, and could not be answered.
            ``abstained``: the judge was asked and declined to decide. None of the three enters a mean.
        reason: Why, in words for a person.
        details: What the number was made of, so that it can be recomputed by hand.
        calls: The judge calls it took.
        confidence: How sure the judge is of its verdict, in [0, 1]: the share of draws or votes for it, or how likely
            its tokens made it; ``None`` where nobody can tell.
        error: The class of the error that failed it.
        aggregate: How scores of many samples become one number: a name in `judgekit.aggregates.total`, or
            ``"package.module:function"``.
        warnings: What may make the value another than it seems, in words that are the same for all such samples.
    """

    scorer: str
    status: Status
    value: float | None = Field(default=None, ge=0, le=1)
    label: str | None = None
    reason: str = ""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    calls: Many[JudgeCall] = ()
    confidence: float | None = Field(default=None, ge=0, le=1)
    error: str | None = None
    aggregate: str = "mean"
    warnings: Many[str] = ()

    @model_validator(mode="after")
    def _value_if_and_only_if_scored(self) -> "Score":
        if (self.status == "scored") != (self.value is not None) or (self.value is not None and math.isnan(self.value)):
            raise ValueError(f"a score that is {self.status} cannot have the value {self.value}")
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
        explain: Explain | None = None,
    ) -> "Score":
        """A score with a value in [0, 1].

        ``explain`` makes the reason and the details, in the place of these, when somebody first looks at them. What it
        raises reaches whoever looks, and the next look asks it again.
        """
        if explain is not None and (reason or details):
            raise TypeError("a score has a reason and details, or what explains it, and not both")
        score = cls(
            scorer=scorer,
            status="scored",
            value=value,
            label=label,
            reason=reason,
            details=dict(details or {}),
            calls=tuple(calls),
            confidence=confidence,
            aggregate=aggregate,
            warnings=tuple(warnings),
        )
        if explain is not None:
            score._explain_with(explain)
        return score

    @classmethod
    def kept(cls, explain: Explain, **fields: Any) -> "Score":
        """A score as it was kept: its fields are not looked at again, and reason and details only when asked for."""
        score = cls.model_construct(None, reason="", details={}, **fields)
        score._explain_with(explain)  # noqa: SLF001 - it is one of its own
        return score

    @property
    def tokens_paid(self) -> int | None:
        """The tokens of its calls that were paid for; ``None`` where a provider did not report them."""
        paid = [call.tokens_paid for call in self.calls]
        return None if None in paid else sum(filter(None, paid))

    @property
    def usd_paid(self) -> float | None:
        """The cost of its calls in US dollars; ``None`` where a price is unknown."""
        paid = [call.usd_paid for call in self.calls]
        return None if None in paid else math.fsum(filter(None, paid))

    def _repr_html_(self) -> str:
        from judgekit.notebook import details_html, fragment, line  # noqa: PLC0415 - of no use elsewhere

        value = self.status if self.value is None else f"{self.value:.3f}"
        head = value if self.label is None else f"{value} ({self.label})"
        lines = filter(None, (self.reason, *self._notes()))
        return fragment(line(head, self.scorer), *map(line, lines), details_html(self.details))

    def _notes(self) -> Iterator[str]:
        """Yield notes that belong to the value and its reason."""
        if self.confidence is not None:
            yield f"confidence {self.confidence:.2f}"
        yield from (f"warning: {warning}" for warning in self.warnings)
        if self.calls:
            cached, tokens, usd = sum(call.cached for call in self.calls), self.tokens_paid, self.usd_paid
            judges = ", ".join(dict.fromkeys(call.judge for call in self.calls))
            took = "tokens unknown" if tokens is None else number_of(tokens, "token")
            cost = "cost unknown" if usd is None else f"${usd:.4f}"
            yield f"{number_of(len(self.calls), 'call')} of {judges}, {cached:,} from cache: {took}, {cost}"

    def diff(self) -> Diff:
        """Expected and made calls side by side, as far as ``details`` says which there were; ``print`` shows a table."""
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
        """The question does not apply to this sample; ``reason`` says why."""
        kept = dict(details or {})
        return cls(scorer=scorer, status="skipped", label=label, reason=reason, details=kept, calls=tuple(calls))

    @classmethod
    def failed(cls, scorer: str, reason: str, *, error: str | None = None, calls: Iterable[JudgeCall] = ()) -> "Score":
        """The question applies and could not be answered; ``reason`` says why."""
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
        """The judge was asked and did not decide; ``reason`` says why."""
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
def ledger(*, apart: bool = False) -> Generator[list[JudgeCall]]:
    """Collect the judge calls made inside, as they happen, so that work that fails or is cancelled keeps its cost.

    Ledgers that are open already collect them too, unless this one is kept ``apart`` from them.
    """
    calls: list[JudgeCall] = []
    with _set(_ledgers, (calls,) if apart else (*_ledgers.get(), calls)):
        yield calls


_draw: ContextVar[int] = ContextVar("judgekit_draw", default=0)


def drawing(index: int, of: int) -> AbstractContextManager[None]:
    """Asks judges for an independent verdict: what is asked inside is the draw ``index`` out of ``of``.

    Draws within draws are told apart too.
    """
    return _set(_draw, _draw.get() * of + index)


def current_draw() -> int:
    """Which of the independent verdicts is asked for here, from 0."""
    return _draw.get()


def record(*made: JudgeCall) -> None:
    """Write judge calls into every ledger that is open here."""
    for calls in _ledgers.get():
        calls.extend(made)


_run: ContextVar[str | None] = ContextVar("judgekit_run", default=None)


def in_run(run: str) -> AbstractContextManager[None]:
    """Let what is spent inside count for a run, by its id."""
    return _set(_run, run)


def current_run() -> str | None:
    """Return the id of the run that counts here, if there is one."""
    return _run.get()


_scorers: ContextVar[tuple[object, ...]] = ContextVar("judgekit_scorers", default=())


def scored_by(scorer: object) -> AbstractContextManager[None]:
    """Say which scorer asks judges inside, also through other scorers."""
    return _set(_scorers, (*_scorers.get(), scorer))


def must_be_declared(prompt: object, name: str) -> None:
    """Check that each scorer that asks for this prompt here declares it.

    Raises:
        ConfigError: One does not; the error says what to add.
    """
    for scorer in _scorers.get():
        missing = [one for one in ("prompts", "label_values", "has_confidence") if not hasattr(scorer, one)]
        if not missing and prompt in getattr(scorer, "prompts", ()):
            continue
        called = getattr(scorer, "name", type(scorer).__name__)
        what = f"has no {' and no '.join(missing)}" if missing else f"does not have {name!r} among its prompts"
        raise ConfigError(
            f"{called} asks a judge for {name!r}, and {what}: inherit from judgekit.JudgedScorer and return what it asks "
            "in prompts; above a function write @scorer(judge=..., prompts=[...])"
        )


_plan: ContextVar[MutableMapping[object, object] | None] = ContextVar("judgekit_plan", default=None)


def planning() -> AbstractContextManager[None]:
    """Send nothing inside: judges write into the ledger what they would ask, and raise `PlannedError`."""
    return _set(_plan, {})


def current_plan() -> MutableMapping[object, object] | None:
    """Return what judges keep for the plan that is made here, if there is one."""
    return _plan.get()


_outages: ContextVar[MutableMapping[object, JudgeError] | None] = ContextVar("judgekit_outages", default=None)


def remembering_outages() -> AbstractContextManager[None]:
    """Send nothing more inside to a server that is down, or a judge whose quota is spent. What comes later tries again."""
    return _set(_outages, {})


def known_outages() -> MutableMapping[object, JudgeError]:
    """Return why servers are down and quotas spent, by what judges know of their connections, to read and to add to."""
    known = _outages.get()
    return {} if known is None else known
