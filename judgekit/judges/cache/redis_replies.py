"""The stored replies of judges in Redis, which processes and machines share."""

import hashlib
import hmac
import json
import logging
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from pydantic_core import from_json

from judgekit.errors import StoreError, count_text, truncated
from judgekit.judges.cache.replies import Claim, ImportCounts, RecordedReply
from judgekit.judges.cache.reply_file import CLAIM_LEASE_SECONDS
from judgekit.judges.cache.unstored_replies import read_unstored, write_unstored
from judgekit.judges.providers.bodies import MAX_REPLY_BYTES
from judgekit.judges.redis.address import SIGNING_VARIABLE, cache_secret
from judgekit.judges.redis.server import Command, RedisServer, Script
from judgekit.judges.request import Reply, Request
from judgekit.threads import run_in_thread

_log = logging.getLogger("judgekit")

_REPLY, _CLAIM, _TEXT = b"jk1:r:", b"jk1:c:", b"jk1:t:"
"""The prefixes of replies and claims, with the 32 bytes of a SHA-256, and of replies with any other key."""
_VERSION, _SIGNED = b"\x01", b"\x11"
"""The first byte of replies, and of those with a signature behind the checksum."""
_CHECKSUM, _SIGNATURE = 8, 32
_NAMES_BYTES = 100_000
"""The most that the names and digests of a request add to its reply."""
_BLOCK = 16
"""Replies that are looked at together, since each may be long."""
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

_STORED = """
local function stored(key, most)
    local kind = redis.call('TYPE', key)['ok']
    if kind == 'none' then return false end
    if kind ~= 'string' or redis.call('STRLEN', key) > tonumber(most) then return '' end
    return redis.call('GET', key)
end
"""
"""A function of scripts: an entry, which is empty if it cannot be one of ours."""
_GET_SCRIPT = Script(f"""{_STORED}
local values = {{}}
for number, key in ipairs(KEYS) do values[number] = stored(key, ARGV[1]) end
return values
""")
_CLAIM_SCRIPT = Script(f"""{_STORED}
local reply = stored(KEYS[1], ARGV[3])
if reply then return reply end
local holder, left = stored(KEYS[2], 1000), redis.call('PTTL', KEYS[2])
if holder and holder ~= ARGV[1] and left >= 0 and left <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
""")
"""A claim that never ends, or later than any of ours, is no claim."""
_PUT_SCRIPT = Script(f"""{_STORED}
local stands = stored(KEYS[1], ARGV[3])
if stands and ARGV[2] == '' then
    redis.call('DEL', KEYS[2])
    return stands
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return 1
""")
_RENEW_SCRIPT = Script(f"""{_STORED}
for place, claim in ipairs(KEYS) do
    local holder = stored(claim, 1000)
    if not holder or holder == ARGV[place + 1] then redis.call('SET', claim, ARGV[place + 1], 'PX', ARGV[1]) end
end
""")
"""Also restores a claim that a server without persistence has forgotten."""
_DELETE_SCRIPT = Script(f"{_STORED} if stored(KEYS[1], ARGV[2]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end")
"""Deletes a claim of this token, or a reply of this value."""


