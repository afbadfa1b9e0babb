"""Text in XML 1.0."""

import re
from html import escape

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_controls(text: str) -> str:
    """Return the text with control characters, and others that XML forbids or discourages, replaced.

    Source: XML 1.0, https://www.w3.org/TR/xml/#charsets.
    """
    return _FORBIDDEN.sub("\ufffd", text)


def escape_xml(text: str) -> str:
    """Return the text escaped for an element, or for a quoted attribute."""
    return escape(replace_controls(text))
