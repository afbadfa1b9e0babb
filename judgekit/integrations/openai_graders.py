"""The graders of OpenAI's evals as scorers: a config file, and prompt files beside it.

{"object": "eval", "name": "tickets", "testing_criteria": [
    {"type": "string_check", "name": "match", "input": "{{sample.output_text}}", "operation": "eq", "reference": "{{item.label}}"},
    {"type": "label_model", "name": "tone", "model": "...", "input": [{"role": "user", "content": "Polite? {{sample.output_text}}"}],
     "labels": ["polite", "rude"], "passing_labels": ["polite"]}]}
"""

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, isclose
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.atomic import atomic_write
from judgekit.errors import ConfigError, TraceError, short_repr
from judgekit.formats.exports import read_page
from judgekit.formats.files import File
from judgekit.formats.values import as_list, as_object, is_number, objects_in, str_or_none
from judgekit.terminal import printable
from judgekit.traces.message import JsonObject
from judgekit.traces.sample_path import TextTemplate, ValuePath

PROMPT_FOLDER = "prompts"
"""The folder of prompt files, beside the config."""

_CHECKS: Mapping[str, JsonObject] = {
    "eq": {"name": "exact_match", "strip": False},
    "ne": {"name": "exact_match", "strip": False, "negate": True},
    "like": {"name": "string_presence", "strip": False},
    "ilike": {"name": "string_presence", "strip": False, "ignore_case": True},
}
_SIMILARITIES: Mapping[str, JsonObject] = {
    "fuzzy_match": {"name": "similarity", "measure": "indel"},
    "bleu": {"name": "bleu"},
    **{f"rouge_{n}": {"name": "rouge", "type": f"rouge{n}"} for n in range(1, 6)},
    "rouge_l": {"name": "rouge", "type": "rougeL"},
}
_SIMILARITY_NOTES = {
    "fuzzy_match": "OpenAI does not say which function of rapidfuzz it uses; this one is rapidfuzz's ratio",
    "bleu": "OpenAI does not say how it splits and smooths; this is sentence BLEU by sacrebleu, and corpus BLEU in total",
}
_ROUGE_NOTE = "OpenAI does not say which ROUGE it reports; this is F1, without stemming"
_PARAMS = {
    **{name: name for name in ("temperature", "top_p", "seed", "reasoning_effort")},
    "max_completions_tokens": "max_completion_tokens",
}
"""Sampling parameters of graders, and their names in the API of models."""
_TEXT_PARTS = ("text", "input_text", "output_text")
_STEPS_FROM_0_TO_1 = 4
_MOST_LABELS = 11
_LONGEST_FORMULA = 1_000
_NOT_YAML = re.compile("[\x7f-\x9f\ufffe\uffff]")
_JINJA = re.compile(r"\{[{%#]")
_GATE_SIGNS = frozenset("<>=!")


@dataclass(frozen=True)
class TranslatedEval:
    """An eval whose graders are scorers.

    Attributes:
        config: The text of the config file.
        prompts: The texts of the prompt files, by their paths relative to the config.
        scorers: The number of scorers in the config.
        untranslated: What has no scorer, and why, a line for each.
        notes: Where a scorer differs from its grader, a line for each.
    """

    config: str
    prompts: Mapping[str, str]
    scorers: int
    untranslated: Sequence[str]
    notes: Sequence[str]


def read_definition(path: Path | str, encoding: str | None = None) -> JsonObject:
    """Return the definition of an eval in a file, which holds it alone, in a list or in a page of the API.

    Raises:
        TraceError: The file cannot be read.
        ConfigError: It holds no definition, or several.
    """
    file = File.locate(path, encoding)
    document = file.document() if file.container == "document" else None
    records = file.records() if document is None else iter([document])
    found: list[JsonObject] = []
    for record in records:
        if isinstance(record.value, TraceError):
            raise TraceError(record.value.problem, path=file.path, line=record.line_number)
        page = read_page(record.value)
        values: JsonValue = record.value if page is None else page.records
        values = values if isinstance(values, list) else [values]
        found += [one for one in objects_in(values) if isinstance(one.get("testing_criteria"), list)]
    if not found:
        raise ConfigError(
            f"{path}: contains no definition of an OpenAI eval, which has testing_criteria; recordings become .jsonl"
        )
    if len(found) > 1:
        names = ", ".join(short_repr(one.get("id") or one.get("name")) for one in found)
        raise ConfigError(f"{path}: contains {len(found)} evals ({names}); write each to a file of its own")
    return found[0]