class RedisReplyStore:
    """The store of replies in Redis. It takes its time from the server, so the clocks of machines may differ.

    Replies are compressed, and have checksums, and signatures if there is a secret; what is damaged, too long or not
    signed is deleted, with a warning in the log. Replies that cannot be stored until the store is closed go to a file,
    from which the next store with this server puts them.

    Args:
        server: The server, which the store closes.
        read_only: Delete nothing, and look at the requests only once to find how others differ.
        max_reply_bytes: The maximum size of a reply.

    Raises:
        ConfigError: The secret is too short.
    """

    def __init__(self, server: RedisServer, *, read_only: bool = False, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        self._server = server
        self._secret = cache_secret()
        self._most = max_reply_bytes + _NAMES_BYTES
        self._read_only = read_only
        self._parts: list[tuple[str, dict[str, str]]] | None = None
        self._unstored: dict[str, tuple[RecordedReply, Reply]] = {}

    def restore(self) -> None:
        """Put the replies that earlier stores could not put. It blocks."""
        for lines in read_unstored(self._server.address):
            RedisReplies(self._server).add(lines, replace=False)

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        (value,) = await self._server.ask(_GET_SCRIPT((_name(key),), self._most))
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
        command = _CLAIM_SCRIPT(names, claim.token, int(CLAIM_LEASE_SECONDS * 1000), self._most)
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
        command = _put_command(line, reply, self._secret, self._most, replace=replace)
        while isinstance(stored := await self._server.ask(command), bytes):
            if (stands := await self._intact(line.key, stored)) is not None:
                return stands
        return reply

    async def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        await self._server.ask(_DELETE_SCRIPT((_claim_name(claim.key),), claim.token, 1000))

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
        if (line := _unpacked(key, value, self._server, self._secret, self._most)) is not None:
            return line.reply
        _log.warning("%s: ignoring a damaged reply", self._server.address)
        if not self._read_only:
            await self._server.ask(_DELETE_SCRIPT((_name(key),), value, self._most))
        return None


class RedisReplies:
    """The replies in Redis, for those who look at them or copy them. What is none is skipped, and named in the log.

    Raises:
        ConfigError: The secret is too short.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._secret = cache_secret()
        self._most = MAX_REPLY_BYTES + _NAMES_BYTES

    def recorded(self, prompt: str = "*", judge: str = "*") -> Iterator[RecordedReply]:
        """Yield the replies with their requests, sorted by prompt, judge and key. See `ReplyDatabase.prune`."""
        yield from sorted(self._found(prompt, judge), key=lambda line: (line.prompt, line.judge, line.key))

    def _found(self, prompt: str, judge: str) -> Iterator[RecordedReply]:
        seen = set[bytes]()
        skipped: list[str] = []
        for prefix in (_REPLY, _TEXT):
            for block in self._server.scan(prefix):
                new = [name for name in block if name not in seen]
                seen.update(new)
                for names in (new[at : at + _BLOCK] for at in range(0, len(new), _BLOCK)):
                    for name, value in zip(names, self._values(names), strict=True):
                        if value is None:
                            continue
                        if (line := self._line(_key(name), value)) is None:
                            skipped.append(truncated(repr(name)[2:-1], 80))
                        elif _fits(line, prompt, judge):
                            yield line
        if skipped:
            _log.warning(
                "%s: skipped %s without an intact reply%s: %s",
                *(self._server.address, count_text(len(skipped), "key")),
                *(f" that {SIGNING_VARIABLE} signs" if self._secret else "", ", ".join(skipped[:3])),
            )

    def _values(self, names: list[bytes]) -> list[bytes | None]:
        (values,) = self._server.run(_GET_SCRIPT(names, self._most))
        return list(values)

    def _line(self, key: str | None, value: bytes) -> RecordedReply | None:
        return None if key is None else _unpacked(key, value, self._server, self._secret, self._most)

    def add(self, lines: Iterable[RecordedReply], *, replace: bool) -> ImportCounts:
        """Store replies that were recorded elsewhere. See `ReplyDatabase.add`."""
        new = same = other = 0
        for line in lines:
            if line.reply is None:
                continue
            (value,) = self._values([_name(line.key)])
            kept = None if value is None else self._line(line.key, value)
            if kept is not None and kept.reply == line.reply:
                same += 1
                continue
            new += kept is None
            other += kept is not None
            if kept is None or replace:
                replaced = value is not None
                self._server.run(_put_command(line, line.reply, self._secret, self._most, replace=replaced))
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


def _put_command(line: RecordedReply, reply: Reply, secret: bytes, most: int, *, replace: bool) -> Command:
    names = _name(line.key), _claim_name(line.key)
    return _PUT_SCRIPT(names, _packed(line, reply, secret), "replace" if replace else "", most)


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


def _key(name: bytes) -> str | None:
    """Return the key of the reply with this name; ``None`` if judgekit gives no such name."""
    if name.startswith(_REPLY):
        return name.removeprefix(_REPLY).hex()
    try:
        return name.removeprefix(_TEXT).decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return None


def _packed(line: RecordedReply, reply: Reply, secret: bytes = b"") -> bytes:
    at = line.recorded_at or datetime.now(UTC)
    fields = [line.judge, line.prompt, line.digests, int(at.timestamp()), reply.model_dump(exclude_defaults=True)]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    compressor = zlib.compressobj(wbits=-15, zdict=_DICTIONARY)
    body = compressor.compress(text) + compressor.flush()
    if not secret:
        return _VERSION + _checksum(line.key, body) + body
    signed = _signature(line.key, body, secret) + body
    return _SIGNED + _checksum(line.key, signed) + signed


def _unpacked(
    key: str, value: bytes, server: RedisServer, secret: bytes = b"", most: int = MAX_REPLY_BYTES
) -> RecordedReply | None:
    """Return the reply in a value; ``None`` if it is damaged, too long, or not signed with the secret.

    Raises:
        StoreError: It was written by a newer judgekit, or is signed and there is no secret.
    """
    version, checksum, body = value[:1], value[1 : 1 + _CHECKSUM], value[1 + _CHECKSUM :]
    if checksum != _checksum(key, body):
        return None
    if version not in (_VERSION, _SIGNED):
        raise StoreError(
            f"{server.address}: holds replies of a newer judgekit; update judgekit, or use another database of the "
            "server, such as redis://host/1"
        )
    if version == _SIGNED:
        if not secret:
            raise StoreError(
                f"{server.address}: holds signed replies; set {SIGNING_VARIABLE} to the secret of those who stored them, "
                "or use another database of the server, such as redis://host/1"
            )
        signature, body = body[:_SIGNATURE], body[_SIGNATURE:]
        if not hmac.compare_digest(signature, _signature(key, body, secret)):
            return None
    elif secret:
        return None
    try:
        text = zlib.decompressobj(wbits=-15, zdict=_DICTIONARY).decompress(body, most)
        judge, prompt, digests, at, reply = from_json(text)  # lone surrogates and deep nesting are ValueErrors
        return RecordedReply(
            key=key,
            digests=digests,
            judge=judge,
            prompt=prompt,
            recorded_at=datetime.fromtimestamp(at, UTC),
            reply=reply,
        )
    except (ValueError, TypeError, OverflowError, OSError, zlib.error):
        return None


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM, key=key.encode(errors="surrogatepass")[:64]).digest()


def _signature(key: str, body: bytes, secret: bytes) -> bytes:
    of_key = hashlib.sha256(key.encode(errors="surrogatepass")).digest()
    return hmac.digest(secret, of_key + body, "sha256")
