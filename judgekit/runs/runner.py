"""The loop that runs scorers over samples."""

import asyncio
from bisect import bisect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from judgekit.errors import STOPS, STOPS_JUDGE, ConfigError, JudgeError, error_with_location, merge_errors
from judgekit.follow_ups import FollowUpScorer, SampleScores, check_follow_ups
from judgekit.gathering import Gathering, asks_together, gather_all
from judgekit.registry import allow_code
from judgekit.runs.recorder import Recorder
from judgekit.runs.rows import Row, RunRecord
from judgekit.runs.store import RunStore
from judgekit.runs.textless import TextRemover
from judgekit.score import JudgeCall, Score, in_run, ledger, outage_memory
from judgekit.scoring import ScoreCall, Scorer, attempt, scorer_prompts
from judgekit.traces.sample import Sample

_LONGEST_WITHOUT_REST = 0.02  # seconds
_MOST_AT_ONCE = 10_000


class Task(NamedTuple):
    """A sample with its number, the scorers that are to score it, and a function that returns the scores that it has."""

    number: int
    sample: Sample
    scorers: Sequence[Scorer]
    stored: Callable[[], SampleScores] = SampleScores


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
) -> None:
    """Score tasks, and write their samples and scores into a run that has begun. See `score_tasks`.

    Once work ``should_stop``, no other task is taken.
    """
    recorder = Recorder(store, record, textless)

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
                companies=_companies(record, scorers),
                names=[scorer.name for scorer in record.scorers],
                begin=recorder.add_ledger,
                rest=recorder.yield_control,
            )


def _companies(record: RunRecord, scorers: Sequence[Scorer]) -> Sequence[Sequence[Scorer]]:
    """Return the scorers that ask together, in the order of the run; those that were added later by themselves."""
    companies: dict[int, list[Scorer]] = {}
    positions = {scorer.name: position for position, scorer in enumerate(record.scorers)}
    for scorer in sorted(filter(asks_together, scorers), key=lambda scorer: positions[scorer.name]):
        companies.setdefault(bisect(record.added, positions[scorer.name]), []).append(scorer)
    return [company for company in companies.values() if len(company) > 1]


async def score_tasks(
    tasks: Iterable[Task],
    scorers: Sequence[Scorer],
    emit: Callable[[Row], object],
    *,
    concurrency: int,
    companies: Sequence[Sequence[Scorer]] = (),
    names: Sequence[str] = (),
    begin: Callable[[int, str, list[JudgeCall]], object] = lambda _index, _scorer, _calls: None,
    rest: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0),
) -> None:
    """Score each sample with its scorers, and pass on each row as soon as it is made, in any order.

    For one sample, scorers that ask a judge, which have ``prompts``, run concurrently with the others, and one after
    another, except those of a company; a `FollowUpScorer` runs after all of them. A scorer whose judge is down, or has
    no budget or quota left, scores no further sample.

    Args:
        tasks: The samples. No more of them are taken once all scorers that follow no others have stopped.
        scorers: The scorers of all tasks.
        emit: Called with each row.
        concurrency: The number of samples to score at once.
        companies: The scorers that ask together. Those that a task does not have take part if another one of their
            company is in it, so that a request is the same as for the whole run, but get no answers.
        names: The names of all scorers of the run; if not given, there are no others.
        begin: Called before each score with the sample's number, the scorer's name and the ledger of its judge calls.
        rest: Awaited from time to time between samples, to let other coroutines run.

    Raises:
        JudgeError: A scorer stopped because its judge is down or has no budget or quota left
            (`judgekit.errors.STOPS_JUDGE`). The other scorers have scored what they could.
    """
    if not 1 <= concurrency <= _MOST_AT_ONCE:
        raise ConfigError(f"concurrency must be between 1 and {_MOST_AT_ONCE:,}, found {concurrency}")
    order = [*names] or [scorer.name for scorer in scorers]
    check_follow_ups(scorers, order)
    scoring = _Scoring(emit, begin, order)
    stopped = scoring.stopped
    following = [scorer for scorer in scorers if isinstance(scorer, FollowUpScorer)]
    first = {scorer.name for scorer in scorers if scorer not in following} or {scorer.name for scorer in following}
    companies = [[scorer for scorer in company if scorer not in following] for company in companies]
    together = [*following, *(scorer for company in companies for scorer in company)]
    judged = [scorer for scorer in scorers if scorer_prompts(scorer) and scorer not in together]
    apart = (*judged, *together)
    remaining = iter(tasks)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        rested = loop.time()
        while not first <= stopped.keys() and (task := next(remaining, None)) is not None:
            asking = [scorer for scorer in task.scorers if scorer in judged] if judged else ()
            others = [scorer for scorer in task.scorers if scorer not in apart] if apart else task.scorers
            joint = [company for company in companies if any(scorer in task.scorers for scorer in company)]
            if joint or (asking and others):
                await gather_all(
                    (
                        *(scoring.score(task, some) for some in (asking, others) if some),
                        *(scoring.score_together(task, company) for company in joint),
                    )
                )
            else:
                await scoring.score(task, asking or others)
            await scoring.score_after(task, [scorer for scorer in following if scorer in task.scorers])
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