def translate_eval(definition: JsonObject) -> TranslatedEval:
    """Return the graders of an eval as scorers. Code in the definition is not run."""
    translator = _Translator()
    for criterion in as_list(definition.get("testing_criteria")):
        translator.add(as_object(criterion))
    return translator.result(definition)


def write_eval(translated: TranslatedEval, config: Path) -> Sequence[Path]:
    """Write a config and its prompt files, and return their paths. Existing files are kept.

    Raises:
        ConfigError: One of the files exists, or cannot be written.
    """
    texts = {config: translated.config, **{config.parent / path: text for path, text in translated.prompts.items()}}
    if there := [path for path in texts if path.exists()]:
        raise ConfigError(f"{there[0]} exists; move it, or name another file with --output")
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(text.encode(errors="replace"))
    except OSError as error:
        raise ConfigError(f"{config}: cannot be written: {error}") from error
    return list(texts)


class _Scorer(NamedTuple):
    """A scorer's table, the lowest value that passes, and how it differs from its grader."""

    table: JsonObject
    threshold: float | None = None
    notes: tuple[str, ...] = ()


@dataclass
class _Translator:
    judges: dict[str, str] = field(default_factory=dict[str, str])
    """The names of judges by their tables."""
    tables: list[str] = field(default_factory=list[str])
    gates: list[str] = field(default_factory=list[str])
    prompts: dict[str, str] = field(default_factory=dict[str, str])
    names: set[str] = field(default_factory=set[str])
    scorers: int = 0
    untranslated: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def add(self, grader: JsonObject) -> None:
        """Translate one grader, or note why it cannot be."""
        name = self._name(grader)
        if grader.get("type") == "multi":
            self._add_multi(name, grader)
        elif (found := self._scorer(name, grader)) is not None:
            self._write(name, found)

    def _name(self, grader: JsonObject) -> str:
        """Return the name of a grader, numbered if another one has it too."""
        wanted = printable(str_or_none(grader.get("name")) or str_or_none(grader.get("type")) or "grader")
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted} {number}"
        self.names.add(name)
        return name

    def _scorer(self, name: str, grader: JsonObject) -> _Scorer | None:
        """Return a grader as a scorer; ``None``, with a line that says why, if it cannot be translated."""
        kind = str_or_none(grader.get("type"))
        translations: Mapping[str | None, Callable[[str, JsonObject], _Scorer]] = {
            "string_check": _string_check,
            "text_similarity": _text_similarity,
            "label_model": self._label_model,
            "score_model": self._score_model,
            "python": _python,
        }
        try:
            if kind not in translations:
                raise ValueError("graders of this type are not known")
            return translations[kind](name, grader)
        except ValueError as error:
            self._miss(name, grader, str(error))
            return None

    def _miss(self, name: str, grader: JsonObject, reason: str) -> None:
        line = f"{name} ({str_or_none(grader.get('type'))}): {reason}"
        self.untranslated.append(line)
        self.tables.append(_comment(f"Not translated: {line}"))

    def _write(self, name: str, scorer: _Scorer) -> None:
        self.scorers += 1
        notes = list(scorer.notes)
        if scorer.threshold is not None:
            gate = f"{name} >= {scorer.threshold:.10g}"
            if _GATE_SIGNS.isdisjoint(name):
                self.gates.append(gate)
                notes.append(f"pass_threshold is the gate '{gate}', on the whole run; OpenAI applies it to each item")
            else:
                notes.append(f"pass_threshold has no gate, since gates cannot name this scorer: {gate}")
        self.notes += [f"{name}: {note}" for note in notes]
        lines = [*map(_comment, notes), "[[scorers]]"]
        self.tables.append("\n".join([*lines, *(f"{key} = {_toml(value)}" for key, value in scorer.table.items())]))

    def _label_model(self, name: str, grader: JsonObject) -> _Scorer:
        labels = [one for one in as_list(grader.get("labels")) if isinstance(one, str)]
        passing = as_list(grader.get("passing_labels"))
        labels = list(dict.fromkeys(labels))
        if len(labels) < 2:
            raise ValueError("it has fewer than two labels, between which a judge could choose")
        return self._judged(name, grader, {label: float(label in passing) for label in labels})

    def _score_model(self, name: str, grader: JsonObject) -> _Scorer:
        low, high = _range(grader)
        whole = low == int(low) and high == int(high) and 1 < high - low < _MOST_LABELS
        steps = int(high - low) if whole else _STEPS_FROM_0_TO_1
        numbers = [low + (high - low) * step / steps for step in range(steps + 1)]
        scale = {f"{number:.10g}": step / steps for step, number in enumerate(numbers)}
        if len(scale) <= steps:
            raise ValueError(f"its range is {short_repr(grader.get('range'))}")
        listed = ", ".join(scale)
        asked = f"Your verdict is the number that is closest to your score: {listed}."
        threshold = grader.get("pass_threshold")
        found = self._judged(name, grader, scale, asked)
        passes = (
            (threshold - low) / (high - low) if isinstance(threshold, int | float) and is_number(threshold) else None
        )
        note = (
            f"its score is one of {listed} instead of any number, divided by the range; audit it before you rely on it"
        )
        return found._replace(threshold=passes, notes=(note, *found.notes))

    def _judged(self, name: str, grader: JsonObject, scale: Mapping[str, float], asked: str = "") -> _Scorer:
        question, inputs = _question(objects_in(grader.get("input")))
        path = self._prompt_path(name)
        front: Mapping[str, object] = {
            "description": f"The grader {printable(name)!r} of an OpenAI eval",
            "inputs": ["conversation", *inputs],
            "scale": {label: int(value) if value == int(value) else value for label, value in scale.items()},
            "source": f"OpenAI evals, {str_or_none(grader.get('type'))}",
        }
        head = "\n".join(f"{key}: {_yaml(value)}" for key, value in front.items())
        self.prompts[path] = f"---\n{head}\n---\n" + "\n\n".join(filter(None, (question, asked))) + "\n"
        table: JsonObject = {"name": "prompt", "as": name, "prompt": path}
        if (judge := self._judge(grader)) not in (None, "default"):
            table["judge"] = judge
        return _Scorer(table, notes=("the judge sees the whole conversation besides what the grader names",))

    def _prompt_path(self, name: str) -> str:
        stem = re.sub(r"\W+", "_", name).strip("_").lower()[:60] or "grader"
        path, number = f"{PROMPT_FOLDER}/{stem}.md", 1
        while path in self.prompts:
            number += 1
            path = f"{PROMPT_FOLDER}/{stem}_{number}.md"
        return path

    def _judge(self, grader: JsonObject) -> str | None:
        """Return the name of the judge with the grader's model and parameters."""
        model = str_or_none(grader.get("model"))
        if not model:
            return None
        sampling = as_object(grader.get("sampling_params"))
        params: JsonObject = {
            ours: sampling[theirs] for theirs, ours in _PARAMS.items() if sampling.get(theirs) is not None
        }
        table = f"model = {_toml(f'openai/{model}')}" + (f"\nparams = {_toml(params)}" if params else "")
        if table not in self.judges:
            wanted = "default" if not self.judges else re.sub(r"[^A-Za-z0-9_-]+", "-", model)
            taken, name, number = set(self.judges.values()), wanted, 1
            while name in taken:
                number += 1
                name = f"{wanted}-{number}"
            self.judges[table] = name
        return self.judges[table]

    def _add_multi(self, name: str, grader: JsonObject) -> None:
        """Translate graders that a formula combines: in a panel if it is a mean, else as scorers of their own."""
        held = as_object(grader.get("graders"))
        members = (
            {"": held} if isinstance(held.get("type"), str) else {key: as_object(one) for key, one in held.items()}
        )
        formula = str_or_none(grader.get("calculate_output")) or ""
        made: dict[str, tuple[str, _Scorer]] = {}
        for key, member in members.items():
            named = self._name({"name": key or name, **member})
            if (scorer := self._scorer(named, member)) is not None:
                made[key] = named, scorer
        weights = _mean_weights(formula, members)
        if weights and len(made) == len(members) > 1:
            table: JsonObject = {"name": "panel", "as": name, "rule": "mean"}
            if len(set(weights)) > 1:
                table["weights"] = [*weights]
            table["scorers"] = [scorer.table for _, scorer in made.values()]
            notes = tuple(note for _, scorer in made.values() for note in scorer.notes)
            threshold = grader.get("pass_threshold")
            passes = float(threshold) if isinstance(threshold, int | float) and is_number(threshold) else None
            self._write(name, _Scorer(table, passes, tuple(dict.fromkeys(notes))))
            return
        alone = (
            "its graders are scorers of their own; combine their values yourself" if made else "none of its graders is"
        )
        self._miss(
            name,
            grader,
            f"the formula {short_repr(formula)} is not a weighted mean of graders that are translated; {alone}",
        )
        for named, scorer in made.values():
            self._write(named, scorer)

    def result(self, definition: JsonObject) -> TranslatedEval:
        """Return the config and the prompt files."""
        about = [str(definition[key]) for key in ("name", "id") if isinstance(definition.get(key), str)]
        head = [
            _comment(f"The graders of an OpenAI eval: {', '.join(about) or 'without a name'}"),
            _comment("To score its output items: judgekit run output_items.jsonl --config FILE"),
        ]
        if self.gates:
            head.append(f"gate = {_toml([*self.gates])}")
        judges = [f"[judges.{name}]\n{table}" for table, name in self.judges.items()]
        config = "\n\n".join(["\n".join(head), *judges, *self.tables]) + "\n"
        return TranslatedEval(config, self.prompts, self.scorers, self.untranslated, self.notes)


