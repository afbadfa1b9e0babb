"""The contract of scorers: the protocols, scorers made of functions, signatures, and running a scorer."""

import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import FunctionType
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, cast, overload, runtime_checkable

from pydantic import BaseModel, JsonValue

from judgekit.errors import STOPS, ConfigError, JudgekitError, error_with_location, short_repr
from judgekit.score import ScaleValue, Score, ledger, rounded_to_unit, scored_by
from judgekit.threads import run_in_thread
from judgekit.traces.sample import Sample
from judgekit.traces.tree import Scope
from judgekit.traces.validation import check_sample

Result = TypeVar("Result")
ScorerKind = TypeVar("ScorerKind", bound="Scorer")
ScorerResult: TypeAlias = Score | float | tuple[float, str]
ScoreCall: TypeAlias = Callable[[Sample], Awaitable[Score]]
ScorerFunction: TypeAlias = Callable[[Sample], ScorerResult | Awaitable[ScorerResult]]
NO_CONVERSATION = "the sample has no conversation"
"""The reason why scorers of conversations skip a sample without messages."""


@runtime_checkable
class Scorer(Protocol):
    """An object that scores samples, one at a time.

    A single instance scores many samples concurrently, possibly in several threads, so it must be thread-safe. ``ascore``
    runs on the event loop and must not block it: work that takes seconds belongs in a thread (``asyncio.to_thread``).
    """

    @property
    def name(self) -> str:
        """The name of its scores in tables, which is unique within a run."""
        ...

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample. `attempt` turns errors into failed scores."""
        ...


class JudgePrompt(Protocol):
    """A question to a judge, such as the result of `judgekit.load_prompt`."""

    @property
    def description(self) -> str:
        """The question in one sentence."""
        ...

    @property
    def scale(self) -> Sequence[tuple[str, ScaleValue]]:
        """The labels that the judge chooses from, with their values; empty if there is no choice."""
        ...

    @property
    def instructions(self) -> str:
        """The complete question, with the names of the inputs as placeholders."""
        ...

    @property
    def inputs(self) -> Sequence[str]:
        """The required inputs of a sample."""
        ...

    @property
    def optional(self) -> Sequence[str]:
        """The optional inputs of a sample."""
        ...


@runtime_checkable
class JudgedScorerProtocol(Protocol):
    """A scorer that asks a judge, with declarations beyond its name and ``ascore``.

    The prompts are part of its signature, and reports, audits and label sheets show them. Asking a judge for an
    undeclared prompt is an error. Inherit from `judgekit.JudgedScorer` for the defaults.
    """

    @property
    def prompts(self) -> Sequence[JudgePrompt]:
        """All prompts that the scorer may use; none if, with its settings, it asks no judge."""
        ...

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels; empty if they are those of the first prompt's scale."""
        ...

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence."""
        ...


def scorer_prompts(scorer: object) -> Sequence[JudgePrompt]:
    """Return the questions that a scorer asks a judge; none if it asks no judge."""
    return getattr(scorer, "prompts", ())


def scorer_label_values(scorer: object) -> Mapping[str, ScaleValue]:
    """Return the values of a scorer's labels, if its prompts do not define them."""
    return getattr(scorer, "label_values", {})


def scorer_scope(scorer: object) -> Scope:
    """Return the part of a recording that a scorer looks at."""
    return getattr(scorer, "scope", "tree")


def has_confidence(scorer: object) -> bool:
    """Return whether a scorer's scores may have a confidence, as far as is known before the judge is asked."""
    return getattr(scorer, "has_confidence", True)


class SyncScore:
    """A mixin that adds ``score``, the blocking version of ``ascore``."""

    name: str

    def score(self: Scorer, sample: Sample, /) -> Score:
        """Return the score of one sample. Under a running event loop, as in a notebook, a separate thread is used.

        Raises:
            ConfigError: The argument is not a sample.
        """
        check_sample(sample, "what is scored")
        return run_sync(lambda: self.ascore(sample))


