"""The loop that runs scorers over samples."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from judgekit.errors import STOPS_JUDGE, ConfigError, JudgeError, error_with_location, merge_errors
from judgekit.registry import allow_code
from judgekit.runs.recorder import Recorder
from judgekit.runs.rows import Row, RunRecord
from judgekit.runs.store import RunStore
from judgekit.runs.textless import TextRemover
from judgekit.score import JudgeCall, Score, in_run, ledger, outage_memory
from judgekit.scoring import Scorer, attempt, scorer_prompts
from judgekit.traces.sample import Sample

_LONGEST_WITHOUT_REST = 0.02  # seconds
_MOST_AT_ONCE = 10_000


class Task(NamedTuple):
    """A sample with its number and the scorers that are to score it."""

    number: int
    sample: Sample
    scorers: Sequence[Scorer]


def make_tasks(samples: Iterable[Sample], scorers: Sequence[Scorer]) -> Iterator[Task]:
    """Return a task for each sample, with all scorers."""
    return (Task(number, sample, scorers) for number, sample in enumerate(samples))


async def score_run(
    store: RunStore,
    record: RunRecord,
    tasks: Iterable[Task],
    scorers: Sequence[Scorer],
    *,
    concurrency: int,
    should_stop: Callable[[], bool] = lambda: False,
    emit: Callable[[Row], object] | None = None,
    textless: TextRemover | None = None,
    is_new: bool = False,
) -> None:
    """Score tasks, and write their samples and scores into a run that has begun. See `score_tasks`.

    Once work ``should_stop``, no other task is taken.
    """
    recorder = Recorder(store, record, textless, is_new=is_new)

    def recorded() -> Iterator[Task]:
        remaining = iter(tasks)
        while not should_stop() and (task := next(remaining, None)) is not None:
            recorder.add_sample(task.number, task.sample)
            yield task

    def keep(row: Row) -> None:
        recorder.add_row(row)
        if emit is not None:
            emit(row)

    async with recorder.writing():
        with in_run(record.id):
            await score_tasks(
                recorded(),
                scorers,
                keep,
                concurrency=concurrency,
                begin=recorder.add_ledger,
                rest=recorder.yield_control,
            )


async def score_tasks(
    tasks: Iterable[Task],
    scorers: Sequence[Scorer],
    emit: Callable[[Row], object],
    *,
    concurrency: int,
    begin: Callable[[int, str, list[JudgeCall]], object] = lambda _index, _scorer, _calls: None,
    rest: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0),
) -> None:
    """Score each sample with its scorers, and pass on each row as soon as it is made, in any order.

    For one sample, scorers that ask a judge, which have ``prompts``, run concurrently with the others. A scorer whose
    judge is down, or has no budget or quota left, scores no further sample.

    Args:
        tasks: The samples. No more of them are taken once all scorers have stopped.
        scorers: The scorers of all tasks.
        emit: Called with each row.
        concurrency: The number of samples to score at once.
        begin: Called before each score with the sample's number, the scorer's name and the ledger of its judge calls.
        rest: Awaited from time to time between samples, to let other coroutines run.

    Raises:
        JudgeError: A scorer stopped because its judge is down or has no budget or quota left
            (`judgekit.errors.STOPS_JUDGE`). The other scorers have scored what they could.
    """
    if not 1 <= concurrency <= _MOST_AT_ONCE:
        raise ConfigError(f"concurrency must be between 1 and {_MOST_AT_ONCE:,}, found {concurrency}")
    stopped: dict[str, JudgeError] = {}
    judged = [scorer for scorer in scorers if scorer_prompts(scorer)]

    remaining = iter(tasks)

    async def score(task: Task, some: Sequence[Scorer]) -> None:
        # Questions about one sample go out one after another, which lets a provider's prefix cache help.
        for scorer in some:
            if scorer.name in stopped:
                continue
            with ledger() as calls:
                begin(task.number, scorer.name, calls)
                try:
                    score_made = await attempt(scorer, task.sample)
                except STOPS_JUDGE as error:
                    stopped.setdefault(scorer.name, error)
                    continue
                except asyncio.CancelledError as error:
                    if (running := asyncio.current_task()) is None or running.cancelling():
                        raise
                    # Nobody canceled the work, so the scorer raised this, and it would end this worker without a word.
                    reason, kind = error_with_location(error), type(error).__name__
                    score_made = Score.failed(scorer.name, reason, error=kind, calls=calls)
            allow_code(score_made.aggregate.partition(":")[0])  # of a scorer that runs here
            emit(Row.of(task.number, task.sample, score_made))

    async def work() -> None:
        loop = asyncio.get_running_loop()
        rested = loop.time()
        while len(stopped) < len(scorers) and (task := next(remaining, None)) is not None:
            asking = [scorer for scorer in task.scorers if scorer in judged] if judged else ()
            others = [scorer for scorer in task.scorers if scorer not in judged] if judged else task.scorers
            if asking and others:
                both = (score(task, asking), score(task, others))
                for problem in await asyncio.gather(*both, return_exceptions=True):
                    if problem is not None:
                        raise problem
            else:
                await score(task, asking or others)
            if loop.time() - rested > _LONGEST_WITHOUT_REST:
                await rest()  # scorers that never wait would block Ctrl-C
                rested = loop.time()

    try:
        with outage_memory():
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(work())
    except ExceptionGroup as errors:  # a failed score raises nothing, so this concerns the whole run
        error = errors.exceptions[0]
        raise error from error.__cause__
    if reasons := list(stopped.values()):
        raise merge_errors(reasons) from reasons[0]


def check_scorer_names(names: Sequence[str]) -> None:
    """Check that there are scorers, by their names, and that their rows can be told apart.

    Raises:
        ConfigError: There are none, or two have the same name.
    """
    if not names:
        raise ConfigError(
            "no scorers: name some with --scorer NAME or [[scorers]] in a config file; judgekit scorers lists them"
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ConfigError(
            f"two scorers are called {twice[0]!r}; rename one of them: as= in a config file or on the command line, name= in Python"
        )
