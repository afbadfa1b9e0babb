"""Patterns of personal data and secrets, for text in plain characters."""

import re
from collections.abc import Callable
from ipaddress import ip_address
from itertools import product
from string import ascii_uppercase

PLACEHOLDER = "\x01"
"""A placeholder, which later patterns see in place of earlier matches."""
_START, _END = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_PARTS = product(
    ("api", "access", "account", "auth", "bearer", "encryption", "master", "private", "refresh", "secret", "session"),
    ("", "_", "-", " "),
    ("key", "token"),
)
_SECRETS = (*("password", "passwd", "passphrase", "passcode", "pwd", "secret", "authorization"), *map("".join, _PARTS))
_OPTIONS = "|".join(f"(?<=--{name})" for name in _SECRETS)
_SIGN = rf"(?>\]?\s{{0,9}}[:=]{{1,3}}>?\s{{0,9}}(?:[bBfFrRuU]{{1,2}}(?=[\"'`]))?|(?:{_OPTIONS}) {{1,3}}(?!-))"
"""The signs between a name and its value, such as ``: ``, ``"] = b`` or, in a command, the space in ``--password x``."""
_SCHEME = r"(?:(?:bearer|basic|digest|token)\s{1,9})?"
_NO_VALUE = (
    r"(?!(?:null|nil|none|true|false|undefined|optional|any|str|string|int|bool|bytes)(?![^\s\"'`.,;:&|=)\[\]}])"
    r"|\$?[{\[(]|[\s\"'`<>&;,.)\]}\x01]|\Z)"
)

SECRET_KEY_PATTERN = re.compile(rf"(?i:{'|'.join(_SECRETS)})\s*\Z")
"""The end of a key whose value is a secret, such as ``db_password`` or ``X-API-Key``."""
AUTH_SCHEME_PATTERN = re.compile(_SCHEME, re.IGNORECASE | re.ASCII)
"""The authentication scheme that may precede such a value, such as ``Bearer``."""

PATTERNS: dict[str, tuple[re.Pattern[str], ...]] = {
    "url": (re.compile(r"(?<![A-Za-z0-9])(?:https?://|www\.)[^\s\"'<>]*[^\s\"'<>.,;:!?)\]}]", re.IGNORECASE),),
    "secret": (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[A-Za-z0-9+/=:,. \n]|-(?!----))*+-----END [A-Z0-9 ]{0,40}-----|[A-Za-z0-9+/=\s]*)"
        ),
        re.compile(  # the last letter of the name first: it is next to the sign, which is rare
            r"[dDeEnNtTyY](?=[\"'`]?\]?\s{0,9}[:=]|[ >])"
            rf"(?i:(?:{'|'.join(f'(?<={name})' for name in _SECRETS)})(?P<assigned>"
            rf"[\"'`]{_SIGN}(?P<quoted>[\"'`])(?!{PLACEHOLDER}){_SCHEME}"
            rf"|[\"'`]?{_SIGN}(?P<quote>[\"'`]?){_SCHEME}{_NO_VALUE}"
            r"|>(?=[^<>]{1,200}</)))",  # <password>x</password>
            re.ASCII,
        ),
        re.compile(r"(?<=://)[^\s/:@\"'<>]{0,100}:[^\s/@\"'<>]{1,200}(?=@)"),  # user:password of an address
        re.compile(r"(?<=[Bb]earer )(?=[\w.~+/-]{0,80}\d)[\w.~+/-]{8,}=*", re.ASCII),
        re.compile(
            rf"{_START}(?:"
            r"(?:(?:sk|pk|rk|gh[oprsu]|github_pat|hf|gsk|ntn|lin_api|shp(?:at|ca|pa|ss))_"
            r"|(?:sk|hf|glpat|xox[abeoprs]|xapp|xai|pplx)-|r8_|dop_v1_|ATATT)(?=[\w-]{0,80}\d)[\w-]{16,}"
            r"|(?:npm|secret)_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|(?:dapi|key-|SK|AC)[0-9a-f]{32}(?:-\d)?(?![0-9a-z])"
            r"|SG\.[\w-]{16,}\.[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])|AIza[\w-]{35}"
            r"|eyJ[\w-]{8,400}(?:\.[\w-]+){1,4}|\d{8,10}:AA[\w-]{33}|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38})",
            re.ASCII,
        ),
    ),
    "email": (re.compile(r"(?<![\w.+%-])[\w.+%-]++@[\w-]+(?:\.[\w-]+)+"),),
    "iban": (
        re.compile(
            rf"{_START}[A-Z]{{2}}\d{{2}}(?:[ \n.+-]{{0,2}}[A-Z0-9]{{4}}){{2,7}}(?:[ \n.+-]{{0,2}}[A-Z0-9]{{1,3}})?{_END}",
            re.IGNORECASE | re.ASCII,
        ),
    ),
    "card": (
        re.compile(
            rf"{_START}(?<!\d\.)(?:[2-6]\d{{12,18}}"
            r"|[2-6]\d{3}(?:[ \n.+-]{1,2}\d{4}){3}(?:[ \n.+-]{1,2}\d{3})?|3\d{3}[ \n.+-]{1,2}\d{6}[ \n.+-]{1,2}\d{4,5})"
            rf"{_END}",
            re.ASCII,
        ),
    ),
    "ip": (
        re.compile(
            rf"{_START}(?<![.:])(?<![\w)\]]\[)(?:[0-9a-fA-F]{{1,4}}:[0-9a-fA-F]{{0,4}}|:(?=[0-9a-fA-F:.]{{0,40}}\d))"
            r"(?::[0-9a-fA-F]{0,4}){1,7}(?:(?<=:)(?:\d{1,3}\.){3}\d{1,3})?(?![A-Za-z0-9:]|\.\d)",
            re.ASCII,
        ),
        re.compile(rf"{_START}(?<!\.)(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![A-Za-z0-9]|\.\w)", re.ASCII),
    ),
    "phone": (
        re.compile(rf"{_START}\+\d(?:[ \n()./-]{{0,3}}\d){{7,14}}{_END}(?![.:-]\d)", re.ASCII),  # +49 (0)30 1234567
        re.compile(  # (555) 123-4567
            rf"{_START}(?<!\d[.-])(?:1[ \n.-]{{1,3}})?(?:\(\d{{3}}\) ?|\d{{3}}[ \n.-]{{1,3}})"
            rf"\d{{3}}[ \n.-]{{1,3}}\d{{4}}{_END}(?![.:-]\d)",
            re.ASCII,
        ),
        re.compile(  # 020 7946 0958, but not a date
            rf"{_START}(?:(?<!\w_)|(?=\(?\d{{2,5}}[ ()/.-]))(?<![.-])(?!\d\d[./-]\d\d[./-](?:19|20)\d\d\b)"
            rf"\(?0{{1,2}}[1-9](?:[ \n()/.-]{{0,3}}\d){{7,11}}{_END}(?![.:-]\d)",
            re.ASCII,
        ),
    ),
}
REDACTABLE = (*PATTERNS, "image")
"""The kinds of data that can be redacted."""
"""The kinds of personal data and secrets that can be redacted by name.

They are searched in this order. Cards, IBANs and IP addresses must be valid. Digits are only a telephone number after a
+ or 0, since most others are numbers of orders or articles. If ``assigned`` matches, a value follows that is secret by
its name; ``quoted`` is the quotation mark before it if the name is quoted too, and ``quote`` if it is not.
"""


