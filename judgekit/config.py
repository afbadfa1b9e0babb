"""Config: TOML, the environment and the command line become judges and scorers. Nothing below reads any of them.

store_text = true               # false: scores and hashes are written, and no word of a conversation
gate = ["tool_call_f1 >= 0.9", "failed <= 1%"]
min_coverage = 0.9              # of fewer samples, no number meets a gate
[judges.default]
model = "openai/gpt-4.1-mini"
fallback = ["other"]            # names of judges
[[scorers]]
name = "topic_adherence"
as = "topic_recall"
mode = "recall"
draws = 5                       # asks five times, for the majority; "auto": until that is plain
min_confidence = 0.8            # abstains where fewer than four of the five agree, or asks the scorer to escalate to:
escalate = {name = "topic_adherence", mode = "recall", judge = "large"}  # the same judge, if it names none
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from dataclasses import Field as DataclassField
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from judgekit.errors import ConfigError, explain, nearest
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import shipped_prompts
from judgekit.judges.providers import likely_model
from judgekit.judges.settings import unknown_setting
from judgekit.scorers.repeat import Repeat
from judgekit.scorers.selective import Selective
from judgekit.scoring import Scorer
from judgekit.traces.message import JsonObject, Many, Record

FILE = "judgekit.toml"
"""Read from the working directory where no other file is named."""
JUDGE_VARIABLE = "JUDGEKIT_JUDGE"

_SCORERS = {
    "tool_call_accuracy": "judgekit.scorers.tool_calls.accuracy:ToolCallAccuracy",
    "tool_call_f1": "judgekit.scorers.tool_calls.f1:ToolCallF1",
    "tool_call_match": "judgekit.scorers.tool_calls.match:ToolCallMatch",
    "tool_constraints": "judgekit.scorers.tool_calls.constraints:ToolConstraints",
    "exact_match": "judgekit.scorers.text.matches:ExactMatch",
    "string_presence": "judgekit.scorers.text.matches:StringPresence",
    "regex": "judgekit.scorers.text.matches:Regex",
    "similarity": "judgekit.scorers.text.matches:Similarity",
    "json_match": "judgekit.scorers.text.structure:JSONMatch",
    "json_diff": "judgekit.scorers.text.structure:JSONDiff",
    "bleu": "judgekit.scorers.text.translation:BLEU",
    "chrf": "judgekit.scorers.text.translation:CHRF",
    "ter": "judgekit.scorers.text.translation:TER",
    "rouge": "judgekit.scorers.text.rouge:ROUGE",
    "ngram_precision": "judgekit.scorers.text.ngrams:NgramPrecision",
    "answer_match": "judgekit.scorers.classification.answers:AnswerMatch",
    "classification": "judgekit.scorers.classification.labels:Classification",
    "reciprocal_rank": "judgekit.scorers.ranking.binary:ReciprocalRank",
    "average_precision": "judgekit.scorers.ranking.binary:AveragePrecision",
    "ndcg": "judgekit.scorers.ranking.graded:NDCG",
    "err": "judgekit.scorers.ranking.graded:ERR",
    "auc": "judgekit.scorers.ranking.binary:AUC",
    "precision_at_k": "judgekit.scorers.ranking.binary:PrecisionAtK",
    "recall_at_k": "judgekit.scorers.ranking.binary:RecallAtK",
    "hit_rate": "judgekit.scorers.ranking.binary:HitRate",
    "adaptability": "judgekit.scorers.generalization:Adaptability",
    "collaboration_efficiency": "judgekit.scorers.generalization:CollaborationEfficiency",
    "portability": "judgekit.scorers.generalization:Portability",
    "max_messages": "judgekit.scorers.conduct:MaxMessages",
    "max_tool_calls": "judgekit.scorers.conduct:MaxToolCalls",
    "max_repeated_calls": "judgekit.scorers.conduct:MaxRepeatedCalls",
    "max_tool_error_rate": "judgekit.scorers.conduct:MaxToolErrorRate",
    "max_tokens": "judgekit.scorers.conduct:MaxTokens",
    "max_cost": "judgekit.scorers.conduct:MaxCost",
    "max_seconds": "judgekit.scorers.conduct:MaxSeconds",
    "topic_adherence": "judgekit.scorers.topic:TopicAdherence",
    "agent_goal_accuracy_with_reference": "judgekit.scorers.goal:AgentGoalAccuracyWithReference",
    "agent_goal_accuracy_without_reference": "judgekit.scorers.goal:AgentGoalAccuracyWithoutReference",
    "weighted_criteria": "judgekit.scorers.criteria:WeightedCriteria",
    "pairwise": "judgekit.scorers.pairwise:Pairwise",
    "panel": "judgekit.scorers.panel:Panel",
    "prompt": "judgekit.scorers.prompted:PromptScorer",
}


_BUILT = {"judge", "scorer", "scorers", "name"}
"""Options that are made of more than their text."""
_AROUND = ("draws", "min_confidence", "escalate")
"""Options of every scorer that asks a judge: of what is put around it."""


class _ScorerClass(Protocol):
    """A scorer's class: a dataclass whose fields are its options."""

    __dataclass_fields__: ClassVar[dict[str, DataclassField[Any]]]
    __doc__: str | None

    def __call__(self, **options: object) -> Scorer: ...


