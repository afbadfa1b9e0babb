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
from judgekit.judges.cache.replies import CLAIM_LEASE_SECONDS, Claim, RecordedReply
from judgekit.judges.providers.bodies import MAX_REPLY_BYTES
from judgekit.judges.redis.address import SIGNING_VARIABLE, cache_secret
from judgekit.judges.redis.server import RedisServer, script
from judgekit.judges.request import Reply, Request

_log = logging.getLogger("judgekit")

_REPLY, _CLAIM = b"jk1:r:", b"jk1:c:"
"""The prefixes of the keys of replies and claims."""
_VERSION, _SIGNED = b"\x01", b"\x11"
"""The first byte of replies, and of those with a signature behind the checksum."""
_CHECKSUM, _SIGNATURE = 8, 32
_NAMES_BYTES = 100_000
"""The most that the names and digests of a request add to its reply."""
_STORED = """
local function stored(key, most)
    local kind = redis.call('TYPE', key)['ok']
    if kind == 'none' then return false end
    if kind ~= 'string' or redis.call('STRLEN', key) > tonumber(most) then return '' end
    return redis.call('GET', key)
end
"""
"""A function of scripts: an entry, which is empty if it cannot be one of ours."""
_GET_SCRIPT = f"""{_STORED}
local values = {{}}
for number, key in ipairs(KEYS) do values[number] = stored(key, ARGV[1]) end
return values
"""
_CLAIM_SCRIPT = f"""{_STORED}
local reply = stored(KEYS[1], ARGV[3])
if reply then return reply end
local holder, left = stored(KEYS[2], 1000), redis.call('PTTL', KEYS[2])
if holder and holder ~= ARGV[1] and left >= 0 and left <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
"""
"""A claim that never ends, or later than any of ours, is no claim."""
_PUT_SCRIPT = f"""{_STORED}
local stands = stored(KEYS[1], ARGV[3])
if stands and ARGV[2] == '' then
    redis.call('DEL', KEYS[2])
    return stands
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return 1
"""
_RENEW_SCRIPT = f"""{_STORED}
for place, claim in ipairs(KEYS) do
    local holder = stored(claim, 1000)
    if not holder or holder == ARGV[place + 1] then redis.call('SET', claim, ARGV[place + 1], 'PX', ARGV[1]) end
end
"""
"""Also restores a claim that a server without persistence has forgotten."""
_DELETE_SCRIPT = f"{_STORED} if stored(KEYS[1], ARGV[2]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
"""Deletes a claim of this token, or a reply of this value."""


