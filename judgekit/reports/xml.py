"""Text as XML 1.0 can hold it."""

import re
from html import escape

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def without_controls(text: str) -> str:
    """The text with a replacement character for each control character, and for all else that XML forbids or advises against.

    Source: XML 1.0, https://www.w3.org/TR/xml/#charsets.
    """
    return _FORBIDDEN.sub("\ufffd", text)


def xml_text(text: str) -> str:
    """The text as it stands in an element, or in the quotes of an attribute."""
    return escape(without_controls(text))