@dataclass
class _Scoring:
    """The work on single samples, and the scorers that have stopped; see `score_tasks`."""

    emit: Callable[[Row], object]
    begin: Callable[[int, str, list[JudgeCall]], object]
    order: Sequence[str]
    stopped: dict[str, JudgeError] = field(default_factory=dict[str, JudgeError])
    scores: dict[int, list[Score]] = field(default_factory=dict[int, list[Score]])

    async def score(self, task: Task, some: Sequence[Scorer]) -> None:
        """Score a sample with some scorers, one after another, which lets a provider's prefix cache help."""
        for scorer in some:
            await self._score(task, scorer)

    async def score_after(self, task: Task, following: Sequence[FollowUpScorer]) -> None:
        """Score a sample with scorers that follow others.

        They get its stored scores and those that were just made, in the order of the run, so that their requests do not depend
        on which scorer was faster.
        """
        latest, stored = self.scores.pop(task.number, []), task.stored() if following else SampleScores()
        others = {score.scorer: score for score in (*stored.of_scorers, *latest)}
        for scorer in following:
            others.pop(scorer.name, None)
        for scorer in following:
            in_order = sorted(others.values(), key=lambda score: self.order.index(score.scorer))
            scores = SampleScores(in_order, stored.of_people)
            await self._score(task, scorer, partial(scorer.ascore_after, scores=scores))
        self.scores.pop(task.number, None)

    async def _score(self, task: Task, scorer: Scorer, call: ScoreCall | None = None) -> None:
        if scorer.name in self.stopped:
            return
        with ledger() as calls:
            self.begin(task.number, scorer.name, calls)
            try:
                score_made = await attempt(scorer, task.sample, call)
            except STOPS_JUDGE as error:
                self.stopped.setdefault(scorer.name, error)
                return
            except asyncio.CancelledError as error:
                if (running := asyncio.current_task()) is None or running.cancelling():
                    raise
                # Nobody canceled the work, so the scorer raised this, and it would end this worker without a word.
                reason, kind = error_with_location(error), type(error).__name__
                score_made = Score.failed(scorer.name, reason, error=kind, calls=calls)
        allow_code(score_made.aggregate.partition(":")[0])  # of a scorer that runs here
        self.scores.setdefault(task.number, []).append(score_made)
        self.emit(Row.of(task.number, task.sample, score_made))

    async def score_together(self, task: Task, company: Sequence[Scorer]) -> None:
        """Score a sample with those scorers of a company that the task has, at the same time."""
        gathering = Gathering(asyncio.get_running_loop(), len(company))

        async def participate(position: int, scorer: Scorer) -> None:
            is_needed = scorer in task.scorers
            with gathering.participant(position, is_needed=is_needed):
                if is_needed:
                    await self.score(task, [scorer])
                else:
                    with ledger(isolated=True), suppress(asyncio.CancelledError, *STOPS):
                        await attempt(scorer, task.sample)

        await gather_all(participate(position, scorer) for position, scorer in enumerate(company))


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
