"""Looks at test labels: how often alignments tested by the same recordings, whatever the scorer, its name, or the store."""

import hashlib
import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain, takewhile
from pathlib import Path

from pydantic import ValidationError

from judgekit.alignment.refusals import spoken_text, words
from judgekit.errors import StoreError, validation_message
from judgekit.runs.hashes import recording_key
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.sample import Sample

LOOKS_FILE = "looks.jsonl"
_MAX_BYTES = 16_000_000
_REREADS = 100
_HASHES, _HASH_BYTES = 32, 4
_SUCCESSIVE = 3
_IDEOGRAPHS = "\u3040-\u9fff\uac00-\ud7af"
_PIECE = re.compile(f"[{_IDEOGRAPHS}]|[^{_IDEOGRAPHS}]+")


class Look(FrozenModel):
    """A look at test labels by an alignment with this id.

    ``tested`` has a `sketch` of each recording that was tested by, and ``others`` those of the other labeled recordings. They
    count as looked at too, since any change of a recording may give it another role.
    """

    alignment: str
    tested: Many[Many[int]]
    others: Many[Many[int]] = ()


def sketch(sample: Sample) -> Sequence[int]:
    """Return hashes by which near-copies of a recording are recognized: the 32 smallest of three successive words.

    The Jaccard similarity of two of these sets estimates that of all triples of words, and equals it for short recordings.
    Source: Broder 1997, "On the resemblance and containment of documents".
    """
    pieces = [piece for word in words(spoken_text(sample)) for piece in _PIECE.findall(word)]
    triples = [" ".join(pieces[at : at + _SUCCESSIVE]) for at in range(max(1, len(pieces) - _SUCCESSIVE + 1))]
    texts = (text.encode(errors="surrogatepass") for text in (triples if pieces else [recording_key(sample)]))
    hashes = {int.from_bytes(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest()) for text in texts}
    return tuple(sorted(hashes)[:_HASHES])


def count_look(look: Look, folder: Path) -> int:
    """Return the number of looks at the same recordings up to this one, which is recorded if it is new.

    An earlier look was at the same labels if at least half of the recordings tested by now were labeled then. Two recordings are
    the same if at least half of their triples of successive words are.

    Raises:
        StoreError: The file of looks cannot be read or written.
    """
    if all(earlier.alignment != look.alignment for earlier in read_looks(folder)):
        _append(look, folder / LOOKS_FILE)
    # Processes that look at once read their own line and those before it, so that each has another number.
    before = takewhile(lambda earlier: earlier.alignment != look.alignment, read_looks(folder))
    return 1 + sum(_is_same(look, earlier) for earlier in before)


def read_looks(folder: Path) -> Sequence[Look]:
    """Return all recorded looks in their order.

    Raises:
        StoreError: The file cannot be read, is too large, or a line is damaged.
    """
    path, looks = folder / LOOKS_FILE, list[Look]()
    try:
        if not path.exists():
            return []
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            raise StoreError(
                f"{path}: expected a file of at most {_MAX_BYTES:,} bytes: delete lines that are no longer used"
            )
        body = path.read_bytes()
        for _ in range(_REREADS):
            if not body or body.endswith(b"\n"):
                break
            time.sleep(0.01)  # another process is adding a line
            body = path.read_bytes()
        for line in body.splitlines():
            looks.append(Look.model_validate_json(line))
    except (OSError, ValidationError) as error:
        why = validation_message(error) if isinstance(error, ValidationError) else error
        message = f"not a file of looks: {why}; restore it, for example from version control"
        raise StoreError(f"{path}, after {len(looks)} lines: {message}") from error
    return looks


def _append(look: Look, path: Path) -> None:
    """Add a line in one write, between those of other processes."""
    line = f"{look.model_dump_json()}\n".encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            is_whole = file.write(line) == len(line)
    except OSError as error:
        raise StoreError(f"{path}: the look at test labels cannot be recorded: {error}") from error
    if not is_whole:
        raise StoreError(f"{path}: the disk is full; delete the last line")


def _is_same(later: Look, earlier: Look) -> bool:
    """Return whether at least half of the recordings tested by later were labeled earlier."""
    sizes: list[int] = []
    having: dict[int, list[int]] = defaultdict(list)
    for number, hashes in enumerate(chain(earlier.tested, earlier.others)):
        sizes.append(len(hashes))
        for hashed in hashes:
            having[hashed].append(number)

    def is_copy(hashes: Sequence[int]) -> bool:
        shared = Counter(number for hashed in hashes for number in having.get(hashed, ()))
        return any(2 * count >= len(hashes) + sizes[number] - count for number, count in shared.items())

    return 2 * sum(map(is_copy, later.tested)) >= len(later.tested)