def _string_check(name: str, grader: JsonObject) -> _Scorer:
    operation = str_or_none(grader.get("operation")) or ""
    if operation not in _CHECKS:
        raise ValueError(f"the operation {short_repr(grader.get('operation'))} is not known")
    return _Scorer(_compared(name, _CHECKS[operation], grader))


def _text_similarity(name: str, grader: JsonObject) -> _Scorer:
    metric = str_or_none(grader.get("evaluation_metric")) or ""
    if metric not in _SIMILARITIES:
        raise ValueError(f"there is no scorer for {short_repr(grader.get('evaluation_metric'))}")
    threshold = grader.get("pass_threshold")
    passes = float(threshold) if isinstance(threshold, int | float) and is_number(threshold) else None
    note = _SIMILARITY_NOTES.get(metric, _ROUGE_NOTE)
    return _Scorer(_compared(name, _SIMILARITIES[metric], grader), passes, (f"values may differ: {note}",))


def _python(_name: str, _grader: JsonObject) -> _Scorer:
    raise ValueError(
        "code from a file is never run; write the function yourself, with @scorer, and name it file.py:NAME"
    )


def _compared(name: str, scorer: JsonObject, grader: JsonObject) -> JsonObject:
    """Return the table of a scorer that compares two texts."""
    kind, *options = scorer.items()
    table: JsonObject = dict([kind, ("as", name), *options])
    for theirs, ours in (("input", "response"), ("reference", "reference")):
        text = grader.get(theirs)
        if not isinstance(text, str) or not text:
            raise ValueError(f"its {theirs} is {'empty' if text == '' else 'not a text'}")
        template = TextTemplate(text, _path)
        holes = [f"{{{{ {path} }}}}" for path in template.paths]
        filled = _joined(template, holes)
        if (ours, filled) != ("response", "{{ response }}"):
            table[ours] = filled
    return table


