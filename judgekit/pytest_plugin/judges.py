"""The judges of a test session, and the cassettes that they replay and record."""

import errno
import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import final

import pytest

from judgekit.config import CONFIG_FILE, Config
from judgekit.errors import StoreError
from judgekit.judges.cache.cassettes import Cassette, write_cassette_lines
from judgekit.judges.cache.replies import RecordedReply, ReplyDatabase
from judgekit.judges.cache.store import add_replies
from judgekit.judges.judge import Judge


@final
class SessionJudges:
    """Judges by their names in the ``judgekit.toml`` of pytest's root directory, or by their models.

    There is one judge per name and cassette for the whole session, so that its budget applies to all tests.
    """

    def __init__(self, config: pytest.Config, folders: pytest.TempPathFactory) -> None:
        self.may_ask = bool(config.getoption("--judgekit-judges"))
        self._root = config.rootpath
        self._worker: Mapping[str, str] | None = getattr(config, "workerinput", None)  # of pytest-xdist
        self._folders = folders
        self._recordings: dict[Path, _Recording] = {}
        self._with_cassettes: dict[tuple[str, Path], Judge] = {}

    @cached_property
    def _config(self) -> Config:
        path = self._root / CONFIG_FILE
        return Config(path if path.is_file() else None, None, {})

    @property
    def keep_text(self) -> bool:
        """Whether text of conversations and judges may be shown."""
        return self._config.store_text

    def judge(self, name: str, cassette: Path | None) -> Judge:
        """Return a judge that answers from a cassette, if given. Missing requests are sent if allowed, and else fail.

        Raises:
            ConfigError: There is no such judge.
            StoreError: The cassette cannot be used.
        """
        judge = self._config.judge(name)
        if cassette is None:
            return judge
        if (name, cassette) not in self._with_cassettes:
            kept: dict[str, object] = {"cache": cassette, "cache_mode": "replay"}
            if self.may_ask:
                if cassette not in self._recordings:
                    self._recordings[cassette] = _Recording(cassette, self._replies_of(cassette))
                kept = {"cache": self._recordings[cassette].replies, "cache_mode": "read_write"}
            # The answers of a fallback would be recorded as those of this judge.
            self._with_cassettes[name, cassette] = judge.model_copy(update={**kept, "fallback": ()})
        return self._with_cassettes[name, cassette]

    def _replies_of(self, cassette: Path) -> Path:
        """Return the file that keeps the replies during the session: one for all workers of pytest-xdist."""
        folder, session = self._folders.getbasetemp(), ""
        if self._worker is not None:
            folder, session = folder.parent, self._worker["testrunuid"]
        name = hashlib.sha256(bytes(cassette.resolve())).hexdigest()
        return folder / f"judgekit-{session}-{name}.sqlite"

    def save(self, cassette: Path) -> None:
        """Add new replies to a cassette."""
        if cassette in self._recordings:
            self._recordings[cassette].save()


class _Recording:
    """The replies of a cassette in a cache, which other processes share, and new replies."""

    def __init__(self, cassette: Path, replies: Path) -> None:
        self.replies = replies
        self._cassette = cassette
        with closing(ReplyDatabase(replies)) as cache, cache.exclusive():
            recorded = list(self._recorded())
            add_replies(cache, recorded, replace=True)
        self._saved = {line.key for line in recorded}

    def _recorded(self) -> Iterable[RecordedReply]:
        return Cassette(self._cassette).recorded() if self._cassette.exists() else ()

    def save(self) -> None:
        """Append the new replies to the cassette, unless another process has added them."""
        with closing(ReplyDatabase(self.replies)) as cache:
            if self._saved.issuperset(line.key for line in cache.recorded()):
                return
            with cache.exclusive():
                there = {line.key for line in self._recorded()}
                new = [line for line in cache.recorded() if line.key not in there]
                if new:
                    self._append(new)
        self._saved = there.union(line.key for line in new)

    def _append(self, new: Iterable[RecordedReply]) -> None:
        """Append lines in one write, since a process that does not share the cache may append others."""
        lines = BytesIO()
        write_cassette_lines(lines, new)
        try:
            self._cassette.parent.mkdir(parents=True, exist_ok=True)
            with self._cassette.open("a+b", buffering=0) as file:
                file.seek(0)
                before = file.read()
                unfinished = before[-1:] not in (b"", b"\n")  # as an editor may leave it
                text = b"\n" * unfinished + lines.getvalue()
                if file.write(text) < len(text):
                    file.truncate(len(before))
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise StoreError(f"{self._cassette}: cannot be written: {error}") from error