_LOOK = 0.1
"""Seconds between wake-ups of the main thread, which must be awake to handle a signal received by another thread."""


def run_sync(make_coroutine: Callable[[], Coroutine[object, object, Result]]) -> Result:
    """Return the result of a coroutine to synchronous code. A running event loop is left alone."""
    import asyncio  # noqa: PLC0415 - would take a third of the time to import a scorer
    from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415

    results: list[Result] = []

    async def keep() -> None:  # asyncio.run formats the result of its task, which is slow
        results.append(await make_coroutine())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(keep())
        return results[0]
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
            working = thread.submit(finish)
            while not working.done():
                wait((working,), _LOOK)
            working.result()
        except KeyboardInterrupt:  # only this thread receives it, so the work is canceled here
            with suppress(RuntimeError):  # the work has just finished
                loop.call_soon_threadsafe(stop)
            raise
    return results[0]


async def compute_score(compute: Callable[[], Score], *, large: bool) -> Score:
    """Return the score that sync work computes. For large samples, a worker thread computes and explains it."""
    return await run_in_thread(compute) if large else compute()


async def attempt(scorer: Scorer, sample: Sample, call: ScoreCall | None = None) -> Score:
    """Return the score that ``ascore``, or ``call``, gives a sample. Errors become failed scores with their reason and cost.

    Raises:
        JudgekitError: The next sample would raise the same error (`judgekit.errors.STOPS`).
    """
    with ledger() as calls, scored_by(scorer):
        try:
            score = await (call or scorer.ascore)(sample)
            if not isinstance(score, Score):  # pyright: ignore[reportUnnecessaryIsInstance] - users may return anything
                raise TypeError(f"{scorer.name} returned {score!r} instead of a Score")
        except BaseException as error:
            if isinstance(error, STOPS) or _ends_work(error):
                raise
            kind = type(error).__name__
            text = f"{kind}: {error}" if isinstance(error, JudgekitError) else error_with_location(error)
            reason = text.encode(errors="backslashreplace").decode()
            return Score.failed(scorer.name, reason, error=kind, calls=calls)
    if score.scorer == scorer.name and len(calls) <= len(score.calls):
        return score
    return score.model_copy(update={"scorer": scorer.name, "calls": max(score.calls, tuple(calls), key=len)})


def _ends_work(error: BaseException) -> bool:
    """Return whether an error ends the work and not only the sample, unlike any other error of a scorer."""
    import asyncio  # noqa: PLC0415 - as above

    return isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt | SystemExit)


@dataclass(frozen=True)
class FunctionScorer(SyncScore):
    """A scorer made of a function of a sample by `scorer`."""

    function: ScorerFunction = field(repr=False, compare=False)
    name: str
    version: str | None
    judge: object = None
    prompts: tuple[JudgePrompt, ...] = ()
    label_values: ClassVar[Mapping[str, ScaleValue]] = {}
    has_confidence: ClassVar[bool] = True  # a function may return a score with a confidence

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the function's result as a score. Sync functions run in a worker thread, async ones on the loop."""
        returned: ScorerResult | Awaitable[ScorerResult]
        if inspect.iscoroutinefunction(self.function):
            returned = self.function(sample)
        else:
            measured: Callable[[], ScorerResult | Awaitable[ScorerResult]] = partial(self.function, sample)
            returned = await run_in_thread(measured)
        verdict: ScorerResult = await returned if inspect.isawaitable(returned) else returned
        if isinstance(verdict, Score):
            return verdict
        value: object
        value, reason = verdict if isinstance(verdict, tuple) else (verdict, "")
        number = rounded_to_unit(value)
        if not isinstance(number, float):
            raise TypeError(f"{self.name} returned {value!r}; expected a number in [0, 1] or a Score")
        if not 0 <= number <= 1:
            raise ValueError(f"{self.name} returned {value!r}; expected a number in [0, 1], where 1 is best")
        return Score.scored(self.name, number, reason=reason)


