"""HTML pages that need no server and no network."""

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

PAGE_FOLDER = Path(__file__).parent / "page"
"""The folder of templates, styles and scripts."""
PAGE_SCRIPTS = (
    *("data", "route", "plots", "glossary", "overview", "compare", "samples", "markdown"),
    *("conversation", "scores", "audit", "failures", "sample", "report"),
)
"""The scripts of the page of a run or a comparison, embedded in a file or served."""


def render_page(template: str, styles: Sequence[str], scripts: Sequence[str], **shown: object) -> Iterator[str]:
    """Yield a page piece by piece, with its styles and scripts inline and their hashes in its policy.

    Args:
        template: The name of the template's file in `PAGE_FOLDER`.
        styles: The names of the styles, without their endings.
        scripts: The names of the scripts, without their endings.
        shown: Other values for the template.
    """
    style, script = "\n".join(_read(f"{name}.css") for name in styles), join_scripts(scripts)
    yield from _template(template).generate(
        style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), **shown
    )


def join_scripts(names: Sequence[str]) -> str:
    """Return scripts, given by their names, as one."""
    return "\n".join(('"use strict";', *(_read(f"{name}.js") for name in names)))


def script_json(value: JsonValue) -> str:
    """Return JSON that cannot end a script element or begin a comment."""
    return json.dumps(value, separators=(",", ":")).translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&"})


@cache
def _read(name: str) -> str:
    return (PAGE_FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _template(name: str) -> "jinja2.Template":
    import jinja2  # noqa: PLC0415 - loaded when it is used

    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_read(name))