def _joined(template: TextTemplate, holes: Sequence[str]) -> str:
    return "".join(text + hole for text, hole in zip(template.texts, [*holes, ""], strict=True))


def _path(inner: str) -> ValuePath:
    """Return the path of a value in a sample that braces of a grader name.

    Raises:
        ValueError: Samples do not have it.
    """
    path = ValuePath.parse(inner)
    match path:
        case ValuePath("item", (_, *_)):
            return ValuePath("fields", path.steps)
        case ValuePath("sample", ("output_text",)) | ValuePath("sample", ("choices", 0, "message", "content")):
            return ValuePath("response")
        case ValuePath("sample", ("output_json", *steps)):
            return ValuePath("response", tuple(steps))
        case ValuePath("sample", ("output_tools", int(number), "function", "name")):
            return ValuePath("tool_calls", (number, "name"))
        case ValuePath("sample", ("output_tools", *_)):
            raise ValueError(f"{{{{{inner}}}}} is a tool call; compare calls with tool_call_match or tool_call_f1")
        case _:
            raise ValueError(f"{{{{{inner}}}}} is not in a sample")


def _question(messages: Sequence[JsonObject]) -> tuple[str, list[str]]:
    """Return the messages of a grader as the question of a prompt file, and the inputs that it names.

    Raises:
        ValueError: There is no text, or something other than text.
    """
    roles = [str_or_none(message.get("role")) or "user" for message in messages]
    is_dialog = "assistant" in roles
    paragraphs: list[str] = []
    inputs: dict[str, None] = {}
    for role, message in zip(roles, messages, strict=True):
        text = "\n\n".join(_texts(message.get("content")))
        template = TextTemplate(text, _path)
        inputs.update((str(path), None) for path in template.paths)
        said = _on_lines_of_their_own(template)
        paragraphs.append(f"{role}:\n{said}" if is_dialog else said)
    question = "\n\n".join(filter(None, paragraphs))
    if not question.strip():
        raise ValueError("its input has no text")
    return question, list(inputs)


