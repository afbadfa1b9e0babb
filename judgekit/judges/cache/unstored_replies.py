"""Replies that could not be stored because Redis was away, in files from which the next run stores them."""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from judgekit.database import create_parent_folder
from judgekit.errors import StoreError, count_text
from judgekit.judges.cache.cassettes import Cassette, write_cassette
from judgekit.judges.cache.replies import RecordedReply
from judgekit.judges.redis.address import RedisAddress

_FOLDER = Path(".judgekit")

_log = logging.getLogger("judgekit")


def write_unstored(address: RedisAddress, lines: Sequence[RecordedReply]) -> None:
    """Write replies for a server into a file of their own, and log its name."""
    path = _FOLDER / f"{_prefix(address)}{uuid4().hex}.jsonl"
    count = count_text(len(lines), "paid request")
    try:
        create_parent_folder(path)
        write_cassette(path, lines)
    except (OSError, StoreError) as error:
        _log.error("%s: the replies to %s are lost: no file could be written either: %s", address, count, error)
        return
    cache = f"env:{address.env}" if address.env else address.url
    _log.warning(
        "%s: the replies to %s could not be stored there and are in %s. The next run in this folder stores them; "
        "elsewhere use judgekit cache import FILE --cache %s",
        *(address, count, path, cache),
    )


def read_unstored(address: RedisAddress) -> Iterator[list[RecordedReply]]:
    """Yield the replies of each file for a server, and then delete the file. Other processes may do so too."""
    for path in _FOLDER.glob(f"{_prefix(address)}*.jsonl"):
        try:
            lines = [*Cassette(path).recorded()]
        except StoreError:
            if path.exists():
                raise
            continue
        yield lines
        path.unlink(missing_ok=True)


def _prefix(address: RedisAddress) -> str:
    return f"unstored-{hashlib.sha256(str(address).encode()).hexdigest()[:8]}-"