class ScorerSpec(Record):
    """A scorer as it is asked for.

    Attributes:
        name: Its name in `judgekit scorers`.
        argument: Its first option, given without a name.
        alias: The name of this instance.
        options: Its other options.
        judge: The judge that it asks, and that its members ask, unless the options name one; that of the `Config` if
            not given.
    """

    name: str
    argument: JsonValue = None
    alias: str | None = Field(default=None, alias="as")
    options: JsonObject
    judge: str | None = None

    def asking(self, judge: str | None) -> "ScorerSpec":
        """Return this scorer with another judge to ask."""
        return self.model_copy(update={"judge": judge})

    @classmethod
    def of(cls, table: Mapping[str, JsonValue]) -> "ScorerSpec":
        """Reads a ``[[scorers]]`` table."""
        options = dict(table)
        try:
            return cls.model_validate(
                {"name": options.pop("name", None), "as": options.pop("as", None), "options": options}
            )
        except ValidationError as error:
            raise ConfigError(f"a [[scorers]] table: {explain(error)}") from error

    @classmethod
    def parse(cls, text: str) -> "ScorerSpec":
        """Reads ``name``, or ``name:option=value,option=value``, where values are JSON, or else text up to a comma.

        What a scorer cannot do without, or else its first option, may stand first without its name: ``prompt:tone``,
        ``rouge:rouge1``.
        """
        name, _, rest = text.partition(":")
        table: dict[str, JsonValue] = {"name": name}
        try:
            for place, (key, value) in enumerate(_items(rest)):
                if not key and place:
                    raise ValueError(f"expected option=value, found {value!r}; texts with commas stand in quotes")
                if key in table:
                    raise ValueError(f"{key!r} is given twice; as= is what names this instance")
                table[key] = value
        except ValueError as error:
            raise ConfigError(f"--scorer {text}: {error}") from error
        argument = table.pop("", None)
        return cls.of(table).model_copy(update={"argument": argument})


_JSON = ("{", "[", '"')


def _items(text: str) -> Iterator[tuple[str, JsonValue]]:
    """The options in a text, and their values; one without a name is called nothing."""
    while text:
        option, equals, value = text.partition("=")
        is_bare = text.startswith(_JSON) or not equals or "," in option
        name = "" if is_bare else option.strip()
        try:
            found, text = _value(text if is_bare else value.strip())
        except ValueError as error:
            raise ValueError(f"{name or 'what is behind the colon'} begins like JSON and is none: {error}") from error
        if name == "escalate" and text and isinstance(found, str) and not value.lstrip().startswith(_JSON):
            raise ValueError(
                f"what stands behind escalate={found} may be meant for either scorer: put escalate in quotes, such as "
                f'escalate="{found},{text}", or last'
            )
        if name or found != "":
            yield name, found


def _value(text: str) -> tuple[JsonValue, str]:
    """The value that a text begins with, and what stands behind the comma that ends it."""
    if text.startswith(_JSON):
        value, end = cast("tuple[JsonValue, int]", json.JSONDecoder().raw_decode(text))
        behind = text[end:].lstrip()
        if behind and not behind.startswith(","):
            raise ValueError(f"expected a comma behind it, found {behind!r}")
        return value, behind[1:]
    word, _, behind = text.partition(",")
    try:
        return cast("JsonValue", json.loads(f"0{word}" if word.startswith(".") else word)), behind
    except ValueError:
        return word.strip(), behind