def _texts(content: JsonValue) -> list[str]:
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        kind, text = as_object(part).get("type"), as_object(part).get("text")
        if isinstance(part, str):
            texts.append(part)
        elif kind in _TEXT_PARTS and isinstance(text, str):
            texts.append(text)
        else:
            raise ValueError(f"its input has a part of type {short_repr(kind)}, and prompt files hold only text")
    return texts


def _on_lines_of_their_own(template: TextTemplate) -> str:
    """Return a text as a Jinja template whose inputs, which are fenced, stand on lines of their own."""
    made = ""
    for at, text in enumerate(template.texts):
        plain = _JINJA.sub(lambda found: f"{{{{ {json.dumps(found[0])} }}}}", text)
        if at:
            rest = plain.lstrip(" \t")
            plain = rest if rest.startswith("\n") or not rest else f"\n{rest}"
        if at < len(template.paths):
            plain = plain.rstrip(" \t")
            start = "" if (made + plain).endswith("\n") or not (made + plain) else "\n"
            plain += f"{start}{{{{ {template.paths[at]} }}}}"
        made += plain
    return made.strip()


def _range(grader: JsonObject) -> tuple[float, float]:
    bounds = grader.get("range")
    if bounds is None:
        return 0.0, 1.0
    match bounds:
        case [int() | float() as low, int() | float() as high] if (
            is_number(low) and is_number(high - low) and low < high
        ):
            return float(low), float(high)
        case _:
            raise ValueError(f"its range is {short_repr(bounds)}")


def _mean_weights(formula: str, names: Mapping[str, object]) -> Sequence[float]:
    """Return the weights of names in a formula that is their weighted mean, else none. It is parsed, and not run."""
    try:
        if len(formula) > _LONGEST_FORMULA:
            return ()
        weights = _weights(ast.parse(formula.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ArithmeticError):
        return ()
    is_mean = weights.keys() == names.keys() and min(weights.values()) > 0 and isclose(fsum(weights.values()), 1)
    return [round(weights[name], 12) for name in names] if is_mean else ()


def _weights(node: ast.expr) -> dict[str, float]:
    """Return the factors of the names in a sum; a number has the name ``""``.

    Raises:
        ValueError: It is not a sum of names and numbers with factors.
    """
    match node:
        case ast.Name(name):
            return {name: 1.0}
        case ast.Constant(int() | float() as number):
            return {"": float(number)}
        case ast.BinOp(left, ast.Add(), right):
            one, other = _weights(left), _weights(right)
            return {name: fsum((one.get(name, 0.0), other.get(name, 0.0))) for name in {**one, **other}}
        case ast.BinOp(left, ast.Mult(), right):
            one, other = _weights(left), _weights(right)
            if [*other] != [""]:
                one, other = other, one
            return _scaled(one, other)
        case ast.BinOp(left, ast.Div(), right):
            factor = _weights(right)
            return _scaled(_weights(left), {name: 1 / value for name, value in factor.items()})
        case _:
            raise ValueError("not a sum")


def _scaled(weights: Mapping[str, float], factor: Mapping[str, float]) -> dict[str, float]:
    if [*factor] != [""]:
        raise ValueError("not a sum")
    return {name: value * factor[""] for name, value in weights.items()}


def _comment(text: str) -> str:
    return f"# {printable(text)}"


def _toml(value: JsonValue) -> str:
    """Return a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return _yaml(value)  # strings, numbers and booleans are written alike


def _yaml(value: object) -> str:
    """Return a value as JSON that YAML reads too."""
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
