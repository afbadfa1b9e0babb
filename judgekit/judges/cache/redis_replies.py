"""The stored replies of judges in Redis, which processes and machines share."""

import hashlib
import json
import logging
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from pydantic import ValidationError

from judgekit.errors import StoreError
from judgekit.judges.cache.replies import Claim, ImportCounts, RecordedReply
from judgekit.judges.cache.reply_file import CLAIM_LEASE_SECONDS
from judgekit.judges.cache.unstored_replies import read_unstored, write_unstored
from judgekit.judges.redis.server import Command, RedisServer, Script
from judgekit.judges.request import Reply, Request
from judgekit.threads import run_in_thread

_log = logging.getLogger("judgekit")

_REPLY, _CLAIM, _TEXT = b"jk1:r:", b"jk1:c:", b"jk1:t:"
"""The prefixes of replies and claims, with the 32 bytes of a SHA-256, and of replies with any other key."""
_VERSION = b"\x01"
_CHECKSUM = 8
_LONGEST = 100_000_000
_DICTIONARY = (
    b'"system_fingerprint":"fp_","cost_usd":0.000,"price_list":"litellm 1.'
    b'messages[3] (user)":"messages[2] (assistant)":"images":"headers":"query":"client":'
    b'{"answer":"{"topics": [{"topic": "verdict": "not_achieved"partly"good"bad"yes"no"true, "false, "label": "score": '
    b"the user asked for the agent did not The assistant says that it was answered in message "
    b'["openai/gpt-","@",{"provider":"","base_url":"","model":"","params":"","schema":"","repeat":"","messages":"",'
    b'"messages[0] (system)":"","messages[1] (user)":""},17955,'
    b'{"text":"{\\"goals\\": [{\\"goal\\": \\"\\", \\"end_state\\": \\"\\", \\"reason\\": \\"\\", \\"evidence\\": [1, 2], '
    b'\\"verdict\\": \\"achieved\\"}]}","model":"gpt-","usage":{"input_tokens":,"output_tokens":,"cached_tokens":,'
    b'"reasoning_tokens":,"extra":{}}}]'
)
"""Texts that are in most replies, which makes compressed ones half as long. It is a part of the version."""

_CLAIM_SCRIPT = Script("""
local reply = redis.call('GET', KEYS[1])
if reply then return reply end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
""")
_PUT_SCRIPT = Script("""
local stands = redis.call('GET', KEYS[1])
if stands and ARGV[2] == '' then
    redis.call('DEL', KEYS[2])
    return stands
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return 1
""")
_RENEW_SCRIPT = Script("""
for place, claim in ipairs(KEYS) do
    local holder = redis.call('GET', claim)
    if not holder or holder == ARGV[place + 1] then redis.call('SET', claim, ARGV[place + 1], 'PX', ARGV[1]) end
end
""")
"""Also restores a claim that a server without persistence has forgotten."""
_DELETE_SCRIPT = Script("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end")
"""Deletes a claim of this token, or a reply of this value."""


