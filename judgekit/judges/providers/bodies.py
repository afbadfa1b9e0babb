"""Reading of HTTP response bodies, decompressed in steps up to a limit."""

import asyncio
import zlib
from contextlib import aclosing
from typing import Any

from judgekit.errors import ReplyError

MAX_REPLY_BYTES = 16_000_000
"""The default limit on the body of a reply. A reply with 20 logprobs for each of 4,000 tokens takes half of it."""

ACCEPT_ENCODING = "gzip"
"""The content encoding that requests accept. No other encoding is decoded."""

_ERROR_KEPT = 100_000
_STEP = 2**18


async def read_body(limit: int, response: Any) -> bytes:
    """Return the body of an httpx or httpx2 response, read in steps; these libraries would decompress all of it at once.

    A body that cannot be decoded is replaced by a note that says so, since the status still counts.

    Args:
        limit: The maximum number of bytes, both as sent and decompressed. At most 100,000 of an error's body are kept.
        response: The response, which has not been read. It is closed afterwards.

    Raises:
        ReplyError: The body of a successful response is longer.
    """
    kept = limit if response.is_success else min(limit, _ERROR_KEPT)
    try:
        body, is_whole = await _decoded(response, kept)
    except zlib.error as error:
        return f"(a body that is not gzip: {error})".encode()
    finally:
        await response.aclose()
    if response.is_success and not is_whole:
        raise ReplyError(f"the reply has more than {limit:,} bytes (max_reply_bytes)", text="")
    return body


async def _decoded(response: Any, limit: int) -> tuple[bytes, bool]:
    """Return the body and whether it is complete; a body that is longer than the limit is cut."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        return f"(a body in the encoding {encoding[:50]!r}, which judgekit did not request)".encode(), True
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.endswith("gzip") else None
    body, received = bytearray(), 0
    async with aclosing(aiter(response.stream)) as chunks:
        async for chunk in chunks:
            received += len(chunk)
            if decoder is None:
                body += chunk
            elif not decoder.eof:  # beyond its end, it would copy all that it was given with each chunk
                body += decoder.decompress(chunk, _STEP)
            while decoder is not None and decoder.unconsumed_tail and len(body) <= limit:
                await asyncio.sleep(0)  # lets a timeout take effect
                body += decoder.decompress(decoder.unconsumed_tail, _STEP)
            if max(received, len(body)) > limit:  # some compressed bytes decompress to nothing
                return bytes(body[: min(limit, _ERROR_KEPT)]), False
    if decoder is not None:
        body += decoder.flush()
    return bytes(body), True
