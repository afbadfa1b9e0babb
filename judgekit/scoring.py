"""The contract of scorers: what one is, how a function becomes one, what identifies it, how it is run."""

import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date
from enum import Enum
from pathlib import PurePath
from types import FunctionType
from typing import Protocol, TypeAlias, TypeVar, cast, overload, runtime_checkable

from pydantic import BaseModel, JsonValue

from judgekit.errors import STOPS_RUN, ConfigError, shortened
from judgekit.score import Score, ledger
from judgekit.traces.given import must_be_sample
from judgekit.traces.sample import Sample

Result = TypeVar("Result")
Verdict: TypeAlias = Score | float | tuple[float, str]
Measure: TypeAlias = Callable[[Sample], Verdict | Awaitable[Verdict]]
NO_CONVERSATION = "the sample has no conversation"
"""Why a scorer that reads the conversation skips a sample without messages."""


@runtime_checkable
class Scorer(Protocol):
    """Measures one sample. One instance measures many at once, so it keeps no state."""

    @property
    def name(self) -> str:
        """What its scores are called in tables; unique within a run."""
        ...

    async def ascore(self, sample: Sample, /) -> Score:
        """The score of one sample. What it raises, `attempt` turns into a failed score."""
        ...


class Blocking:
    """Gives a scorer ``score``, the sync twin of ``ascore``."""

    def score(self: Scorer, sample: Sample, /) -> Score:
        """The score of one sample. Under a running event loop, as in a notebook, it uses a thread of its own.

        Raises:
            ConfigError: It is something else than a sample.
        """
        must_be_sample(sample, "what is scored")
        return wait_for(lambda: self.ascore(sample))


def wait_for(work: Callable[[], Coroutine[object, object, Result]]) -> Result:
    """The result of a coroutine, for callers that are not async. A running event loop is left alone."""
    import asyncio  # noqa: PLC0415 - a third of the time that importing a scorer would take
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    found: list[Result] = []

    async def keep() -> None:  # what a task returns is written out by asyncio.run, which takes its time
        found.append(await work())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(keep())
        return found[0]
    loop = asyncio.new_event_loop()
    context = copy_context()

    def finish() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(keep(), context=context)

    def stop() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()

    with ThreadPoolExecutor(1, "judgekit") as thread:
        try:
            thread.submit(finish).result()
        except KeyboardInterrupt:  # it reaches this thread alone; the work is to stop as it would have here
            with suppress(RuntimeError):  # it was done just now
                loop.call_soon_threadsafe(stop)
            raise
    return found[0]


async def all_done(work: Iterable[Coroutine[object, object, Score]]) -> list[Score]:
    """The scores of work that goes on at once. What is under way may finish, also where some of it stops the run."""
    import asyncio  # noqa: PLC0415 - as above

    scores: list[Score] = []
    for done in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done
        scores.append(done)
    return scores


async def attempt(scorer: Scorer, sample: Sample) -> Score:
    """The score of one sample: an error becomes a failed score with its reason and its cost.

    Raises:
        JudgekitError: The next sample would meet it too (`judgekit.errors.STOPS_RUN`).
    """
    with ledger() as calls:
        try:
            score = await scorer.ascore(sample)
            if not isinstance(score, Score):  # pyright: ignore[reportUnnecessaryIsInstance] - users may return anything
                raise TypeError(f"{scorer.name} returned {score!r} and no Score")
        except STOPS_RUN:
            raise
        except Exception as error:  # noqa: BLE001 - whatever else a scorer raises fails its sample and not the run
            kind = type(error).__name__
            reason = f"{kind}: {error}".encode(errors="backslashreplace").decode()
            return Score.failed(scorer.name, reason, error=kind, calls=calls)
    if score.scorer == scorer.name and len(calls) <= len(score.calls):
        return score
    return score.model_copy(update={"scorer": scorer.name, "calls": max(score.calls, tuple(calls), key=len)})


@dataclass(frozen=True)
class FunctionScorer(Blocking):
    """A function of a sample as a scorer; made by `scorer`."""

    function: Measure = field(repr=False, compare=False)
    name: str
    version: str

    async def ascore(self, sample: Sample, /) -> Score:
        """What the function returns, as a score."""
        found = self.function(sample)
        verdict = await found if inspect.isawaitable(found) else found
        if isinstance(verdict, Score):
            return verdict
        value: object
        value, reason = verdict if isinstance(verdict, tuple) else (verdict, "")
        if not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance] - users may return anything
            raise TypeError(f"{self.name} returned {value!r}; a scorer returns a number in [0, 1], or a Score")
        if not 0 <= value <= 1:
            raise ValueError(f"{self.name} returned {value!r}; a score lies in [0, 1], and 1 is best")
        return Score.scored(self.name, float(value), reason=reason)


