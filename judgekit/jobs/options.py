"""The options of a run, which are stored with it, so that it can be resumed and other processes can work on it."""

import hashlib
import random
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from judgekit.errors import ConfigError, TraceError, text_path, validation_message
from judgekit.locations import Location, Url, to_location
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import Input, RunRecord
from judgekit.shards import EVERYTHING, Shard
from judgekit.specs import ScorerSpec
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    from judgekit.config import Config
    from judgekit.formats.reading import OnError, Recordings

OTHER_DOMAINS = ""
"""Stands for samples without a domain, and for domains without a share of their own."""
PLACES = 2**64
_RUN_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class RunOptions(FrozenModel):
    """The recordings of a run, the scorers, and how both are read; see the options of ``judgekit run``.

    Attributes:
        file: The path or URL of the recordings; ``None`` if the samples were given in Python.
        scorers: The scorers in the order of their places; ``None`` stands for one that was given as an object.
        shard: The part of the recordings that this run scores, such as ``3/16``; all of them if not given.
        sample_share: The share of the samples to score, drawn by a hash of the ``seed`` and the sample's id, so that
            all shards and all files draw alike: one for all, or one for each domain, and for all others one without a name.
    """

    file: str | None = None
    format: str | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    encoding: str | None = None
    references: str | None = None
    config: str | None = None
    judge: str | None = None
    scorers: Many[ScorerSpec | None] = ()
    limit: int | None = None
    sample: int | None = None
    sample_share: float | Mapping[str, float] | None = None
    seed: int = 0
    shard: str | None = None
    gates: Many[str] = ()
    min_coverage: float = 0
    strict: bool = False
    offline: bool = False

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
                "--shard and --run-id go together: all shards of a run have the same --run-id, a new one for each run"
            )
        if run_id is not None and not _RUN_ID.fullmatch(run_id):
            raise ConfigError(f"--run-id {run_id!r}: expected up to 100 letters, digits and . _ : -")
        whole_share = 1.0 if self.sample_share is None else self.sample_share
        shares = whole_share if isinstance(whole_share, Mapping) else {OTHER_DOMAINS: whole_share}
        for share in shares.values():
            if not 0 < share <= 1:
                raise ConfigError(f"--sample-share {share:g}: expected a share above 0, up to 1 (100%)")
        if OTHER_DOMAINS not in shares:
            raise ConfigError("--sample-share: add a share for all other domains, such as --sample-share 1%")
        whole = "--limit" if self.limit is not None else "--sample" if self.sample is not None else None
        is_part = self.shard is not None or self.sample_share is not None
        if is_part and whole is not None:
            reason = (
                "needs one process that reads everything" if self.shard else "cannot be combined with --sample-share"
            )
            raise ConfigError(f"{whole} {reason}; to score a part, use --sample-share 1%, which any shards draw alike")
        if is_part and self.file is None:
            raise ConfigError("shard and sample_share need the path of a file as data; of samples, pass a part")
        if self._part != EVERYTHING and (streams := self.streams):
            raise ConfigError(f"--shard: {streams[0]} can be read only once, by one process; write it to a file")

    def location(self, text: str) -> Location:
        """Return the place of recordings, references or labels.

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

            for path in (self.location(name) for name in (self.file, self.references) if name):
                for file in [path] if path == STANDARD_STREAM else list_files(path):
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

    def expected_samples(self) -> int | None:
        """Return the expected number of samples, if it can be found quickly."""
        if self.file is None:
            return None

        from judgekit.formats.counting import count_records  # noqa: PLC0415 - loads all readers
        from judgekit.formats.file_lists import STANDARD_STREAM, list_files  # noqa: PLC0415

        file = self.location(self.file)
        paths: Sequence[Location] = () if file == STANDARD_STREAM else list_files(file)
        found = count_records(paths, self.format)
        share = 1.0 if self.sample_share is None else self.sample_share
        if isinstance(share, Mapping):  # the shares of the domains are about those of all samples
            share = fmean(share.values())
        known = (None if found is None else round(found * share / self._part.count), self.limit, self.sample)
        return min((number for number in known if number is not None), default=None)

    @property
    def _part(self) -> Shard:
        return Shard.parse(self.shard) if self.shard else EVERYTHING

    @property
    def reads_config(self) -> bool:
        """Whether a config is needed, because one is named or for scorers that are not objects."""
        return self.config is not None or not self.scorers or any(spec is not None for spec in self.scorers)

    def with_config(self) -> "RunOptions":
        """Return the options with the gates of the config, and with its scorers if they name none."""
        if not self.reads_config:
            return self
        settings = self.load_config()
        found = {
            "scorers": tuple(self.scorers or settings.scorers),
            "gates": (*settings.gates, *self.gates),
            "min_coverage": settings.min_coverage,
        }
        return self.model_copy(update=found)

    def load_config(self) -> "Config":
        """Return the config that the scorers are built with. ``judge`` already includes the environment."""
        from judgekit.config import Config  # noqa: PLC0415 - loads judges, which objects may not need

        return Config(None if self.config is None else text_path(self.config), self.judge, {}, offline=self.offline)

    def _recordings(self, file: str) -> "Recordings":
        from judgekit.formats.reading import Recordings  # noqa: PLC0415 - loads all readers

        references = None if self.references is None else self.location(self.references)
        location = self.location(file)
        return Recordings(location, self.format, references, self.columns, self.encoding, self._part)

    def samples(
        self,
        problems: ReadingProblems,
        sample_filter: Callable[[int], bool] | None = None,
        *,
        keeps_text: bool = True,
    ) -> Iterator[tuple[int, Sample]]:
        """Yield the samples of the file with the numbers of their records; see `Recordings.numbered`.

        Unless the run ``keeps_text``, errors do not quote the recordings.
        """
        if self.file is None:
            return
        recordings = self._recordings(self.file)

        def note(error: TraceError) -> None:
            problems.append(error if keeps_text else error.without_words())

        on_error: OnError = "raise" if self.strict else note
        try:
            with _errors(keeps_text=keeps_text):
                if self.limit is None and self.sample is None:
                    for pair in recordings.numbered(on_error, sample_filter):
                        if self.is_drawn(pair[1]):
                            yield pair
                    return
                chosen: Iterable[tuple[int, Sample]] = islice(recordings.numbered(on_error), self.limit)
                if self.sample is not None:
                    chosen = _random_sample(chosen, self.sample, random.Random(self.seed))  # noqa: S311 - a draw, not a secret
                yield from (pair for pair in chosen if sample_filter is None or sample_filter(pair[0]))
        finally:
            problems.failed = problems.failed or bool(recordings.failed)

    def place_of(self, sample: Sample) -> int:
        """Return the place of a sample among `PLACES`: a hash of its id. The first ones are drawn."""
        said = f"{self.seed} {sample.id}".encode(errors="surrogatepass")
        return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest())

    def is_drawn(self, sample: Sample) -> bool:
        """Return whether the sample share draws a sample."""
        share = self.sample_share
        if isinstance(share, Mapping):
            share = share.get(sample.domain or OTHER_DOMAINS, share[OTHER_DOMAINS])
        return share is None or self.place_of(sample) < share * PLACES


@contextmanager
def _errors(*, keeps_text: bool) -> Generator[None]:
    """Let errors pass, without quotations of the recordings unless the run keeps their text."""
    try:
        yield
    except TraceError as error:
        raise error if keeps_text else error.without_words() from None


def _random_sample(
    samples: Iterable[tuple[int, Sample]], size: int, draw: random.Random
) -> Iterator[tuple[int, Sample]]:
    """Yield a random sample in the order of the file, drawn while reading (Vitter 1985, algorithm R)."""
    kept: list[tuple[int, Sample]] = []
    for index, pair in enumerate(samples):
        if index < size:
            kept.append(pair)
        elif (place := draw.randrange(index + 1)) < size:
            kept[place] = pair
    yield from sorted(kept, key=lambda pair: pair[0])