class _File(Record):
    store_text: bool = True
    gate: Many[str] = ()
    min_coverage: float = Field(default=0, ge=0, le=1)
    judges: dict[str, Judge] = Field(default_factory=dict[str, Judge])
    scorers: Many[JsonObject] = ()


_Fallbacks = TypeAdapter(dict[str, list[str]])


class Config:
    """Judges by name, and the scorers of a run.

    Args:
        path: A config file; ``judgekit.toml`` where it is there, if not given.
        judge: A judge's name or model, which goes before all that the file says, though not before the judges of a
            panel's members, nor before the judge that a `ScorerSpec` names: from the command line, or else from
            ``JUDGEKIT_JUDGE``.
        environment: Environment variables.
        switches: Settings of all judges, such as ``offline``, which go before what the file says.

    Raises:
        ConfigError: Something in the file is unknown or does not fit.
    """

    def __init__(self, path: Path | None, judge: str | None, environment: Mapping[str, str], **switches: bool) -> None:
        self._judge = judge or environment.get(JUDGE_VARIABLE) or None
        found = path or (Path(FILE) if Path(FILE).is_file() else None)
        file, fallbacks = (_File(), dict[str, Sequence[str]]()) if found is None else _load(found)
        self.store_text = file.store_text
        self.gates = tuple(file.gate)
        self.min_coverage = file.min_coverage
        self._switches = switches if file.store_text else {**switches, "store_text": False}
        self.judges: dict[str, Judge] = {}
        self._link(file.judges, fallbacks)
        self.judges_used: dict[str, Judge] = {}
        overruled = {"judge"} if self._judge else set[str]()
        tables = [{key: value for key, value in table.items() if key not in overruled} for table in file.scorers]
        self.scorers: Sequence[ScorerSpec] = [ScorerSpec.of(table) for table in tables]

    def chosen_judges(self) -> Mapping[str, Judge]:
        """The one judge that goes before all others, or else all of the file, by name."""
        return {self._judge: self.judge(self._judge)} if self._judge else self.judges

    def judge(self, asked: str) -> Judge:
        """A judge by its name in the file, or by its model.

        Raises:
            ConfigError: There is none.
        """
        if "/" in asked and asked not in self.judges:
            self.judges[asked] = Judge.model_validate({"model": asked, **self._switches})
        if asked not in self.judges:
            raise _no_judge(asked, self.judges)
        return self.judges[asked]

    def _link(self, judges: Mapping[str, Judge], fallbacks: Mapping[str, Sequence[str]]) -> None:
        """Puts judges in the place of the names that others fall back to."""

        def linked(name: str, above: tuple[str, ...]) -> Judge:
            if name in above:
                raise ConfigError(f"judges fall back in a circle: {' > '.join((*above, name))}")
            if name not in judges and "/" not in name:
                raise _no_judge(name, judges)
            if name in judges and name not in self.judges:
                others = tuple(linked(other, (*above, name)) for other in fallbacks.get(name, ()))
                self.judges[name] = judges[name].model_copy(update={"fallback": others, **self._switches})
            return self.judge(name)

        linked_judges = {name: linked(name, ()) for name in judges}
        self.judges = linked_judges | self.judges  # in the order of the file

    def build(self, spec: ScorerSpec) -> Scorer:
        """The scorer that a spec asks for.

        Raises:
            ConfigError: There is no such scorer, option or judge.
        """
        kind = _scorer_class(spec.name)
        known = [one.name for one in fields(kind) if one.name != "name"]
        options: dict[str, object] = dict(spec.options)
        if spec.argument is not None:
            own = [one for one in fields(kind) if one.name not in _BUILT and not one.kw_only]
            first = next((one.name for one in sorted(own, key=_is_needed, reverse=True)), None)
            if first is None or first in options:
                raise ConfigError(f"{spec.name}: expected option=value behind the colon, found {spec.argument!r}")
            options = {first: spec.argument, **options}
        around: tuple[str, ...] = ()
        if not {"judge", "scorers"}.isdisjoint(known):
            around = _AROUND
            if (wrapped := self._wrapped(spec, options, known)) is not None:
                return wrapped
        for option in options:
            if option not in known:
                raise ConfigError.unknown(f"option of {spec.name}", option, dict.fromkeys((*known, *around)))
        if "judge" in known:
            options["judge"] = self._judge_for(spec)
        if "scorers" in known:
            options["scorers"] = [
                self.build(one.asking(spec.judge)) for one in _members(spec.name, options.get("scorers"))
            ]
        if (inner := options.get("scorer")) is not None:
            options["scorer"] = self.build(_member(spec.name, inner).asking(spec.judge))
        if "args" in options:
            options["args"] = self._arg_rules(options["args"])
        if "match" in options:
            options["match"] = self._tool_match(options["match"])
        if spec.alias is not None:
            options["name"] = spec.alias
        _must_fit(spec.name, kind, options)
        try:
            return kind(**options)
        except ConfigError as error:
            raise ConfigError(f"{spec.name}: {error}") from error
        except (TypeError, ValueError) as error:
            said = explain(error) if isinstance(error, ValidationError) else error
            raise ConfigError(f"{spec.name}: {', '.join(spec.options)}: {said}") from error

    def _wrapped(self, spec: ScorerSpec, options: Mapping[str, object], known: Sequence[str]) -> Scorer | None:
        """The scorer asked several times, or heard only where it is sure enough; ``None`` where nobody wants that."""
        own = {name: value for name, value in options.items() if name not in _AROUND}
        draws, least, escalate = (options.get(name) for name in _AROUND)
        for option in _AROUND:
            if option in options and options[option] is None:
                raise ConfigError(f"{spec.name}: {option} is null: give it a value, or leave it out")
        if "escalate" in known and isinstance(escalate, bool):  # a panel's own
            own["escalate"], escalate = escalate, None
        if draws is None and least is None and escalate is None:
            return None
        once = spec.model_copy(update={"options": own, "argument": None, "alias": None if draws else spec.alias})
        scorer = self.build(once)
        if draws is not None:
            if draws != "auto" and not isinstance(draws, int):
                raise ConfigError(f"{spec.name}: draws is a number, or auto, found {draws!r}")
            try:
                scorer = Repeat(scorer, draws if isinstance(draws, int) else "auto", name=spec.alias or "")
            except ConfigError as error:
                raise ConfigError(f"{spec.name}: {error}") from error
        if least is None and escalate is None:
            return scorer
        if least is None:
            raise ConfigError(f"{spec.name}: escalate needs min_confidence=..., below which another scorer is asked")
        judge = cast("str | None", options.get("judge")) or spec.judge
        other = None if escalate is None else self.build(_member(spec.name, escalate).asking(judge))
        try:
            return Selective(scorer, cast("float", least), other)
        except ConfigError as error:
            raise ConfigError(f"{spec.name}: {error}") from error

    def _tool_match(self, match: object) -> object:
        """Return rules for tool calls, with the scorers that compare arguments in the place of their tables or texts."""
        built = {name: self._arg_rules(rules) for name, rules in _table(match).items() if name == "args"}
        if tools := _table(_table(match).get("tools")):
            built["tools"] = {tool: self._arg_rules(rules) for tool, rules in tools.items()}
        return {**_table(match), **built} if built else match

    def _arg_rules(self, rules: object) -> object:
        """Return rules for arguments, with the scorer that compares texts in the place of its table or text."""
        if "name" in _table(rules) or isinstance(rules, str):
            return self.build(_member("args", rules))
        text = _table(rules).get("text")
        if _table(text) or _begins_with_scorer(text):
            return {**_table(rules), "text": self.build(_member("text", text))}
        return rules

    def _judge_for(self, spec: ScorerSpec) -> Judge:
        asked = spec.options.get("judge") or spec.judge or self._judge or "default"
        if not isinstance(asked, str):
            raise ConfigError(f"{spec.name}: judge is a name or a model, found {asked!r}")
        if asked == "default" and asked not in self.judges:
            raise ConfigError(
                f"{spec.name} asks a judge: name one with --judge (such as --judge openai/gpt-4.1-mini), "
                f"in {JUDGE_VARIABLE}, or as [judges.default] in {FILE}"
            )
        found = self.judges_used[asked] = self.judge(asked)
        return found