@overload
def scorer(function: Measure, /) -> FunctionScorer: ...
@overload
def scorer(*, name: str | None = None, version: str | None = None) -> Callable[[Measure], FunctionScorer]: ...
def scorer(
    function: Measure | None = None, /, *, name: str | None = None, version: str | None = None
) -> FunctionScorer | Callable[[Measure], FunctionScorer]:
    """Turns a plain function of a sample, sync or async, into a scorer.

    The function returns a number in [0, 1], a pair of a number and a reason, or a `Score` (to skip a sample:
    ``Score.skipped(name, reason)``). What it raises becomes a failed score.

    Args:
        function: The function.
        name: What its scores are called; the function's name when not given.
        version: Change it when the same sample may get another score. The hash of the function's source when not given,
            which does not see a change in what the function calls.

    Example:
        >>> @scorer
        ... def says_please(sample: Sample) -> float:
        ...     return float("please" in sample.trace.messages[-1].text)
    """

    def decorate(function: Measure, /) -> FunctionScorer:
        called: str = getattr(function, "__name__", type(function).__name__)
        return FunctionScorer(function, name or called, version or source_version(function))

    return decorate if function is None else decorate(function)


def source_version(function: Callable[..., object]) -> str:
    """The hash of a function's source, or ``unknown`` where it cannot be read."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return "unknown"
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def signature(scorer: Scorer) -> str:
    """What a scorer's numbers depend on, as a hash: its class and all fields, its judge and the words of its prompts.

    Two scorers of one signature give the same score to the same sample, judges' moods aside.

    Raises:
        ConfigError: A field holds something that cannot be told from another of its kind, such as a function without
            a ``version``.
    """
    return hashlib.sha256(json.dumps(identity(scorer), sort_keys=True).encode()).hexdigest()[:16]


def identity(scorer: Scorer) -> JsonValue:
    """What a `signature` is the hash of, as JSON, to tell in what two scorers differ.

    Raises:
        ConfigError: As `signature`.
    """
    return cast("JsonValue", _identity(scorer))


def _identity(value: object) -> object:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, PurePath | date | Enum):
        return [kind, str(value)]
    if isinstance(value, BaseModel):
        # What is left out of JSON does not change the score either.
        kept = [name for name, one in type(value).model_fields.items() if not one.exclude]
        return [kind, {name: _identity(getattr(value, name)) for name in kept}]
    if isinstance(value, dict):
        return {str(key): _identity(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_identity(item) for item in cast("list[object]", value)]
    if callable(value) and not is_dataclass(value):
        version = getattr(value, "version", None)
        if not isinstance(version, str):
            raise ConfigError(f"{value!r} needs a version (a text attribute) to tell its scores from older ones")
        return [getattr(value, "__qualname__", kind), version]
    if is_dataclass(value):
        # Fields that are not compared do not change the score: where replies are kept, how many requests go at once.
        held = {one.name: _identity(getattr(value, one.name)) for one in fields(value) if one.compare}
        return [kind, held, _identity(getattr(value, "prompts", None))]
    raise ConfigError(f"{value!r} cannot be part of a scorer's signature; make the scorer a dataclass")


def scorers_in(found: object) -> tuple[Scorer, ...]:
    """Return the scorers in a collection.

    Raises:
        ConfigError: It is no collection, or something in it is no scorer; the error says what to write.
    """
    if _is_scorer(found):
        raise ConfigError("scorers is one scorer: put it into a list, [scorer]")
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ConfigError(f"scorers is {_no_scorer(found)}; scorers are given in a list")
    given = cast("Iterable[object]", found)
    return tuple(must_be_scorer(one, f"scorers[{place}]") for place, one in enumerate(given))


def must_be_scorer(found: object, called: str) -> Scorer:
    """Return a scorer as it is.

    Raises:
        ConfigError: It is something else, which the error names by what it is ``called``.
    """
    if _is_scorer(found):
        return cast("Scorer", found)
    raise ConfigError(f"{called} is {_no_scorer(found)}")


def _is_scorer(found: object) -> bool:
    return isinstance(found, Scorer) and not isinstance(found, type)


def _no_scorer(found: object) -> str:
    """Return what is found in the place of a scorer, and what to write for it."""
    if isinstance(found, type) and hasattr(found, "ascore"):
        return f"the class {found.__name__}: call it, {found.__name__}({', '.join(_needed(found))})"
    if isinstance(found, Sample):
        return "a Sample: the samples come first, run(samples, scorers)"
    if isinstance(found, str):
        told = "a scorer goes by its name on the command line alone; in Python it is an object, such as ToolCallF1()"
        return f"{shortened(found)}: {told}"
    if isinstance(found, FunctionType):
        is_named = found.__name__.isidentifier()
        return f"the function {found.__name__}: {'put @scorer above it' if is_named else 'write scorer(name=...)(function)'}"
    return f"{shortened(found)}: a scorer is an object such as ToolCallF1()"


def _needed(kind: type) -> Iterator[str]:
    """Return the options that a class cannot do without."""
    for one in fields(kind) if is_dataclass(kind) else ():
        if one.default is MISSING and one.default_factory is MISSING:
            yield one.name
