"""The scorers of a run, built from their specs or given as objects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from judgekit.errors import ConfigError, join_limited
from judgekit.follow_ups import FollowUpScorer
from judgekit.jobs.options import RunOptions
from judgekit.runs.runner import check_scorer_names
from judgekit.scoring import Scorer, check_scorer, check_scorers, scorer_prompts
from judgekit.specs import ScorerSpec

if TYPE_CHECKING:
    from judgekit.config import Config

_CONCURRENCY = 16
"""The number of samples at once for scorers that are objects, whose judges are unknown."""

Engine: TypeAlias = Literal["processes", "ray"]
"""The engine that starts workers: processes of this machine, or a Ray cluster."""

ScorerOrText: TypeAlias = Scorer | str
"""A scorer, or its text as after ``--scorer``, such as ``"tool_call_f1"`` or ``"prompt:tone"``."""


@dataclass(frozen=True)
class Workers:
    """The workers that score.

    Attributes:
        count: Their number. If not given, there is one, or with Ray one for each CPU of the cluster.
        engine: What starts them.
    """

    count: int | None = None
    engine: Engine = "processes"

    @property
    def has_others(self) -> bool:
        """Whether there are workers other than this process."""
        return self.engine == "ray" or (self.count or 1) > 1

    @property
    def option(self) -> str:
        """The option that asks for other workers than this process."""
        return "engine" if self.engine == "ray" else "workers"

    def __str__(self) -> str:
        return f"{self.option}={self.engine if self.engine == 'ray' else self.count}"

    def can_score(self, scorer: Scorer) -> bool:
        """Return whether other workers than this process score with this scorer.

        The limits of a judge hold for one process, unless its cache is in Redis, which all machines share.
        """
        if not self.has_others or not scorer_prompts(scorer):
            return self.has_others
        if self.engine != "ray":
            return False
        from judgekit.judges.judge import find_judges  # noqa: PLC0415 - only where there are judges
        from judgekit.judges.redis.address import RedisAddress  # noqa: PLC0415

        judges = [asked_judge for judge in find_judges(scorer) for asked_judge in (judge, *judge.fallback)]
        return bool(judges) and all(isinstance(asked_judge.cache, RedisAddress) for asked_judge in judges)


THIS_PROCESS = Workers()
"""No worker but this process."""


class BuiltScorers(NamedTuple):
    """The scorers of a run.

    Attributes:
        options: The options of the run.
        scorers: The scorers, in the order of their places.
        config: The config that scorers were built with; ``None`` if it was not needed.
    """

    options: RunOptions
    scorers: Sequence[Scorer]
    config: "Config | None"

    @property
    def concurrency(self) -> int:
        """The number of samples to score at once, which is the highest concurrency of the judges."""
        judges = self.config.judges_used.values() if self.config is not None else ()
        objects = [_CONCURRENCY] if None in self.options.scorers else []
        return max((*(judge.concurrency for judge in judges), *objects), default=1)

    @property
    def objects(self) -> Sequence[Scorer]:
        """The scorers that were given as objects."""
        return [scorer for scorer, spec in zip(self.scorers, self.options.scorers, strict=True) if spec is None]

    @property
    def show_images(self) -> bool:
        """Whether one of the judges is shown images."""
        judged = [scorer for scorer in self.scorers if scorer_prompts(scorer)]
        if not judged:
            return False
        from judgekit.judges.judge import find_judges  # noqa: PLC0415 - only where there are judges

        return any(asked_judge.images for judge in find_judges(judged) for asked_judge in (judge, *judge.fallback))

    def check_judges(self) -> None:
        """Check that the judges can be asked.

        Raises:
            AuthenticationError: The environment has no key for one of them.
            StoreError: The cache of one of them cannot be used.
        """
        for judge in self.config.judges_used.values() if self.config is not None else ():
            judge.check()

    def check_workers(
        self, workers: Workers, path: Path | str | None, *, given: bool = False, from_store: bool = False
    ) -> None:
        """Check that the scorers that workers are to score with can run there.

        Raises:
            ConfigError: They cannot run there.
        """
        if workers.count is not None and workers.count < 1:
            raise ConfigError(f"workers must be at least 1, found {workers.count}")
        if workers.engine not in get_args(Engine):
            raise ConfigError.unknown("engine", workers.engine, get_args(Engine))
        specs = zip(self.scorers, self.options.scorers, strict=True)
        shared = [(scorer.name, spec) for scorer, spec in specs if workers.can_score(scorer)]
        if not shared:
            return
        if following := next((scorer.name for scorer in self.scorers if isinstance(scorer, FollowUpScorer)), None):
            way_out = f"run without it, then judgekit score RUN --scorer {following} without {workers.option}"
            raise ConfigError(f"{workers}: {following} needs the scores that other workers make: {way_out}")
        if path is None:
            raise ConfigError(f"{workers}: the workers need a file to write to: name it, such as store='runs.sqlite'")
        if given:
            raise ConfigError(f"{workers}: the workers read the samples themselves: pass the path of a file")
        if not from_store and (streams := self.options.streams):
            raise ConfigError(
                f"{workers}: {streams[0]} can be read only once, by one process; write it to a file, or omit {workers.option}"
            )
        if objects := [name for name, spec in shared if spec is None]:
            raise ConfigError(
                f"{workers}: objects cannot be sent to another process: {join_limited(objects, separator=', ')}; "
                f"name them by texts such as 'tool_call_f1', or omit {workers.option}"
            )
        options = self.options
        if workers.engine == "ray" and (options.shard or options.limit is not None or isinstance(options.sample, int)):
            raise ConfigError(
                f"{workers}: cannot be combined with shard, limit or a number of samples; to score a part, use a share"
            )


def split_scorers(scorers: Iterable[ScorerOrText]) -> tuple[Sequence[ScorerSpec | None], Sequence[Scorer]]:
    """Return the specs of scorers, with ``None`` in the places of objects, and the objects.

    Raises:
        ConfigError: One of them is neither a scorer nor a text.
    """
    if isinstance(scorers, str) or not isinstance(scorers, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - users may give anything
        return (), check_scorers(scorers)
    given = [*scorers]
    objects = [
        check_scorer(entry, f"scorers[{index}]") for index, entry in enumerate(given) if not isinstance(entry, str)
    ]
    return [ScorerSpec.parse(entry) if isinstance(entry, str) else None for entry in given], objects


def build_scorers(
    options: RunOptions, objects: Iterable[Scorer] = (), *, judge: str | None = None, config: "Config | None" = None
) -> BuiltScorers:
    """Build the scorers of a run.

    Args:
        options: The options of the run.
        objects: The scorers that are objects, in the order of their places.
        judge: A judge that must exist, even if no scorer asks it.
        config: The config of a new run. Its gates apply too, and its scorers if the options name none.

    Raises:
        ConfigError: There is no such scorer, option or judge, or two scorers have one name.
    """
    if config is not None:
        gates, specs = (*config.gates, *options.gates), tuple(options.scorers or config.scorers)
        no_answer = options.no_answer or config.no_answer
        settings = {"scorers": specs, "gates": gates, "min_coverage": config.min_coverage, "no_answer": no_answer}
        options = options.model_copy(update=settings)
    elif options.reads_config or judge:
        config = options.load_config()
    remaining = iter(objects)
    scorers = [next(remaining) if spec is None or config is None else config.build(spec) for spec in options.scorers]
    check_scorer_names([scorer.name for scorer in scorers])
    if judge and config is not None:
        config.judge(judge)
    return BuiltScorers(options, scorers, config)
