"""The judges of a test session, and the cassettes that they are replayed from and recorded to."""

from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import final

import pytest

from judgekit.config import FILE, Config
from judgekit.errors import StoreError
from judgekit.judges.cassettes import RecordedReplies, write_lines
from judgekit.judges.judge import Judge
from judgekit.judges.replies import CachedReplies


@final
class Judges:
    """Judges by their name in ``judgekit.toml``, which lies where pytest's root is, or by their model.

    There is one of a name and a cassette for the whole session, so that its budget holds for all tests.

    Attributes:
        may_ask: Whether requests may be sent.
    """

    def __init__(self, config: pytest.Config, folders: pytest.TempPathFactory) -> None:
        self.may_ask = bool(config.getoption("--judgekit-judges"))
        self._root = config.rootpath
        self._folders = folders
        self._recordings: dict[Path, _Recording] = {}
        self._with_cassettes: dict[tuple[str, Path], Judge] = {}

    @cached_property
    def _config(self) -> Config:
        path = self._root / FILE
        return Config(path if path.is_file() else None, None, {})

    def judge(self, name: str, cassette: Path | None) -> Judge:
        """A judge that answers from a cassette, if one is given; what is not there it asks, if it may, and else raises.

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
                kept = {"cache": self._recording(cassette).replies, "cache_mode": "read_write"}
            # What another judge answers in its place would be recorded as somebody else's.
            self._with_cassettes[name, cassette] = judge.model_copy(update={**kept, "fallback": ()})
        return self._with_cassettes[name, cassette]

    def _recording(self, cassette: Path) -> "_Recording":
        if cassette not in self._recordings:
            self._recordings[cassette] = _Recording(cassette, self._folders.mktemp("judgekit"))
        return self._recordings[cassette]

    def save(self, cassette: Path) -> None:
        """Adds what was asked to a cassette.

        Raises:
            StoreError: It cannot be written.
        """
        if cassette in self._recordings:
            self._recordings[cassette].save()


class _Recording:
    """The replies of a cassette in a cache of their own, and behind them what was asked since."""

    def __init__(self, cassette: Path, folder: Path) -> None:
        self.replies = folder / "replies.sqlite"
        self._cassette = cassette
        cache = CachedReplies(self.replies)
        if cassette.exists():
            cache.add(RecordedReplies(cassette).recorded(), replace=True)
        self._saved = {line.key for line in cache.recorded()}
        cache.close()

    def save(self) -> None:
        """Adds the new replies to the cassette, behind all others, in one write: other processes may add theirs."""
        cache = CachedReplies(self.replies)
        new = [line for line in cache.recorded() if line.key not in self._saved]
        cache.close()
        if not new:
            return
        lines = BytesIO()
        write_lines(lines, new)
        try:
            self._cassette.parent.mkdir(parents=True, exist_ok=True)
            with self._cassette.open("a+b", buffering=0) as file:
                file.seek(0)
                unfinished = file.read()[-1:] not in (b"", b"\n")  # by an editor
                file.write(b"\n" * unfinished + lines.getvalue())
        except OSError as error:
            raise StoreError(f"{self._cassette}: cannot be written: {error}") from error
        self._saved |= {line.key for line in new}
