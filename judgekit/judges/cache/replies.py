"""The stored replies of judges, in a SQLite file that processes share."""

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import AwareDatetime, Field, ValidationError

from judgekit.judges.cache.reply_file import CLAIM_LEASE_SECONDS, ENDED_CLAIM_SQL, NEW_LEASE_SQL, ReplyFile, log
from judgekit.judges.request import Reply, Request
from judgekit.traces.message import FrozenModel

_SELECT = "SELECT key, judge, prompt, digests, reply, at, checksum FROM replies WHERE "
_GET = f"{_SELECT}key = ?"
_COUNT = "SELECT count(*) FROM replies WHERE "
_DELETE = "DELETE FROM replies WHERE "
_REPLACE = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING 1"
_ADD = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING 1"
_WHICH = "(prompt GLOB :prompt OR substr(prompt, 1, instr(prompt || '@', '@') - 1) GLOB :prompt) AND judge GLOB :judge"
_GRANT = (
    f"INSERT INTO claims SELECT :key, :token, {NEW_LEASE_SQL} WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = :key)"  # noqa: S608 - our own SQL
    f" ON CONFLICT (key) DO UPDATE SET owner = :token, until = excluded.until WHERE {ENDED_CLAIM_SQL} RETURNING 1"
)
_RENEW = f"UPDATE claims SET until = {NEW_LEASE_SQL} WHERE key = :key AND owner = :token"  # noqa: S608 - as above
_TIME = "%Y-%m-%dT%H:%M:%SZ"
"""The form of times in the file, which sorts by time."""


class Claim(NamedTuple):
    """The right to send a request while others wait for its reply. The token identifies the holder."""

    key: str
    token: str


class RecordedReply(FrozenModel):
    """A reply with the request that it answers; a line of a cassette.

    ``sample`` is a note for people, and so is a line with ``note`` alone.
    """

    note: str | None = None
    key: str = ""
    digests: dict[str, str] = Field(default_factory=dict[str, str])
    judge: str = ""
    prompt: str = ""
    sample: str | None = None
    recorded_at: AwareDatetime | None = None
    reply: Reply | None = None


class ReplyDatabase(ReplyFile):
    """The replies in a SQLite file that processes may share, and the claims on requests under way.

    Damaged replies are ignored, with a warning in the log.
    """

    def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        rows = self._execute(_GET, (key,))
        if not rows:
            return None
        if (reply := self._intact(rows[0])) is None and not self._read_only:
            self._execute(f"{_DELETE}key = ? AND checksum IS ?", (key, rows[0][-1]))
        return reply

    def _intact(self, row: Sequence[Any]) -> Reply | None:
        """Return the reply in a row, or ``None`` if it is damaged."""
        with suppress(TypeError, ValidationError):
            if _checksum(row[:-1]) == row[-1]:
                return Reply.model_validate_json(row[4])
        log.warning("%s: ignoring a damaged reply", self._path)
        return None

    def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted, and the request is to be sent from here."""
        if (kept := self.get(claim.key)) is not None:
            return kept
        if self._execute(_GRANT, {**claim._asdict(), "lease": CLAIM_LEASE_SECONDS}):
            return True
        return self.get(claim.key) or False  # another process may have stored it just now

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of those claims that still hold."""
        for claim in claims:
            self._execute(_RENEW, {**claim._asdict(), "lease": CLAIM_LEASE_SECONDS})

    def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        self._execute("DELETE FROM claims WHERE key = ? AND owner = ?", claim)

    def put(
        self, request: Request | RecordedReply, reply: Reply, /, at: datetime | None = None, *, replace: bool = False
    ) -> Reply:
        """Store a reply, as of now or another time, and end all claims on it.

        Returns:
            The reply that stands: an earlier one, unless it is to be replaced.
        """
        answer = json.dumps(reply.model_dump(exclude_defaults=True), ensure_ascii=False)
        time = f"{(at or datetime.now(UTC)).astimezone(UTC):{_TIME}}"
        texts = request.key, request.judge, request.prompt, json.dumps(request.digests), answer, time
        encoded = [text.encode(errors="replace") for text in texts]  # lone surrogates cannot be encoded
        row = (*(text.decode() for text in encoded), _checksum(encoded))
        while not self._execute(_REPLACE if replace else _ADD, row):
            if (stands := self.get(request.key)) is not None:  # a damaged one is deleted
                return stands
        return reply

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keep other processes from writing until the context ends."""
        self._execute("BEGIN IMMEDIATE")
        with self._explained():
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    def prune(self, prompt: str, judge: str, before: datetime | None, *, dry_run: bool) -> int:
        """Delete replies, and free their disk space.

        Args:
            prompt: A pattern for the prompt, with or without its version, such as ``agent_goal*``.
            judge: A pattern for the judge, such as ``openai/*``.
            before: Delete only replies that were stored before this time; ``None`` for all.
            dry_run: Delete nothing.

        Returns:
            The number of these replies.
        """
        which = {"prompt": prompt, "judge": judge, "before": before and f"{before.astimezone(UTC):{_TIME}}"}
        rows = self._execute(f"{_COUNT if dry_run else _DELETE}{_WHICH} AND (:before IS NULL OR at < :before)", which)
        if not dry_run:
            rows = self._execute("SELECT changes()")
            self._execute("VACUUM")
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(rows[0][0])

    def recorded(self, prompt: str = "*", judge: str = "*") -> Iterator[RecordedReply]:
        """Yield the replies with their requests, sorted by prompt, judge and key. See `prune` for the patterns.

        Damaged replies are left out, with a warning in the log.
        """
        sql = f"{_SELECT}{_WHICH} ORDER BY prompt, judge, key"
        with self._explained():
            for row in self._db.execute(sql, {"prompt": prompt, "judge": judge}):
                if (reply := self._intact(row)) is not None:
                    key, judge_, prompt_, digests, _, at, _ = row
                    yield RecordedReply(
                        key=key.decode(),
                        digests=json.loads(digests),
                        judge=judge_.decode(),
                        prompt=prompt_.decode(),
                        recorded_at=datetime.fromisoformat(at.decode()),
                        reply=reply,
                    )

    def digests(self) -> list[tuple[str, dict[str, str]]]:
        """Return the hashed parts of all requests, each with the name of its prompt."""
        rows = self._execute(f"{_SELECT}digests <> '{{}}'")
        intact = (row for row in rows if self._intact(row) is not None)
        return [(row[2].decode().partition("@")[0], json.loads(row[3])) for row in intact]


def _checksum(row: Sequence[bytes]) -> bytes:
    return hashlib.sha256(b"\n".join(row)).digest()
