"""Pages of HTML that need no server and no network."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

if TYPE_CHECKING:
    import jinja2

PAGE = Path(__file__).parent / "page"
"""Where templates, styles and scripts are."""


def document(template: str, styles: Sequence[str], scripts: Sequence[str], **shown: object) -> Iterator[str]:
    """A page, piece by piece, with its styles and scripts in it, and their hashes for its policy.

    Args:
        template: The name of its file in `PAGE`.
        styles: The names of its styles, without their endings.
        scripts: Those of its scripts.
        shown: What else the template names.
    """
    style, script = "\n".join(_read(f"{name}.css") for name in styles), script_of(scripts)
    yield from _template(template).generate(
        style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), **shown
    )


def script_of(names: Sequence[str]) -> str:
    """The scripts of these names as one."""
    return "\n".join(('"use strict";', *(_read(f"{name}.js") for name in names)))


def embedded(value: JsonValue) -> str:
    """JSON that can end no script element and begin no comment."""
    return json.dumps(value, separators=(",", ":")).translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&"})


@cache
def _read(name: str) -> str:
    """The text of a file in `PAGE`."""
    return (PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _template(name: str) -> "jinja2.Template":
    import jinja2  # noqa: PLC0415 - loaded when it is used

    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_read(name))