class RedisReplyStore:
    """The store of replies in Redis. It takes its time from the server, so the clocks of machines may differ.

    Replies are compressed and have checksums; damaged ones are deleted, with a warning in the log. Replies that cannot
    be stored until the store is closed go to a file, from which the next store with this server puts them.

    Args:
        server: The server, which the store closes.
        read_only: Look at the requests only once to find how others differ, since no reply is added.
    """

    def __init__(self, server: RedisServer, *, read_only: bool = False) -> None:
        self._server = server
        self._read_only = read_only
        self._parts: list[tuple[str, dict[str, str]]] | None = None
        self._unstored: dict[str, tuple[RecordedReply, Reply]] = {}

    def restore(self) -> None:
        """Put the replies that earlier stores could not put. It blocks."""
        for lines in read_unstored(self._server.address):
            RedisReplies(self._server).add(lines, replace=False)

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        value = await self._server.ask(Command(("GET", _name(key))))
        return None if value is None else await self._intact(key, value)

    async def digests(self, prompt: str | None = None, /) -> list[dict[str, str]]:
        """Return the hashed parts of all requests, or of the requests of a prompt in any version."""
        if self._parts is None or not self._read_only:
            lines = await run_in_thread(lambda: [*RedisReplies(self._server).recorded()])
            self._parts = [(line.prompt.partition("@")[0], line.digests) for line in lines if line.digests]
        return [digests for name, digests in self._parts if prompt in (None, name)]

    async def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted."""
        names = _name(claim.key), _claim_name(claim.key)
        command = _CLAIM_SCRIPT(names, claim.token, int(CLAIM_LEASE_SECONDS * 1000))
        while isinstance(held := await self._server.ask(command), bytes):
            if (reply := await self._intact(claim.key, held)) is not None:
                return reply
        return bool(held)

    async def put(self, request: Request, reply: Reply, /, *, replace: bool = False) -> Reply:
        """Store a reply and end all claims on it; return the reply that stands."""
        line = _line(request, reply)
        if not replace:
            self._unstored[request.key] = line, reply
        stands = await self._put(line, reply, replace=replace)
        self._unstored.pop(request.key, None)
        return stands

    async def _put(self, line: RecordedReply, reply: Reply, *, replace: bool) -> Reply:
        command = _put_command(line, reply, replace=replace)
        while isinstance(stored := await self._server.ask(command), bytes):
            if (stands := await self._intact(line.key, stored)) is not None:
                return stands
        return reply

    async def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        await self._server.ask(_DELETE_SCRIPT((_claim_name(claim.key),), claim.token))

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims."""
        held = list(claims)
        tokens = [claim.token for claim in held]
        names = [_claim_name(claim.key) for claim in held]
        self._server.run(_RENEW_SCRIPT(names, int(CLAIM_LEASE_SECONDS * 1000), *tokens))

    async def aclose(self) -> None:
        """Finish pending writes, and close the connection."""
        try:
            while self._unstored:
                key = next(iter(self._unstored))
                await self._put(*self._unstored[key], replace=False)
                del self._unstored[key]
        except StoreError:
            write_unstored(self._server.address, [line for line, _ in self._unstored.values()])
        finally:
            await self._server.aclose()

    async def _intact(self, key: str, value: bytes) -> Reply | None:
        """Return the reply in a value; delete it if it is damaged."""
        if (line := _unpacked(key, value, self._server)) is None:
            await self._server.ask(_DELETE_SCRIPT((_name(key),), value))
            return None
        return line.reply


