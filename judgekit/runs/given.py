"""What a run in Python is given: samples, or the path of a file of them, and scorers, all of them checked."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.runs.problems import Problems
from judgekit.runs.rows import Input, Row, SampleCount
from judgekit.scoring import Scorer, scorers_in
from judgekit.traces.counting import records_in
from judgekit.traces.files import files_at
from judgekit.traces.given import samples_in
from judgekit.traces.reading import Recordings
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class Given:
    """What a run in Python is given.

    Attributes:
        samples: Each with its number, once; those of a file have the numbers of their records.
        scorers: What scores them.
        inputs: The files that they are read from, by their content, standard input and pipes aside.
        problems: What could not be read of them so far.
        count: How many samples there are, as far as that is known without reading.
    """

    samples: Iterable[tuple[int, Sample]]
    scorers: Sequence[Scorer]
    inputs: Sequence[Input] = ()
    problems: Problems = field(default_factory=Problems)
    count: SampleCount = field(default_factory=SampleCount)

    @classmethod
    def of(cls, samples: Iterable[Sample] | Path | str, scorers: Sequence[Scorer]) -> "Given":
        """Checks what a run is given, and looks at the files.

        Raises:
            ConfigError: It cannot be scored, or not with that.
            TraceError: There is no such file.
        """
        checked = scorers_in(scorers)
        if not isinstance(samples, str | Path):
            count = SampleCount(len(samples), "exactly") if isinstance(samples, Sized) else SampleCount()
            return cls(enumerate(samples_in(samples)), checked, count=count)
        paths, problems = files_at(samples), Problems()
        numbered = _read(Recordings(samples), problems)
        inputs = [Input.of(path) for path in paths if path.is_file()]
        return cls(numbered, checked, inputs, problems, SampleCount.expected(records_in(paths)))

    @contextmanager
    def shown(self) -> Generator[Callable[[Row], None]]:
        """Shows how far the run is, and gives what is to be called with each row."""
        from rich.console import Console  # noqa: PLC0415 - takes longer than all else here

        from judgekit.runs.progress import Tally, progress  # noqa: PLC0415 - draws with rich

        count, known = self.count
        tally = Tally(None if known == "at least" else count * len(self.scorers))
        with progress(tally, Console(stderr=True, highlight=False)):
            yield tally.add


def _read(recordings: Recordings, problems: Problems) -> Iterator[tuple[int, Sample]]:
    try:
        yield from recordings.numbered(problems.append)
    finally:
        problems.failed = bool(recordings.failed)