def valid_prefix(name: str, text: str) -> str:
    """Return the longest valid start of a match, in whole groups; empty if there is none."""
    is_valid = _CHECKS.get(name, bool)
    while text and not is_valid(text):
        text = text[: max(map(text.rfind, _SEPARATORS))] if any(separator in text for separator in _SEPARATORS) else ""
    return text


def normalized_value(name: str, text: str) -> str:
    """Return the common spelling of texts that differ only in case or separators, such as 4111 1111 and 41111111."""
    if name == "secret":
        return text
    return (_plain(text) if name in ("iban", "card", "phone") else text).lower()


def _plain(text: str) -> str:
    return text.translate(_WITHOUT_SEPARATORS)


def _is_iban(text: str) -> bool:
    """Return whether a text passes the check of ISO 13616.

    The length is that of the country, and the remainder by 97 is 1, with letters as numbers from 10.
    """
    plain = _plain(text).upper()
    return len(plain) == _IBAN_LENGTHS.get(plain[:2]) and int(f"{plain[4:]}{plain[:4]}".translate(_LETTERS)) % 97 == 1


def _is_card(text: str) -> bool:
    """Return whether a text passes Luhn's check: with every other digit doubled, the sum of all digits ends in 0."""
    digits = _plain(text)[::-1]
    return 13 <= len(digits) <= 19 and sum(map(int, digits[::2] + digits[1::2].translate(_DOUBLED))) % 10 == 0


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_SEPARATORS = " \n.+-"
_WITHOUT_SEPARATORS = str.maketrans("", "", f"{_SEPARATORS}()/")
_LETTERS = {ord(letter): str(number) for number, letter in enumerate(ascii_uppercase, 10)}
_DOUBLED = str.maketrans("0123456789", "0246813579")
_CHECKS: dict[str, Callable[[str], bool]] = {"iban": _is_iban, "card": _is_card, "ip": _is_ip}
_IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 DZ24 "
    "EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 "
    "JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 "
    "OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 "
    "TR26 UA29 VA22 VG24 XK20 YE30"
)
_IBAN_LENGTHS = {country[:2]: int(country[2:]) for country in _IBANS.split()}
"""The number of characters of each country's IBANs, by the registry of SWIFT."""
