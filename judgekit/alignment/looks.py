"""Looks at test labels: how often alignments tested by the same recordings, whatever the scorer, its name, or the store."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from errno import ENOSPC
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, ValidationError

from judgekit.alignment.refusals import spoken_text, words
from judgekit.errors import StoreError, validation_message
from judgekit.runs.hashes import recording_key
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.sample import Sample

LOOKS_FILE = "looks.jsonl"
_MAX_BYTES = 16_000_000
_HASHES, _DIGITS = 32, 8
_SUCCESSIVE = 3
_IDEOGRAPHS = "\u3040-\u9fff\uac00-\ud7af"
_PIECE = re.compile(f"[{_IDEOGRAPHS}]|[^{_IDEOGRAPHS}]+")
_ADVICE = "restore it, for example from version control"

Sketch = Annotated[str, StringConstraints(pattern=rf"^([0-9a-f]{{{_DIGITS}}}){{1,{_HASHES}}}$")]


class Look(FrozenModel):
    """A look at test labels.

    Attributes:
        alignment: The id of the alignment.
        made_at: When it was made.
        tested: A `sketch` of each recording that was tested by.
        others: That of each other labeled recording. They count as looked at too, since any change of a recording may give it
            another role.
    """

    alignment: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
    made_at: datetime
    tested: Many[Sketch]
    others: Many[Sketch] = ()


def sketch(sample: Sample) -> str:
    """Return hashes by which near-copies of a recording are recognized: the 32 smallest of three successive words.

    The Jaccard similarity of two of these sets estimates that of all triples of words, and equals it for short recordings.
    Source: Broder 1997, "On the resemblance and containment of documents".
    """
    pieces = [piece for word in words(spoken_text(sample)) for piece in _PIECE.findall(word)]
    triples = [" ".join(pieces[at : at + _SUCCESSIVE]) for at in range(max(1, len(pieces) - _SUCCESSIVE + 1))]
    texts = triples if pieces else [recording_key(sample)]
    hashes = {
        hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGITS // 2).hexdigest() for text in texts
    }
    return "".join(sorted(hashes)[:_HASHES])


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
    count = 1
    for earlier in read_looks(folder):
        if earlier.alignment == look.alignment:
            break
        count += _is_same(look.tested, (*earlier.tested, *earlier.others))
    return count


def read_looks(folder: Path) -> Sequence[Look]:
    """Return all recorded looks in their order.

    Raises:
        StoreError: The file cannot be read, is too large, or a line is damaged.
    """
    path = folder / LOOKS_FILE
    try:
        if not path.exists():
            return []
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            advice = "delete lines of recordings that are no longer used"
            raise StoreError(f"{path}: expected a file of at most {_MAX_BYTES:,} bytes: {advice}")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StoreError(f"{path}: looks at test labels cannot be counted: {error}; {_ADVICE}") from error
    looks: list[Look] = []
    for number, line in enumerate(lines, 1):
        try:
            looks.append(Look.model_validate_json(line))
        except ValidationError as error:
            raise StoreError(
                f"{path}, line {number}: not a valid look: {validation_message(error)}; {_ADVICE}"
            ) from error
    return looks


def _append(look: Look, path: Path) -> None:
    """Add a line in one write, between those of other processes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        try:
            line = f"{look.model_dump_json()}\n".encode()
            if os.write(descriptor, line) < len(line):
                raise OSError(ENOSPC, "the disk is full")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"{path}: the look at test labels cannot be recorded: {error}") from error


def _is_same(later: Iterable[str], earlier: Iterable[str]) -> bool:
    """Return whether at least half of the later recordings are among the earlier ones."""
    sizes: list[int] = []
    having: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(earlier):
        hashes = _split(text)
        sizes.append(len(hashes))
        for hash_text in hashes:
            having[hash_text].append(number)
    same = [_is_copy(_split(text), having, sizes) for text in later]
    return 2 * sum(same) >= len(same)


def _is_copy(hashes: set[str], having: dict[str, list[int]], sizes: Sequence[int]) -> bool:
    shared = Counter(number for hash_text in hashes for number in having.get(hash_text, ()))
    return any(2 * count >= len(hashes) + sizes[number] - count for number, count in shared.items())


def _split(text: str) -> set[str]:
    return {text[at : at + _DIGITS] for at in range(0, len(text), _DIGITS)}
