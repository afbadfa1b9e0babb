"""What a run in Python is given: samples, or the path of a file of them, and scorers, all of them checked."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import cast

from judgekit.errors import ConfigError, shortened
from judgekit.runs.problems import Problems
from judgekit.runs.rows import Input, Row
from judgekit.scoring import Scorer
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
        count: How many samples there are, where that is known without reading.
    """

    samples: Iterable[tuple[int, Sample]]
    scorers: Sequence[Scorer]
    inputs: Sequence[Input] = ()
    problems: Problems = field(default_factory=Problems)
    count: int | None = None

    @classmethod
    def of(cls, samples: Iterable[Sample] | Path | str, scorers: Sequence[Scorer]) -> "Given":
        """Checks what a run is given, and looks at the files.

        Raises:
            ConfigError: It cannot be scored, or not with that.
            TraceError: There is no such file.
        """
        checked = _scorers(scorers)
        if not isinstance(samples, str | Path):
            count = len(samples) if isinstance(samples, Sized) else None
            return cls(enumerate(samples_in(samples)), checked, count=count)
        paths, problems = files_at(samples), Problems()
        numbered = _read(Recordings(samples), problems)
        inputs = [Input.of(path) for path in paths if path.is_file()]
        return cls(numbered, checked, inputs, problems, records_in(paths))

    @contextmanager
    def shown(self) -> Generator[Callable[[Row], None]]:
        """Shows how far the run is, and gives what is to be called with each row."""
        from rich.console import Console  # noqa: PLC0415 - takes longer than all else here

        from judgekit.runs.progress import Tally, progress  # noqa: PLC0415 - draws with rich

        tally = Tally(None if self.count is None else self.count * len(self.scorers))
        with progress(tally, Console(stderr=True, highlight=False)):
            yield tally.add


def _read(recordings: Recordings, problems: Problems) -> Iterator[tuple[int, Sample]]:
    try:
        yield from recordings.numbered(problems.append)
    finally:
        problems.failed = bool(recordings.failed)


def _scorers(found: object) -> Sequence[Scorer]:
    if _is_scorer(found):
        raise ConfigError("scorers is one scorer: put it into a list, [scorer]")
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ConfigError(f"scorers is {_no_scorer(found)}; scorers are given in a list")
    scorers = tuple(cast("Iterable[object]", found))
    for place, one in enumerate(scorers):
        if not _is_scorer(one):
            raise ConfigError(f"scorers[{place}] is {_no_scorer(one)}")
    return cast("Sequence[Scorer]", scorers)


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
