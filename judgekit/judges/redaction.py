"""What a judge is not to see is taken out of a sample before it is asked."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from string import ascii_uppercase
from typing import cast

from pydantic import BaseModel

from judgekit.traces.message import MediaPart, ToolCall, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import ToolDefinition

PATTERNS = {
    "url": re.compile(r"\b(?:https?://|www\.)[^\s\"'<>]*[^\s\"'<>.,;:!?)\]}]", re.IGNORECASE),
    "secret": re.compile(
        r"(?<![\w-])(?:(?:sk|pk|rk|gh[oprsu]|github_pat|glpat|hf|xox[abpr])[_-](?=[\w-]{0,80}\d)[\w-]{16,}"
        r"|AKIA[0-9A-Z]{16}\b|AIza[\w-]{35}|eyJ[\w-]{8,}(?:\.[\w-]+){1,2})"
    ),
    "email": re.compile(r"(?<![\w.+%-])[\w.+%-]++@[\w-]+(?:\.[\w-]+)+"),
    "iban": re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
    "card": re.compile(
        r"(?<!\w)(?<!\d\.)(?:[2-6]\d{12,18}|[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|3\d{3}([ -])\d{6}\2\d{4,5})"
        r"(?!\w)",
        re.ASCII,
    ),
    "ip": re.compile(
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\w)"
        r"|(?<![\w.:])[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])"
    ),
    "phone": re.compile(
        r"(?<![\w.-])(?:\+\d(?:[ ()./-]{0,2}\d){7,14}"  # +49 (0)30 1234567
        r"|(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}"  # (555) 123-4567
        r"|(?!\d\d[./-]\d\d[./-](?:19|20)\d\d\b)\(?0{1,2}[1-9](?:[ ()/.-]{0,2}\d){7,11})"  # 020 7946 0958, and no date
        r"(?!\w|[.:-]\d)"
    ),
}
"""What can be redacted by name: personal data and secrets, where they are written as usual.

The order is that of their search. Cards, IBANs and addresses of computers are only taken for what is valid. Digits alone
are no telephone number without a + or 0 in front: most are the number of an order or of an article.
"""

_TEXTS = {
    *("trace", "rival", "reference", "references", "reference_topics", "reference_tool_calls", "documents", "fields"),
    *(
        "tools",
        "description",
        "parameters",
        "messages",
        "content",
        "tool_calls",
        "text",
        "data",
        "name",
        "agent",
        "args",
        "args_raw",
    ),
}
"""The fields that hold what was said."""


@dataclass(frozen=True)
class _Patterns:
    """Replaces what is found by its kind and a number, which is the same for the same text in all of a sample."""

    names: frozenset[str]
    _numbers: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    def __call__(self, text: str) -> str:
        for name in PATTERNS:
            if name in self.names:
                text = "".join(self._hidden(name, text))
        return text

    def _hidden(self, name: str, text: str) -> Iterator[str]:
        """The pieces of the text, with a mark in the place of each find."""
        done = start = 0
        while (found := PATTERNS[name].search(text, start)) is not None:
            start = found.start() + 1
            if find := _valid_start(name, found[0]):
                numbers = self._numbers[name]
                yield text[done : found.start()]
                yield f"<{name} {numbers.setdefault(_spelt_alike(name, find), len(numbers) + 1)}>"
                done = start = found.start() + len(find)
        yield text[done:]


def redacted(sample: Sample, redact: Callable[[str], str] | Sequence[str]) -> Sample:
    """The sample with all texts that a judge may be shown redacted. Names of tools, roles and ids stay.

    Args:
        sample: What was recorded; it is not changed.
        redact: Names of `PATTERNS`, or a function from text to text.
    """
    if not redact:
        return sample
    return cast("Sample", _redacted(sample, redact if callable(redact) else _Patterns(frozenset(redact))))


def _redacted(value: object, hide: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        hidden = hide(str(value))
        return value if hidden == str(value) else hidden
    if isinstance(value, list | tuple):
        items = [_redacted(item, hide) for item in cast("Sequence[object]", value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {
            _redacted(key, hide): _redacted(item, hide) for key, item in cast("dict[object, object]", value).items()
        }
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _redacted(getattr(value, name), hide) for name in _texts(value)})
    return value


def _texts(record: BaseModel) -> Iterator[str]:
    """The fields that hold what was said, in their own order, so that finds are numbered alike in every process."""
    stays = (
        "name"
        if isinstance(record, ToolCall | ToolMessage | ToolDefinition)
        else "data"
        if isinstance(record, MediaPart)
        else ""
    )
    return (name for name in type(record).model_fields if name in _TEXTS and name != stays)


def _valid_start(name: str, text: str) -> str:
    """As many groups of what was found, from its start, as make it valid. Empty if none do."""
    is_valid = _CHECKS.get(name, bool)
    while text and not is_valid(text):
        text = text[: max(text.rfind(" "), text.rfind("-"), 0)]
    return text


def _spelt_alike(name: str, text: str) -> str:
    """The same for what only differs in how it is set apart, such as 4111 1111 and 41111111."""
    return re.sub(r"\W", "", text) if name in ("iban", "card", "phone") else text.lower()


def _is_iban(text: str) -> bool:
    """The check of ISO 13616: the remainder by 97 is 1, letters being numbers from 10."""
    plain = text.replace(" ", "")
    return 15 <= len(plain) <= 34 and int(f"{plain[4:]}{plain[:4]}".translate(_LETTERS)) % 97 == 1


def _is_card(text: str) -> bool:
    """The check of Luhn: every other digit is doubled, from the right, and the sum of all digits ends in 0."""
    digits = text.replace(" ", "").replace("-", "")[::-1]
    return 13 <= len(digits) <= 19 and sum(map(int, digits[::2] + digits[1::2].translate(_DOUBLED))) % 10 == 0


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_LETTERS = {ord(letter): str(number) for number, letter in enumerate(ascii_uppercase, 10)}
_DOUBLED = str.maketrans("0123456789", "0246813579")
_CHECKS: dict[str, Callable[[str], bool]] = {"iban": _is_iban, "card": _is_card, "ip": _is_ip}
