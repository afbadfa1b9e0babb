"""Writing samples to a file."""

import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from secrets import token_hex
from typing import IO

from judgekit.errors import ConfigError
from judgekit.traces.files import STREAM
from judgekit.traces.given import samples_in
from judgekit.traces.packing import packed
from judgekit.traces.sample import Sample
from judgekit.traces.writers import WRITERS


def write(samples: Iterable[Sample], path: Path | str, format: str = "judgekit") -> Mapping[str, int]:
    """Writes samples as JSON Lines, one at a time.

    Args:
        samples: What to write. The file is made, or replaced, when all are there.
        path: The file, which is packed if its name ends in ``.gz`` or ``.zst``; ``-`` is standard output.
        format: ``judgekit``, which loses nothing; ``openai-chat`` or ``ragas``.

    Returns:
        What the format has no place for, by kind (``assistant: model``), and how often it was there.

    Raises:
        ConfigError: There is no such format, or something in ``samples`` is no sample.
        TraceError: What packs the file is not installed.
        OSError: The file cannot be written.
    """
    if format not in WRITERS:
        raise ConfigError.unknown("format to write", format, WRITERS)
    writer = WRITERS[format]
    missing = Counter[str]()
    samples = samples_in(samples)
    samples = chain(list(islice(samples, 1)), samples)
    with nullcontext(sys.stdout.buffer) if Path(path) == STREAM else replaced(Path(path)) as file:
        for index, sample in enumerate(samples):
            line, left_out = writer.written(sample, index)
            missing.update(left_out)
            if line is not None:
                file.write(f"{line}\n".encode())
    return dict(missing.most_common())


@contextmanager
def replaced(path: Path) -> Generator[IO[bytes]]:
    """A file that takes the place of another at the end, for that one may be read meanwhile."""
    if path.exists() and not path.is_file():  # a pipe, a device
        with packed(path) as file:
            yield file
        return
    path = path.resolve()
    part = path.with_name(f".part-{token_hex(4)}-{path.name}")  # two may write at once: the last one stays
    try:
        with packed(part) as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