class SyncScorer(Scorer, Protocol):
    """A scorer with ``score``, the blocking version of ``ascore``."""

    def score(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        ...


@overload
def scorer(candidate: Scorer, /) -> SyncScorer: ...
@overload
def scorer(candidate: type[ScorerKind], /) -> type[ScorerKind]: ...
@overload
def scorer(function: ScorerFunction, /) -> FunctionScorer: ...
@overload
def scorer(
    *, name: str | None = None, version: str | None = None, judge: object = None, prompts: Sequence[JudgePrompt] = ()
) -> Callable[[ScorerFunction], FunctionScorer]: ...
def scorer(
    function: ScorerFunction | Scorer | type[ScorerKind] | None = None,
    /,
    *,
    name: str | None = None,
    version: str | None = None,
    judge: object = None,
    prompts: Sequence[JudgePrompt] = (),
) -> SyncScorer | type[ScorerKind] | Callable[[ScorerFunction], FunctionScorer]:
    """Turn a function of a sample, sync or async, into a scorer, or give a class of scorers ``score``.

    A sync function runs in worker threads, for several samples at once, so it must be thread-safe; an ``async def``
    runs on the event loop and must not block it. Threads cannot be stopped: if a run stops or a time limit passes, the
    result of a sync function is discarded.

    The function returns a number in [0, 1], a pair of a number and a reason, or a `Score` (to skip a sample,
    ``Score.skipped(name, reason)``). An error that it raises becomes a failed score.

    A class with ``ascore``, or that of an object with ``ascore``, gets ``score``, its blocking version, and the name of the
    class as ``name`` if it has none. It is returned otherwise unchanged.

    Args:
        function: The function, or the class or object, which takes no options since it has its own name, judge and prompts.
        name: The name of the scores; by default, the function's name.
        version: A version to change whenever the same sample may get another score. By default, the hash of the
            function's source, which ignores changes in the functions that it calls. Closures, partials, callable
            objects and functions without source have none: they cannot be told apart, so `compare` warns and a run
            cannot be resumed.
        judge: The judge that the function asks, if any.
        prompts: All prompts that the function uses with the judge.

    Example:
        >>> @scorer
        ... def says_please(sample: Sample) -> float:
        ...     return float("please" in sample.trace.messages[-1].text)
    """

    def decorate(function: ScorerFunction, /) -> FunctionScorer:
        if hasattr(function, "ascore"):
            raise ConfigError("a class or object with ascore takes no options: write @scorer, or scorer(object)")
        called: str = getattr(function, "__name__", type(function).__name__)
        return FunctionScorer(function, name or called, version or source_version(function), judge, tuple(prompts))

    if (judge is None) != (not prompts):
        raise ConfigError(
            "a function that asks a judge needs both judge and prompts: @scorer(judge=judge, prompts=[load_prompt('tone')])"
        )
    if hasattr(function, "ascore"):
        kind = function if isinstance(function, type) else type(function)
        for attribute, added in {**vars(SyncScore), "name": kind.__name__}.items():
            if attribute in ("score", "name") and not hasattr(function, attribute):
                setattr(kind, attribute, added)
        return cast("SyncScorer | type[ScorerKind]", function)
    return decorate if function is None else decorate(cast("Any", function))


def source_version(function: Callable[..., object]) -> str | None:
    """Return the hash of a function's source; ``None`` if it has no source or depends on captured values."""
    if not isinstance(function, FunctionType) or function.__closure__ or function.__code__.co_filename == "<string>":
        return None
    try:
        source = inspect.getsource(function)
    except OSError:
        return None
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def signature(scorer: Scorer) -> str:
    """Return a hash of everything a scorer's values depend on: class, fields, judge and prompts.

    Scorers with the same signature give the same score to the same sample, apart from the randomness of judges.

    Raises:
        ConfigError: A field holds a value that cannot be identified, such as a function without a ``version``.
    """
    return hashlib.sha256(json.dumps(signature_data(scorer), sort_keys=True).encode()).hexdigest()[:16]


def signature_data(value: object) -> JsonValue:
    """Return the JSON of a scorer that `signature` hashes, to show how two scorers differ.

    Raises:
        ConfigError: A field holds a value that cannot be identified.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, PurePath | date | Enum):
        return [kind, str(value)]
    if isinstance(value, BaseModel):
        # Fields excluded from JSON do not change the score either.
        kept = [name for name, field_info in type(value).model_fields.items() if not field_info.exclude]
        kept += type(value).model_computed_fields
        return [kind, {name: signature_data(getattr(value, name)) for name in kept}]
    if isinstance(value, dict):
        return {str(key): signature_data(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [signature_data(item) for item in cast("list[object]", value)]
    if callable(value) and not is_dataclass(value):
        version = getattr(value, "version", None)
        if not isinstance(version, str):
            raise ConfigError(
                f"{value!r} needs a version attribute (a string) that distinguishes its scores from older ones"
            )
        return [getattr(value, "__qualname__", kind), version]
    if is_dataclass(value):
        if getattr(value, "version", "") is None:
            raise ConfigError(
                f"{getattr(value, 'name', kind)} is a function that judgekit cannot identify (a closure, a partial, "
                "a callable object, or one without source): give it a version, as in @scorer(version='1')"
            )
        # Fields that are not compared do not change the score, such as the cache's location or the concurrency.
        held = {member.name: signature_data(getattr(value, member.name)) for member in fields(value) if member.compare}
        return [kind, held, signature_data(getattr(value, "prompts", None))]
    raise ConfigError(f"{value!r} cannot be part of a scorer's signature; make the scorer a dataclass")


def check_scorers(collection: object) -> tuple[Scorer, ...]:
    """Return the scorers in a collection.

    Raises:
        ConfigError: The value is no collection, or an item in it is no scorer; the error says what to write.
    """
    if _is_scorer(collection):
        raise ConfigError("scorers must be a list: write [scorer]")
    if isinstance(collection, str) or not isinstance(collection, Iterable):
        raise ConfigError(f"expected a list of scorers, found {_no_scorer(collection)}")
    given = cast("Iterable[object]", collection)
    return tuple(check_scorer(candidate, f"scorers[{index}]") for index, candidate in enumerate(given))


def check_scorer(candidate: object, name: str) -> Scorer:
    """Return the scorer unchanged.

    Raises:
        ConfigError: The value is not a scorer. The error refers to it as ``name``.
    """
    if _is_scorer(candidate):
        return cast("Scorer", candidate)
    raise ConfigError(f"{name}: expected a scorer, found {_no_scorer(candidate)}")


def _is_scorer(candidate: object) -> bool:
    return isinstance(candidate, Scorer) and not isinstance(candidate, type)


def _no_scorer(wrong: object) -> str:
    """Return a description of a value that is not a scorer, and what to write instead."""
    if isinstance(wrong, type) and hasattr(wrong, "ascore"):
        return f"the class {wrong.__name__}: call it, {wrong.__name__}({', '.join(_needed(wrong))})"
    if isinstance(wrong, Sample):
        return "a Sample: pass the samples first, run(samples, scorers)"
    if isinstance(wrong, str):
        advice = "pass names to run in a list; elsewhere pass an object, such as ToolCallF1()"
        return f"{short_repr(wrong)}: {advice}"
    if isinstance(wrong, FunctionType):
        is_named = wrong.__name__.isidentifier()
        return f"the function {wrong.__name__}: {'decorate it with @scorer' if is_named else 'write scorer(name=...)(function)'}"
    return f"{short_repr(wrong)}: pass an object such as ToolCallF1()"


def _needed(kind: type) -> Iterator[str]:
    """Yield the required options of a class."""
    for member in fields(kind) if is_dataclass(kind) else ():
        if member.default is MISSING and member.default_factory is MISSING:
            yield member.name
