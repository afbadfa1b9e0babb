"""The options of a run, which are stored with it, so that it can be resumed and other processes can work on it."""

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field, ValidationError

from judgekit.errors import ConfigError, TraceError, text_path, validation_message
from judgekit.locations import Location, Url, to_location
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import Input, RunRecord, SampleCount
from judgekit.shards import EVERYTHING, Shard
from judgekit.specs import ScorerSpec
from judgekit.traces.ending import NoAnswer
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    from judgekit.config import Config
    from judgekit.formats.reading import OnError

OTHER_DOMAINS = ""
"""Stands for samples without a domain, and for domains without a share of their own."""
SampleChoice: TypeAlias = int | float | Mapping[str, float]
"""The samples to draw: a number of samples, a share of them between 0 and 1 as a float, or shares by domain."""
_RANKS = 2**64
_RUN_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class RunOptions(FrozenModel):
    """The recordings of a run, the scorers, and how both are read; see the options of ``judgekit run``.

    Attributes:
        file: The path or URL of the recordings; ``None`` if the samples were given in Python.
        scorers: The scorers in the order of their places; ``None`` stands for one that was given as an object.
        no_answer: What a recording that stops after the user's message gets (see `read`), if not what the config says.
        shard: The part of the recordings that this run scores, such as ``3/16``; all of them if not given.
        sample: The number of samples to draw at random, or the share of the samples to score, drawn by a hash of the
            ``seed`` and the sample's id, so that all shards and all files draw alike: a float for all, or one for each
            domain, and for all others one without a name.
        together: Whether judges are asked together, if not what the config says.
    """

    file: str | None = None
    format: str | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    encoding: str | None = None
    references: str | None = None
    no_answer: NoAnswer | None = None
    config: str | None = None
    judge: str | None = None
    scorers: Many[ScorerSpec | None] = ()
    limit: int | None = None
    sample: SampleChoice | None = None
    seed: int = 0
    shard: str | None = None
    gates: Many[str] = ()
    min_coverage: float | None = None
    strict: bool = False
    offline: bool = False
    together: bool | None = None

    @classmethod
    def from_record(cls, record: RunRecord) -> "RunOptions":
        """Return the options that are stored with a run.

        Raises:
            ConfigError: Another version of judgekit wrote them.
        """
        try:
            return cls.model_validate(record.options)
        except ValidationError as error:
            raise ConfigError(
                f"run {record.number} was made by another version of judgekit: {validation_message(error)}"
            ) from error

    def check_sampling(self, run_id: str | None) -> None:
        """Check that the options that choose samples go together.

        Raises:
            ConfigError: They do not.
        """
        if (self.shard is None) != (run_id is None):
            raise ConfigError(
                "give --shard and --run-id together: a new id for each run, the same for all of its shards"
            )
        if run_id is not None and not _RUN_ID.fullmatch(run_id):
            raise ConfigError(f"--run-id {run_id!r}: expected up to 100 letters, digits and . _ : -")
        shares = self.shares
        for share in (shares or {}).values():
            if not 0 < share <= 1:
                raise ConfigError(f"--sample {share:g}: expected a share above 0, up to 1 (100%)")
        if shares is not None and OTHER_DOMAINS not in shares:
            raise ConfigError("--sample: add a share for all other domains, such as --sample 1%")
        if isinstance(self.sample, int) and self.sample < 1:
            raise ConfigError(f"--sample {self.sample}: expected at least 1 sample, or a share such as 1% or 0.01")
        is_part = self.shard is not None or shares is not None
        if is_part and (self.limit is not None or isinstance(self.sample, int)):
            option = "--limit" if self.limit is not None else f"--sample {self.sample}"
            reason = "needs one process that reads everything" if self.shard else "cannot be combined with a share"
            raise ConfigError(f"{option} {reason}; to score a part, use --sample 1%, which any shards draw alike")
        if self.file is None and (is_part or self.sample is not None):
            raise ConfigError("shard and sample need the path of a file as data; of samples, pass a part")
        if self.shard and Shard.parse(self.shard) != EVERYTHING and (streams := self.streams):
            raise ConfigError(f"--shard: {streams[0]} can be read only once, by one process; write it to a file")

    def location(self, text: str) -> Location:
        """Return the location of recordings, references or labels.

        Raises:
            OfflineError: It is not on this machine, and the run is offline.
        """
        location = to_location(text)
        if self.offline and isinstance(location, Url):
            from judgekit.judges.offline import check_storage_offline  # noqa: PLC0415 - loads judges

            check_storage_offline(location)
        return location

    def _files(self) -> Iterator[tuple[Location, bool]]:
        """Yield the files that are read, each with whether it is standard input or a pipe."""
        if self.file is not None:
            from judgekit.formats.file_lists import STANDARD_STREAM, list_files  # noqa: PLC0415 - not needed for samples
            from judgekit.formats.session_files import input_paths  # noqa: PLC0415

            for name, paths in ((self.file, input_paths), (self.references, list_files)):
                path = None if name is None else self.location(name)
                for file in () if path is None else [path] if path == STANDARD_STREAM else paths(path):
                    if isinstance(file, Url):
                        yield file, False
                    elif file == STANDARD_STREAM or file.exists():
                        yield file, file == STANDARD_STREAM or not file.is_file()

    @property
    def streams(self) -> list[Location]:
        """Standard input and pipes, which only one process can read, and only once."""
        return [path for path, is_stream in self._files() if is_stream]

    def input_files(self) -> list[Input]:
        """Return the files that are read with their hashes, except standard input and pipes."""
        return [Input.of(path) for path, is_stream in self._files() if not is_stream]

    def expected_samples(self) -> SampleCount:
        """Return about how many samples there are, if that can be found quickly, before they are read."""
        if self.file is None:
            return SampleCount()

        from judgekit.formats.detect import count_records  # noqa: PLC0415 - loads all readers
        from judgekit.formats.file_lists import STANDARD_STREAM, list_files  # noqa: PLC0415

        file = self.location(self.file)
        paths: Sequence[Location] = () if file == STANDARD_STREAM else list_files(file)
        records = count_records(paths, self.format)
        share = 1.0 if self.shares is None else fmean(self.shares.values())  # of domains: about that of all samples
        shards = Shard.parse(self.shard).count if self.shard else 1
        expected = None if records is None else round(records * share / shards)
        size = self.sample if isinstance(self.sample, int) else None
        limits = [number for number in (expected, self.limit, size) if number is not None]
        return SampleCount(min(limits), "about") if limits else SampleCount()

    @property
    def shares(self) -> Mapping[str, float] | None:
        """The shares of the samples to draw, by domain; ``None`` if no share is drawn."""
        if isinstance(self.sample, Mapping):
            return self.sample
        return {OTHER_DOMAINS: self.sample} if isinstance(self.sample, float) else None

    @property
    def reads_config(self) -> bool:
        """Whether a config is needed, because one is named or for scorers that are not objects."""
        return self.config is not None or not self.scorers or any(spec is not None for spec in self.scorers)

    def load_config(self) -> "Config":
        """Return the config that the scorers are built with. ``judge`` already includes the environment."""
        from judgekit.config import Config  # noqa: PLC0415 - loads judges, which objects may not need

        switches = {"offline": self.offline, **({} if self.together is None else {"together": self.together})}
        return Config(None if self.config is None else text_path(self.config), self.judge, {}, **switches)

    def samples(
        self, problems: ReadingProblems, sample_filter: Callable[[int], bool] | None = None, *, keeps_text: bool = True
    ) -> Iterator[tuple[int, Sample]]:
        """Yield the samples of the file with the numbers of their records; see `Recordings.numbered`.

        Unless the run ``keeps_text``, errors do not quote the recordings.
        """
        if self.file is None:
            return

        from judgekit.formats.reading import Recordings  # noqa: PLC0415 - loads all readers

        references = None if self.references is None else self.location(self.references)
        part = Shard.parse(self.shard) if self.shard else None
        recordings = Recordings(
            self.location(self.file),
            self.format,
            references,
            self.columns,
            self.encoding,
            part,
            self.no_answer or "failed",
        )

        def note(error: TraceError) -> None:
            problems.append(error if keeps_text else error.without_words())

        on_error: OnError = "raise" if self.strict else note
        try:
            if self.limit is None and not isinstance(self.sample, int):
                numbered = recordings.numbered(on_error, sample_filter)
            else:
                numbered = self._chosen(recordings.numbered(on_error), sample_filter)
            if (shares := self.shares) is None:
                yield from numbered
            else:
                yield from (pair for pair in numbered if self._is_drawn(pair[1], shares))
        except TraceError as error:
            raise error if keeps_text else error.without_words() from None
        finally:
            problems.failed = problems.failed or bool(recordings.failed)

    def _chosen(
        self, numbered: Iterator[tuple[int, Sample]], sample_filter: Callable[[int], bool] | None
    ) -> Iterator[tuple[int, Sample]]:
        """Yield the samples that ``limit`` and the number of ``sample`` choose, as far as they are wanted."""
        chosen: Iterable[tuple[int, Sample]] = islice(numbered, self.limit)
        if isinstance(self.sample, int):
            chosen = _random_sample(chosen, self.sample, random.Random(self.seed))  # noqa: S311 - a draw, not a secret
        return (pair for pair in chosen if sample_filter is None or sample_filter(pair[0]))

    def _is_drawn(self, sample: Sample, shares: Mapping[str, float]) -> bool:
        """Return whether the rank of a sample, which is a hash of its id, is among the first ones."""
        seeded_id = f"{self.seed} {sample.id}".encode(errors="surrogatepass")
        rank = int.from_bytes(hashlib.blake2b(seeded_id, digest_size=8).digest())
        return rank < shares.get(sample.domain or OTHER_DOMAINS, shares[OTHER_DOMAINS]) * _RANKS


def _random_sample(
    samples: Iterable[tuple[int, Sample]], size: int, draw: random.Random
) -> Iterator[tuple[int, Sample]]:
    """Yield a random sample in the order of the file, drawn while reading (Vitter 1985, algorithm R)."""
    kept: list[tuple[int, Sample]] = []
    for index, pair in enumerate(samples):
        if index < size:
            kept.append(pair)
        elif (replaced := draw.randrange(index + 1)) < size:
            kept[replaced] = pair
    yield from sorted(kept, key=lambda pair: pair[0])
