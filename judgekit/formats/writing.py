"""Writing samples to a file."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path

from judgekit.atomic import atomic_write
from judgekit.errors import check_choice
from judgekit.formats.compression import compressing_stream
from judgekit.formats.file_lists import STANDARD_STREAM, require_json_lines
from judgekit.formats.writers import WRITERS
from judgekit.locations import to_location
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_samples


def write(samples: Iterable[Sample], path: Path | str, format: str = "judgekit") -> Mapping[str, int]:
    """Write samples as JSON Lines, one at a time.

    Args:
        samples: The samples. The file is created or replaced after all are written.
        path: The file or its URL, which is compressed if its name ends in ``.gz`` or ``.zst``; ``-`` is standard output.
        format: ``judgekit``, which loses nothing, ``openai-chat`` or ``ragas``.

    Returns:
        The number of values that the format cannot hold, by kind (``assistant: model``).

    Raises:
        ConfigError: The format is unknown, the file's name is that of another kind of file, such as ``.csv``, or an item
            of ``samples`` is not a sample.
        TraceError: The library that compresses the file is not installed.
        OSError: The file cannot be written.
    """
    check_choice("format to write", format, WRITERS)
    writer = WRITERS[format]
    path = to_location(path)
    require_json_lines(path)
    missing = Counter[str]()
    samples = check_samples(samples)
    samples = chain(list(islice(samples, 1)), samples)
    with (
        nullcontext(sys.stdout.buffer) if path == STANDARD_STREAM else atomic_write(path) as plain,
        compressing_stream(plain, path.suffix) as file,
    ):
        for index, sample in enumerate(samples):
            line, left_out = writer.written(sample, index)
            missing.update(left_out)
            if line is not None:
                file.write(f"{line}\n".encode())
    return dict(missing.most_common())
