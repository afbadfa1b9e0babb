"""Secrets: recognizes them by name, reads them from the environment, and masks them in text of servers."""

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from html.entities import html5
from typing import NamedTuple
from urllib.parse import unquote
from urllib.request import getproxies

from typing_extensions import TypedDict  # before Python 3.12, pydantic takes no other

from judgekit.errors import AuthenticationError

_SHORTEST = 8
"""The minimum length of a masked secret. A reply may hold shorter values, such as ``no-key``, for other reasons."""

_SECRET = re.compile(
    r"(?:^|[_.-]|api|access|auth|client|private|secret|session)"
    r"(?:key|token|secret|password|credentials?|authorization|cookie)_?\d*\Z",
    re.IGNORECASE,
)
_BACKSLASHES = r"\\\\{0,14}"
"""The backslashes of JSON within JSON, four deep. Without a limit, a long run of them takes quadratic time."""

_LAYERS = 3
"""How deep HTML within HTML is unescaped."""

_CODE = re.compile(r"(?:\\u00|%)([0-9A-Fa-f]{2})")


class FromEnvironment(TypedDict):
    """A value from an environment variable."""

    env: str


class RequestExtras(NamedTuple):
    """Query parameters and headers of every request, and those of their values that are from the environment."""

    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()


NO_EXTRAS = RequestExtras()


def is_secret_name(name: str) -> bool:
    """Return whether a name is likely that of a secret, such as ``X-Api-Key``, ``azure_ad_token`` or ``HF_TOKEN``."""
    return _SECRET.search(name) is not None and name != "prompt_cache_key"


def environment_secrets() -> list[str]:
    """Return the values of all environment variables that are secrets by their names."""
    return [value for name, value in os.environ.items() if is_secret_name(name)]


def read_secret(name: str, where: str) -> str:
    """Return the value of an environment variable.

    Args:
        name: The variable.
        where: The purpose of the value, for the error.

    Raises:
        AuthenticationError: The variable is not set, or holds characters that cannot be sent.
    """
    if not (secret := os.environ.get(name, "").strip()):
        raise AuthenticationError(f"no key for {where}: set the environment variable {name}")
    if not (secret.isascii() and secret.isprintable()):
        raise AuthenticationError(f"the key in {name} contains characters that cannot be sent: copy it again")
    return secret


def read_extras(
    query: Mapping[str, str | FromEnvironment], headers: Mapping[str, str | FromEnvironment], where: str
) -> RequestExtras:
    """Return query parameters and headers, with values from the environment filled in.

    Raises:
        AuthenticationError: A variable is not set, or holds characters that cannot be sent.
    """
    secrets: list[str] = []

    def read(value: str | FromEnvironment) -> str:
        if isinstance(value, str):
            return value
        secrets.append(read_secret(value["env"], where))
        return secrets[-1]

    return RequestExtras(
        {name: read(value) for name, value in query.items()},
        {name: read(value) for name, value in headers.items()},
        tuple(secrets),
    )


def proxy_passwords() -> Iterator[str]:
    """Yield the passwords of the proxies in the environment, as written and decoded, and the parts of malformed ones."""
    for address in getproxies().values():
        password = address.split("://", 1)[-1].rpartition("@")[0].partition(":")[2]
        yield from (password, unquote(password), *re.split("[/?#]", password))


class SecretMask:
    """A function that replaces secrets with ``***`` in text from a server.

    Secrets are found as plain text, escaped as in JSON (also in JSON within JSON) or HTML, encoded as in addresses and
    forms, and within Base64.

    Args:
        secrets: The secrets. Those of fewer than 8 characters are ignored. The last word of a header such as
            ``Bearer ...`` is a secret too.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        words = {word for secret in secrets for word in (secret, secret.split(" ")[-1])}
        literals = {literal for word in words if len(word) >= _SHORTEST for literal in (word, *_in_base64(word))}
        self._known = [
            (literal, re.compile("".join(map(_spelling, literal))))
            for literal in sorted(literals, key=len, reverse=True)
        ]

    def __call__(self, text: str) -> str:
        """Return the text without the secrets."""
        if not self._known:
            return text
        folded = _folded(text)
        for literal, spellings in self._known:
            plain = literal.replace("\\", "").replace("+", " ")
            if literal in text or plain in folded or _folded(literal) in folded:  # a secret may look escaped itself
                text = spellings.sub("***", text)
        return text

    def body(self, body: bytes) -> bytes:
        """Return the body of a response without the secrets."""
        return self(body.decode("latin-1")).encode("latin-1") if self._known else body  # keeps any bytes as they are


def _in_base64(secret: str) -> set[str]:
    """Return the encodings of a secret in Base64, for any position in the encoded text."""
    encodings: set[str] = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        tail = (before + len(secret)) % 3  # the last character holds bits of what follows
        inner = encoded[(0, 2, 3)[before] : -1 if tail else None]
        encodings |= {inner, inner.replace("+", "-").replace("/", "_")}
    return encodings


def _folded(text: str) -> str:
    """Return the text without escapes and backslashes. If this holds no secret, no spelling of one is in the text."""
    for _ in range(_LAYERS if "&" in text else 0):
        text = unescape(text)
    return _CODE.sub(lambda match: chr(int(match[1], 16)), text).replace("\\", "").replace("+", " ")


def _spelling(character: str) -> str:
    """Return the pattern of a character that may be escaped."""
    digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{ord(character):02x}")
    escaped = rf"|{_BACKSLASHES}{re.escape(character)}" if character in '"/\\' else ""
    escaped += r"|\+" if character == " " else ""
    names = "".join(f"|{name}" for name, text in html5.items() if text == character and name.endswith(";"))
    in_html = rf"&(?:amp;){{0,{_LAYERS}}}(?:#0{{0,5}}{ord(character)};|#[xX]0{{0,5}}{digits};{names})"
    return rf"(?:{re.escape(character)}{escaped}|{_BACKSLASHES}u00{digits}|%{digits}|{in_html})"
