"""The data of media in recordings: data URLs, base64, and the type and size of images."""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from urllib.parse import unquote_to_bytes

_STANDARD = str.maketrans("-_", "+/", " \t\r\n")
_UNUSUAL = "-_ \t\r\n"
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_MARKER = ";base64"
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


def parse_data_url(url: str) -> tuple[str | None, str] | None:
    """Return the MIME type and the base64 data of a data URL (RFC 2397); ``None`` for any other text."""
    head, comma, body = url[5:].partition(",")
    if url[:5].lower() != "data:" or not comma:
        return None
    if head[-len(_MARKER) :].lower() == _MARKER:
        return head[: -len(_MARKER)] or None, body
    return head or None, base64.b64encode(unquote_to_bytes(body.encode(errors="backslashreplace"))).decode()


def standard_base64(text: str) -> str:
    """Return base64 in the standard alphabet, padded and without breaks; any other text unchanged."""
    if len(text) % 4 == 0 and not any(sign in text for sign in _UNUSUAL):
        return text
    standard = text.translate(_STANDARD)
    is_base64 = _BASE64.fullmatch(standard) and len(standard.rstrip("=")) % 4 != 1
    return standard + "=" * (-len(standard) % 4) if is_base64 else text


def decode_base64(text: str) -> bytes | None:
    """Return the bytes of base64 in any alphabet, also unpadded; ``None`` if the text is empty or not base64."""
    try:
        return base64.b64decode(standard_base64(text), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def media_hash(data: str) -> str:
    """Return the SHA-256 of media in hexadecimal; that of the text if it is not base64."""
    content = decode_base64(data)
    return hashlib.sha256(data.encode(errors="backslashreplace") if content is None else content).hexdigest()


def image_type(content: bytes) -> str | None:
    """Return the MIME type by the first bytes, for the types that judges take: PNG, JPEG, GIF, WebP."""
    return next((name for name, signature in _SIGNATURES.items() if signature.match(content)), None)


def image_size(content: bytes) -> tuple[int, int] | None:
    """Return the width and the height of an image in pixels; ``None`` if its header cannot be read."""
    size: Callable[[BytesIO], tuple[int, int]] = import_module("imagesize").get  # untyped, and loads a client of HTTP
    width, height = size(BytesIO(content))
    return (width, height) if width > 0 and height > 0 else None
