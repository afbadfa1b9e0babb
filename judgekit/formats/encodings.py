"""The encodings of text: their names, and errors about bytes that are invalid in them."""

import codecs

from judgekit.errors import ConfigError

ENCODING_HINT = "set its encoding, such as cp1252 or gb18030 (encoding=, --encoding)"


def encoding_name(encoding: str) -> str:
    """Return Python's name of an encoding."""
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except LookupError:
        raise ConfigError(
            f"unknown encoding {encoding!r}; use one that Python knows, such as 'utf-8' or 'gb18030'"
        ) from None


def decode_error_text(error: UnicodeDecodeError) -> str:
    """Return an error message for bytes that are invalid in an encoding, with a remedy."""
    where = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
    return f"not {error.encoding.upper()}: {where}; {ENCODING_HINT}"