class RedisReplies:
    """The replies in Redis, for those who look at them or copy them."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def recorded(self, prompt: str = "*", judge: str = "*") -> Iterator[RecordedReply]:
        """Yield the replies with their requests, sorted by prompt, judge and key. See `ReplyDatabase.prune`."""
        yield from sorted(self._found(prompt, judge), key=lambda line: (line.prompt, line.judge, line.key))

    def _found(self, prompt: str, judge: str) -> Iterator[RecordedReply]:
        seen = set[bytes]()
        for prefix in (_REPLY, _TEXT):
            for block in self._server.scan(prefix):
                if not (names := [name for name in block if name not in seen]):
                    continue
                seen.update(names)
                (values,) = self._server.run(Command(("MGET", *names)))
                for name, value in zip(names, values, strict=True):
                    line = None if value is None else _unpacked(_key(name), value, self._server)
                    if line is not None and _fits(line, prompt, judge):
                        yield line

    def add(self, lines: Iterable[RecordedReply], *, replace: bool) -> ImportCounts:
        """Store replies that were recorded elsewhere. See `ReplyDatabase.add`."""
        new = same = other = 0
        for line in lines:
            if line.reply is None:
                continue
            (value,) = self._server.run(Command(("GET", _name(line.key))))
            kept = None if value is None else _unpacked(line.key, value, self._server)
            if kept is not None and kept.reply == line.reply:
                same += 1
                continue
            new += kept is None
            other += kept is not None
            if kept is None or replace:
                self._server.run(_put_command(line, line.reply, replace=value is not None))
        return ImportCounts(new, same, other)

    def prune(self, prompt: str, judge: str, before: datetime | None, *, dry_run: bool) -> int:
        """Delete replies, and return their number. See `ReplyDatabase.prune`."""
        old = [
            line.key
            for line in self._found(prompt, judge)
            if before is None or (line.recorded_at is not None and line.recorded_at < before)
        ]
        if not dry_run:
            for key in old:
                self._server.run(Command(("DEL", _name(key))))
        return len(old)

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


def _fits(line: RecordedReply, prompt: str, judge: str) -> bool:
    name = line.prompt.partition("@")[0]
    return fnmatchcase(line.judge, judge) and (fnmatchcase(line.prompt, prompt) or fnmatchcase(name, prompt))


def _line(request: Request, reply: Reply) -> RecordedReply:
    return RecordedReply.model_construct(
        key=request.key,
        judge=request.judge,
        prompt=request.prompt,
        digests=request.digests,
        recorded_at=datetime.now(UTC),
        reply=reply,
    )


def _put_command(line: RecordedReply, reply: Reply, *, replace: bool) -> Command:
    names = _name(line.key), _claim_name(line.key)
    return _PUT_SCRIPT(names, _packed(line, reply), "replace" if replace else "")


def _name(key: str) -> bytes:
    digest = _digest(key)
    return _TEXT + key.encode(errors="surrogatepass") if digest is None else _REPLY + digest


def _claim_name(key: str) -> bytes:
    return _CLAIM + (_digest(key) or key.encode(errors="surrogatepass"))


def _digest(key: str) -> bytes | None:
    """Return the bytes of a SHA-256 in hexadecimal; ``None`` for another key."""
    try:
        digest = bytes.fromhex(key)
    except ValueError:
        return None
    return digest if len(digest) == hashlib.sha256().digest_size and digest.hex() == key else None


def _key(name: bytes) -> str:
    if name.startswith(_TEXT):
        return name.removeprefix(_TEXT).decode(errors="surrogatepass")
    return name.removeprefix(_REPLY).hex()


def _packed(line: RecordedReply, reply: Reply) -> bytes:
    at = line.recorded_at or datetime.now(UTC)
    fields = [line.judge, line.prompt, line.digests, int(at.timestamp()), reply.model_dump(exclude_defaults=True)]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    compressor = zlib.compressobj(wbits=-15, zdict=_DICTIONARY)
    body = compressor.compress(text) + compressor.flush()
    return _VERSION + _checksum(line.key, body) + body


def _unpacked(key: str, value: bytes, server: RedisServer) -> RecordedReply | None:
    """Return the reply in a value; ``None`` if it is damaged, which the log says.

    Raises:
        StoreError: It was written by a newer judgekit.
    """
    version, checksum, body = value[:1], value[1 : 1 + _CHECKSUM], value[1 + _CHECKSUM :]
    if checksum == _checksum(key, body):
        if version != _VERSION:
            raise StoreError(
                f"{server.address}: holds replies of a newer judgekit; update judgekit, or use another database of the "
                "server, such as redis://host/1"
            )
        try:
            text = zlib.decompressobj(wbits=-15, zdict=_DICTIONARY).decompress(body, _LONGEST)
            judge, prompt, digests, at, reply = json.loads(text)
            return RecordedReply(
                key=key,
                digests=digests,
                judge=judge,
                prompt=prompt,
                recorded_at=datetime.fromtimestamp(at, UTC),
                reply=reply,
            )
        except (ValueError, TypeError, zlib.error, ValidationError):
            pass
    _log.warning("%s: ignoring a damaged reply", server.address)
    return None


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM, key=key.encode(errors="surrogatepass")[:64]).digest()
