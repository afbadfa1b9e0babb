"""What a run was told, kept with it so that it can go on, in this process or in others."""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from pydantic import Field, ValidationError

from judgekit.config import Config, ScorerSpec
from judgekit.errors import ConfigError, explain
from judgekit.runs.problems import Problems
from judgekit.runs.rows import Input, RunRecord
from judgekit.traces.counting import records_in
from judgekit.traces.files import STREAM, files_at
from judgekit.traces.message import Many, Record
from judgekit.traces.reading import OnError, Recordings
from judgekit.traces.sample import Sample


class Asked(Record):
    """The recordings of a run, which of them, and what to score them with; see the options of ``judgekit run``."""

    file: str
    format: str | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    encoding: str | None = None
    references: str | None = None
    config: str | None = None
    judge: str | None = None
    scorers: Many[ScorerSpec] = ()
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    gates: Many[str] = ()
    min_coverage: float = 0
    strict: bool = False
    offline: bool = False

    @classmethod
    def of(cls, record: RunRecord) -> "Asked":
        """What a run was told that was kept.

        Raises:
            ConfigError: It was made in Python, by what no file can hold.
        """
        if not record.asked:
            raise ConfigError(f"run {record.number} was made in Python by what no file can hold: run it anew there")
        try:
            return cls.model_validate(record.asked)
        except ValidationError as error:
            raise ConfigError(f"run {record.number} was made by another judgekit: {explain(error)}") from error

    @property
    def _all_paths(self) -> list[Path]:
        named = [Path(self.file), *([Path(self.references)] if self.references else [])]
        return [file for path in named for file in ([path] if path == STREAM else files_at(path))]

    @property
    def paths(self) -> list[Path]:
        """The files that are read, standard input and pipes aside."""
        return [path for path in self._all_paths if path != STREAM and path.is_file()]

    @property
    def streams(self) -> list[Path]:
        """Standard input and pipes, which one process can read once."""
        return [path for path in self._all_paths if path == STREAM or (path.exists() and not path.is_file())]

    def inputs(self) -> list[Input]:
        """The files that are read, by their content; standard input and pipes aside."""
        return [Input.of(path) for path in self.paths]

    def expected(self) -> int | None:
        """How many samples there will be, where that is quickly known."""
        paths = [] if Path(self.file) == STREAM else files_at(Path(self.file))
        known = (records_in(paths, self.format), self.limit, self.sample)
        return min((number for number in known if number is not None), default=None)

    def settings(self, **switches: bool) -> Config:
        """Return the config that the scorers are built with. The environment named a judge when the run began, or not."""
        config = None if self.config is None else Path(self.config)
        return Config(config, self.judge, {}, offline=self.offline, **switches)

    def samples(self, problems: Problems, wanted: Callable[[int], bool] | None = None) -> Iterator[tuple[int, Sample]]:
        """The samples with the numbers of their records; see `Recordings.numbered`."""
        recordings = Recordings(self.file, self.format, self.references, self.columns, self.encoding)
        on_error: OnError = "raise" if self.strict else problems.append
        try:
            if self.limit is None and self.sample is None:
                yield from recordings.numbered(on_error, wanted)
                return
            chosen: Iterable[tuple[int, Sample]] = islice(recordings.numbered(on_error), self.limit)
            if self.sample is not None:
                chosen = _drawn(chosen, self.sample, random.Random(self.seed))  # noqa: S311 - a draw, not a secret
            yield from (pair for pair in chosen if wanted is None or wanted(pair[0]))
        finally:
            problems.failed = problems.failed or bool(recordings.failed)


def _drawn(samples: Iterable[tuple[int, Sample]], size: int, draw: random.Random) -> Iterator[tuple[int, Sample]]:
    """A random sample in the order of the file, drawn while reading (Vitter 1985, algorithm R)."""
    kept: list[tuple[int, Sample]] = []
    for index, pair in enumerate(samples):
        if index < size:
            kept.append(pair)
        elif (place := draw.randrange(index + 1)) < size:
            kept[place] = pair
    yield from sorted(kept, key=lambda pair: pair[0])
