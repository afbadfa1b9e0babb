"""Questions about one sample that scorers ask at the same time, collected until each scorer has asked or ended."""

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Question = TypeVar("Question")
Result = TypeVar("Result")
_Sendable: TypeAlias = tuple[Any, Callable[[Sequence[Any]], None]]
"""A question, and the function that sends it with others."""


@dataclass(eq=False)
class Gathering:
    """The first questions of the scorers of one sample, which are sent once each scorer has asked, ended or asked apart.

    Nothing depends on time. Scorers must not wait for each other.

    Args:
        loop: The event loop of the scorers.
        scorer_count: The number of scorers.
    """

    loop: "AbstractEventLoop"
    scorer_count: int
    _settled: set[int] = field(default_factory=set[int], init=False)
    _questions: dict[int, _Sendable] = field(default_factory=dict[int, _Sendable], init=False)

    @contextmanager
    def participant(self, position: int, *, is_needed: bool = True) -> Generator[None]:
        """Ask the questions inside as the scorer at a position in the order of the run.

        Unless its score ``is_needed``, its first question only completes the request, and it gets no answers.
        """
        participant = Participant(self, position, is_needed)
        token = current_participant.set(participant)
        try:
            yield
        finally:
            current_participant.reset(token)
            participant.settle()

    def settle(self, position: int) -> None:
        """Wait no longer for the scorer at a position. After the last one, send the questions in the run's order."""
        self._settled.add(position)
        if len(self._settled) == self.scorer_count and self._questions:
            questions = [self._questions[at] for at in sorted(self._questions)]
            self._questions = {}
            _, send = questions[0]
            send([question for question, _ in questions])

    def add(self, position: int, question: Question, send: Callable[[Sequence[Question]], None]) -> bool:
        """Collect the question of a scorer, unless it has settled before; return whether it is sent with others."""
        if position in self._settled:
            return False
        self._questions[position] = question, send
        self.settle(position)
        return True


@dataclass(frozen=True, eq=False)
class Participant:
    """A scorer of a sample, at its position in the order of the run; see `Gathering.participant`."""

    gathering: Gathering
    position: int
    is_needed: bool

    @property
    def is_in_loop(self) -> bool:
        """Whether the scorer's event loop is running here, and not that of a function in a thread."""
        import asyncio  # noqa: PLC0415 - slow to import

        with suppress(RuntimeError):
            return asyncio.get_running_loop() is self.gathering.loop
        return False

    def settle(self) -> None:
        """Let the others wait no longer. Whatever the scorer asks from now on is asked apart."""
        if self.is_in_loop:
            self.gathering.settle(self.position)
        else:
            self.gathering.loop.call_soon_threadsafe(self.gathering.settle, self.position)


current_participant: ContextVar[Participant | None] = ContextVar("judgekit_participant", default=None)
"""The scorer whose questions may be asked together with those of others, if there is one."""


def ask_apart() -> None:
    """Ask the questions of the current scorer apart, such as repeats and the votes of a panel."""
    if (participant := current_participant.get()) is not None:
        participant.settle()


def asks_together(scorer: object) -> bool:
    """Return whether a judge in a scorer is asked together."""
    if is_dataclass(scorer) and not isinstance(scorer, type):
        return any(asks_together(getattr(scorer, member.name)) for member in fields(scorer))
    if isinstance(scorer, list | tuple):
        return any(map(asks_together, cast("list[object]", scorer)))
    return getattr(scorer, "together", False) is True


async def gather_all(coroutines: Iterable[Coroutine[object, object, Result]]) -> list[Result]:
    """Return the results of coroutines that run concurrently.

    If some fail, the first error is raised after all others have finished, since they have to be paid for anyway.
    """
    import asyncio  # noqa: PLC0415 - slow to import

    results: list[Result] = []
    for done in await asyncio.gather(*coroutines, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done
        results.append(done)
    return results
