"""The options of one scorer, from its class, and examples of how to name it."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from inspect import cleandoc, formatannotation, getmro
from typing import cast

from pydantic import JsonValue

import judgekit
from judgekit.config import CONFIG_FILE, WRAPPING_OPTIONS, is_class, needs_value, scorer_class
from judgekit.judges.prompt_file import load_prompt

_MODEL = "openai/gpt-6-luna"
_VALUES: Mapping[str, JsonValue] = {
    "constraints": [{"type": "require", "tool": "search"}],
    "label": "success",
    "match": "contains",
    "pattern": "refund",
    "prompt": "tone",
    "question": "Which answer is more helpful?",
    "scorers": [{"name": "prompt", "prompt": "tone", "judge": model} for model in (_MODEL, "openai/gpt-6-terra")],
    "weights": {"polite": 0.4, "correct": 0.6},
}
"""Values of options that are required, for examples; others are numbers."""
_PYTHON = {
    "scorers": f"[judgekit.PromptScorer('tone', '{_MODEL}'), judgekit.PromptScorer('tone', 'openai/gpt-6-terra')]"
}
_ALIAS = "The name of the scores, which is called as on the command line and in TOML."


def scorer_help(name: str) -> Iterator[str]:
    """Yield the lines of a description of a scorer: what it measures, its options, and examples.

    Raises:
        ConfigError: There is no such scorer.
    """
    base, _, prompt = name.partition(":") if name.startswith("prompt:") else (name, "", "")
    kind = scorer_class(base)
    doc = cleandoc(kind.__doc__ or "")
    if prompt:
        loaded = load_prompt(prompt)
        doc = f"{loaded.description}\n\nLabels: {', '.join(f'{label} {grade}' for label, grade in loaded.scale)}."
    text = re.split(r"\n\n(?:Attributes|Args|Raises):", doc)[0]
    yield f"{name}\n\n{text}\n"
    if not is_class(kind):
        return
    described = [cleandoc(each.__doc__ or "") for each in reversed(getmro(cast("type", kind)))]
    texts = {option: text for each in described for option, text in _attributes(each)} | {"name": _ALIAS}
    example: dict[str, JsonValue] = {}
    for option in fields(kind):
        default = option.default if option.default_factory is MISSING else option.default_factory()
        yield f"  {option.name}: {_type_text(option.type)}, {'required' if needs_value(option) else f'default {default!r}'}"
        if text := texts.get(option.name):
            yield f"      {text}"
        if needs_value(option) and option.name != "judge":
            example[option.name] = prompt or _VALUES.get(option.name, 1)
    asks = "judge" in kind.__dataclass_fields__
    if asks or "scorers" in kind.__dataclass_fields__:
        yield f"  {', '.join((*WRAPPING_OPTIONS, *['long'] * asks))}: options of all scorers that ask a judge"
    words = ",".join(
        f"{key}={given if isinstance(given, str) else json.dumps(given)}" for key, given in example.items()
    )
    spec = shlex.quote(f"{base}:{words.removeprefix('prompt=')}" if example else base)
    yield f"\njudgekit run FILE --scorer {spec}{f' --judge {_MODEL}' if asks else ''}"
    yield f'\n[[scorers]]  # in {CONFIG_FILE}\nname = "{base}"'
    yield from (f"{key} = {_toml(given)}" for key, given in example.items())
    arguments = [f"{key}={_PYTHON.get(key, repr(given))}" for key, given in example.items()]
    class_name = cast("type", kind).__name__
    module = "judgekit" if hasattr(judgekit, class_name) else "judgekit.behavior"
    yield f"\n{module}.{class_name}({', '.join(arguments + [f'judge={_MODEL!r}'] * asks)})"


def _type_text(annotation: object) -> str:
    """Return an annotation without the modules of its names, and without what pydantic checks beyond the type."""
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", formatannotation(annotation))
    return re.sub(r"Annotated\[([^<]*), <[^>]*>\]", r"\1", text)


def _attributes(doc: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a docstring describes, with their descriptions on one line."""
    part = re.search(r"^(?:Attributes|Args):\n((?:    .*\n?|\n)+)", doc, re.MULTILINE)
    for name, text in re.findall(r"^    (\w+): (.*(?:\n     .*)*)", part[1] if part else "", re.MULTILINE):
        yield name, " ".join(text.split())


def _toml(given: JsonValue) -> str:
    if isinstance(given, dict):
        return f"{{{', '.join(f'{name} = {_toml(inner)}' for name, inner in given.items())}}}"
    return f"[{', '.join(map(_toml, given))}]" if isinstance(given, list) else json.dumps(given)