class RedisReplies:
    """The replies in Redis. The server gives the time, so the clocks of machines may differ.

    Replies are compressed, and have checksums, and signatures if there is a secret; what is damaged, too long or not
    signed is deleted, with a warning in the log.

    Args:
        server: The server, which is closed with the replies.
        read_only: Delete nothing that is damaged.
        max_reply_bytes: The maximum size of a reply.

    Raises:
        ConfigError: The secret is too short.
    """

    def __init__(self, server: RedisServer, *, read_only: bool = False, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        self._server = server
        self._secret = cache_secret()
        self._most = max_reply_bytes + _NAMES_BYTES
        self._read_only = read_only
        self._lost = 0

    def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        (value,) = self._values([_name(_REPLY, key)])
        return None if value is None else self._intact(key, value)

    def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted."""
        names = _name(_REPLY, claim.key), _name(_CLAIM, claim.key)
        command = script(_CLAIM_SCRIPT, names, claim.token, int(CLAIM_LEASE_SECONDS * 1000), self._most)
        while isinstance(held := self._server.run(command), bytes):
            if (reply := self._intact(claim.key, held)) is not None:
                return reply
        return bool(held)

    def put(
        self, request: Request | RecordedReply, reply: Reply, /, at: datetime | None = None, *, replace: bool = False
    ) -> Reply:
        """Store a reply, as of now or another time, and end all claims on it; return the reply that stands."""
        names = _name(_REPLY, request.key), _name(_CLAIM, request.key)
        entry = self._packed(request, reply, at or datetime.now(UTC))
        command = script(_PUT_SCRIPT, names, entry, "replace" if replace else "", self._most)
        try:
            while isinstance(stored := self._server.run(command), bytes):
                if (stands := self._intact(request.key, stored)) is not None:
                    return stands
        except StoreError:
            self._lost += 1
            raise
        return reply

    def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        self._server.run(script(_DELETE_SCRIPT, (_name(_CLAIM, claim.key),), claim.token, 1000))

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims."""
        held = list(claims)
        tokens = [claim.token for claim in held]
        names = [_name(_CLAIM, claim.key) for claim in held]
        self._server.run(script(_RENEW_SCRIPT, names, int(CLAIM_LEASE_SECONDS * 1000), *tokens))

    def close(self) -> None:
        """Close the connections, and log how many replies could not be stored."""
        if self._lost:
            lost = count_text(self._lost, "paid request")
            _log.error("%s: could not store the replies to %s, which will be sent again", self._server.address, lost)
        self._server.close()

    def _intact(self, key: str, value: bytes) -> Reply | None:
        """Return the reply in a value; delete it if it is damaged."""
        if (line := self._unpacked(key, value)) is not None:
            return line.reply
        _log.warning("%s: ignoring a damaged reply", self._server.address)
        if not self._read_only:
            self._server.run(script(_DELETE_SCRIPT, (_name(_REPLY, key),), value, self._most))
        return None

    def recorded(self, prompt: str = "*", judge: str = "*") -> Iterator[RecordedReply]:
        """Yield the replies with their requests, sorted by prompt, judge and key. See `ReplyDatabase.prune`."""
        yield from sorted(self._found(prompt, judge), key=lambda line: (line.prompt, line.judge, line.key))

    def _found(self, prompt: str, judge: str) -> Iterator[RecordedReply]:
        seen = set[bytes]()
        skipped: list[str] = []
        for block in self._server.scan(_REPLY):
            names = [name for name in block if name not in seen]
            seen.update(names)
            for name, value in zip(names, self._values(names), strict=True):
                key = name.removeprefix(_REPLY).decode(errors="replace")
                if value is None:
                    continue
                if (line := self._unpacked(key, value)) is None:
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
        return list(self._server.run(script(_GET_SCRIPT, names, self._most)))

    def prune(self, prompt: str, judge: str, before: datetime | None, *, dry_run: bool) -> int:
        """Delete replies, and return their number. See `ReplyDatabase.prune`."""
        old = [
            line.key
            for line in self._found(prompt, judge)
            if before is None or (line.recorded_at is not None and line.recorded_at < before)
        ]
        if not dry_run:
            for key in old:
                self._server.run(("DEL", _name(_REPLY, key)))
        return len(old)

    def _packed(self, request: Request | RecordedReply, reply: Reply, at: datetime) -> bytes:
        names = request.judge, request.prompt, request.digests
        fields = [*names, int(at.timestamp()), reply.model_dump(exclude_defaults=True)]
        body = zlib.compress(json.dumps(fields, ensure_ascii=False).encode(errors="replace"))
        if not self._secret:
            return _VERSION + _checksum(request.key, body) + body
        signed = _signature(request.key, body, self._secret) + body
        return _SIGNED + _checksum(request.key, signed) + signed

    def _unpacked(self, key: str, value: bytes) -> RecordedReply | None:
        """Return the reply in a value; ``None`` if it is damaged, too long, or not signed with the secret.

        Raises:
            StoreError: It was written by a newer judgekit, or is signed and there is no secret.
        """
        version, checksum, body = value[:1], value[1 : 1 + _CHECKSUM], value[1 + _CHECKSUM :]
        if checksum != _checksum(key, body):
            return None
        if version not in (_VERSION, _SIGNED):
            raise StoreError(
                f"{self._server.address}: holds replies of a newer judgekit; update judgekit, or use another database of "
                "the server, such as redis://host/1"
            )
        if version == _SIGNED:
            if not self._secret:
                raise StoreError(
                    f"{self._server.address}: holds signed replies; set {SIGNING_VARIABLE} to the secret of those who "
                    "stored them, or use another database of the server, such as redis://host/1"
                )
            signature, body = body[:_SIGNATURE], body[_SIGNATURE:]
            if not hmac.compare_digest(signature, _signature(key, body, self._secret)):
                return None
        elif self._secret:
            return None
        try:
            text = zlib.decompressobj().decompress(body, self._most)
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


def _fits(line: RecordedReply, prompt: str, judge: str) -> bool:
    name = line.prompt.partition("@")[0]
    return fnmatchcase(line.judge, judge) and (fnmatchcase(line.prompt, prompt) or fnmatchcase(name, prompt))


def _name(prefix: bytes, key: str) -> bytes:
    return prefix + key.encode(errors="surrogatepass")


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM, key=key.encode(errors="surrogatepass")[:64]).digest()


def _signature(key: str, body: bytes, secret: bytes) -> bytes:
    of_key = hashlib.sha256(key.encode(errors="surrogatepass")).digest()
    return hmac.digest(secret, of_key + body, "sha256")