def _no_judge(asked: str, judges: Iterable[str]) -> ConfigError:
    return ConfigError.unknown("judge", asked, [*judges, "provider/model"], guess=likely_model(asked))


def _members(name: str, tables: object) -> Iterable[ScorerSpec]:
    """The scorers within a scorer: their tables, or on the command line their texts."""
    if not isinstance(tables, list):
        raise ConfigError(
            f'{name}: scorers is a list of scorers, such as [{{name = "prompt", prompt = "tone", judge = "a"}}]'
        )
    for table in cast("list[object]", tables):
        yield _member(name, table)


def _member(name: str, table: object) -> ScorerSpec:
    if isinstance(table, str):
        return ScorerSpec.parse(table)
    if isinstance(table, dict):
        return ScorerSpec.of(cast("JsonObject", table))
    raise ConfigError(f"{name}: a scorer is a table or a text, found {table!r}")


def _table(option: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", option) if isinstance(option, dict) else {}


def _begins_with_scorer(option: object) -> bool:
    return isinstance(option, str) and option.partition(":")[0] in _SCORERS


def _must_fit(name: str, kind: _ScorerClass, options: Mapping[str, object]) -> None:
    """Checks what a scorer's class leaves to type checkers."""
    for one in fields(kind):
        if one.name not in options:
            if _is_needed(one):
                raise ConfigError(f"{name} needs {one.name}=..., which is not given")
        elif isinstance(one.default, bool) and not isinstance(found := options[one.name], bool):
            raise ConfigError(f"{name}: {one.name} is true or false, found {found!r}")


def _is_needed(option: DataclassField[Any]) -> bool:
    return option.default is MISSING and option.default_factory is MISSING


def scorer_descriptions() -> Iterable[tuple[str, str, bool]]:
    """Name, description in a line, and whether a judge is asked, for each scorer and each shipped prompt with a scale."""
    for name in _SCORERS:
        kind = _scorer_class(name)
        asks = not {"judge", "scorers"}.isdisjoint(one.name for one in fields(kind))
        if name != "prompt":
            yield name, (kind.__doc__ or "").partition("\n")[0], asks
    for prompt in shipped_prompts():
        if prompt.scale:
            labels = ", ".join(f"{label} {grade:g}" for label, grade in prompt.scale if not isinstance(grade, str))
            yield f"prompt:{prompt.name}", f"{prompt.description} {labels}. {prompt.skipped}".strip(), True


def _scorer_class(name: str) -> _ScorerClass:
    if name not in _SCORERS:
        if name.partition(":")[0] in _SCORERS:
            raise ConfigError(
                f'no scorer is called {name!r}: in a table an option stands apart, as in name = "prompt", prompt = "tone"'
            )
        prompt = nearest(name, (one.name for one in shipped_prompts() if one.scale))
        raise ConfigError.unknown("scorer", name, _SCORERS, guess=prompt and f"prompt:{prompt}")
    module, _, kind = _SCORERS[name].partition(":")
    return cast("_ScorerClass", getattr(import_module(module), kind))


def _load(path: Path) -> tuple[_File, Mapping[str, Sequence[str]]]:
    """What a file holds, and for each judge the names of those that it falls back to."""
    try:
        tables = cast("JsonObject", tomllib.loads(path.read_text(encoding="utf-8")))
        judges = tables.get("judges")
        named = judges.items() if isinstance(judges, dict) else ()
        names = {name: table.pop("fallback", []) for name, table in named if isinstance(table, dict)}
        fallbacks = _Fallbacks.validate_python(names)
        return _File.model_validate(tables), fallbacks
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except ValidationError as error:
        for problem in error.errors():
            if problem["type"] == "extra_forbidden":
                raise ConfigError(
                    f"{path}: {_unknown_key(*map(str, problem['loc']), value=problem['input'])}"
                ) from error
        raise ConfigError(f"{path}: {explain(error)}") from error


def _unknown_key(*path: str, value: object) -> ConfigError:
    """Return the error of a table that config files do not have, or of a key that tables of judges do not have."""
    *tables, key = path
    if not tables:
        return ConfigError.unknown("table", key, _File.model_fields)
    shown = json.dumps(value) if isinstance(value, int | float) else "..."
    _, _, *within = tables  # judges, the judge's name, and perhaps a table of its own
    return unknown_setting(f"key of [{'.'.join(tables)}]", "".join(within), key, f"params = {{{key} = {shown}}}")
