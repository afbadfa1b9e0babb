"""Config: builds judges and scorers from TOML, the environment and the command line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from dataclasses import Field as DataclassField
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from pydantic import ValidationError
from typing_extensions import TypeIs

from judgekit.errors import ConfigError, closest_name, validation_message
from judgekit.locations import require_local
from judgekit.registry import entry_point_references, import_object, is_reference
from judgekit.scorers import SCORERS
from judgekit.scoring import FunctionScorer, Scorer, ScorerFunction, check_scorer, scorer, scorer_prompts
from judgekit.specs import JUDGE_VARIABLE, ScorerSpec
from judgekit.traces.ending import NoAnswer
from judgekit.traces.message import JsonObject

if TYPE_CHECKING:
    from judgekit.judges.judge import Judge

CONFIG_FILE = "judgekit.toml"
"""The config file, read from the working directory if no other file is named."""

_BUILT = {"judge", "scorer", "scorers", "name"}
"""Options whose values are not plain texts."""
WRAPPING_OPTIONS = ("repeats", "min_confidence", "escalate")
"""Options of every scorer that asks a judge, for the scorers that wrap it."""


class _ScorerClass(Protocol):
    """A scorer's class: a dataclass whose fields are its options."""

    __dataclass_fields__: ClassVar[dict[str, DataclassField[Any]]]
    __doc__: str | None

    def __call__(self, **options: object) -> Scorer: ...


class Config:
    """Judges by name, and the scorers of a run.

    Args:
        path: A config file; if not given, ``judgekit.toml`` if that exists.
        judge: A judge's name or model, from the command line or else from ``JUDGEKIT_JUDGE``. It overrides the file,
            except for the judges of a panel's members, and the judge that a `ScorerSpec` names.
        environment: Environment variables.
        switches: Settings of all judges, such as ``offline``, which override the file.

    Raises:
        ConfigError: A part of the file is unknown or invalid.
    """

    def __init__(self, path: Path | None, judge: str | None, environment: Mapping[str, str], **options: bool) -> None:
        self._judge = judge or environment.get(JUDGE_VARIABLE) or None
        self._options = options
        self.store_text = True
        self.gates: Sequence[str] = ()
        self.min_coverage: float | None = None
        self.no_answer: NoAnswer | None = None
        self.judges: dict[str, Judge] = {}
        self.judges_used: dict[str, Judge] = {}
        self.scorers: Sequence[ScorerSpec] = []
        file = path or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)
        if file is not None:
            self._read(require_local(file, "a config must be a local file; copy it here"))

    def _read(self, path: Path) -> None:
        from judgekit.config_file import load_file  # noqa: PLC0415 - loads judges, which a run may not need

        file, fallbacks = load_file(path)
        self.store_text = file.store_text
        self.gates = tuple(file.gate)
        self.min_coverage = file.min_coverage
        self.no_answer = file.no_answer
        if not file.store_text:
            self._options = {**self._options, "store_text": False}
        self._link(file.judges, fallbacks)
        overruled = {"judge"} if self._judge else set[str]()
        self.scorers = [
            ScorerSpec.parse(given)
            if isinstance(given, str)
            else ScorerSpec.from_table({key: option for key, option in given.items() if key not in overruled})
            for given in file.scorers
        ]

    def selected_judges(self) -> "Mapping[str, Judge]":
        """Return the one judge that overrides all others, or else all judges of the file, by name."""
        return {self._judge: self.judge(self._judge)} if self._judge else self.judges

    def judge(self, name: str) -> "Judge":
        """Return a judge by its name in the file, or by its model.

        Raises:
            ConfigError: There is no such judge.
        """
        if "/" in name and name not in self.judges:
            from judgekit.judges.judge import Judge  # noqa: PLC0415 - a run may not need it

            self.judges[name] = Judge.model_validate({"model": name, **self._options})
        if name not in self.judges:
            raise _no_judge(name, self.judges)
        return self.judges[name]

    def _link(self, judges: "Mapping[str, Judge]", fallbacks: Mapping[str, Sequence[str]]) -> None:
        """Replace the names of fallbacks with their judges."""

        def linked(name: str, above: tuple[str, ...]) -> "Judge":
            if name in above:
                raise ConfigError(f"judges fall back in a circle: {' > '.join((*above, name))}")
            if name not in judges and "/" not in name:
                raise ConfigError(f"[judges.{above[-1]}] fallback: {_no_judge(name, judges)}")
            if name in judges and name not in self.judges:
                others = tuple(linked(other, (*above, name)) for other in fallbacks.get(name, ()))
                self.judges[name] = judges[name].model_copy(update={"fallback": others, **self._options})
            return self.judge(name)

        linked_judges = {name: linked(name, ()) for name in judges}
        self.judges = linked_judges | self.judges  # in the order of the file

    def build(self, spec: ScorerSpec) -> Scorer:
        """Return the scorer of a spec: one of judgekit, of an installed package, or of your own.

        Raises:
            ConfigError: There is no such scorer, option or judge.
        """
        kind = scorer_class(spec.name)
        if not is_class(kind):
            return _renamed_scorer(kind, spec)
        names = [
            option.name
            for option in sorted(fields(kind), key=lambda option: option.kw_only is True)
            if option.name != "name"
        ]
        options: dict[str, object] = dict(spec.options)
        if spec.argument is not None:
            own = [option for option in fields(kind) if option.name not in _BUILT and not option.kw_only]
            first = next((option.name for option in sorted(own, key=needs_value, reverse=True)), None)
            if first is None or first in options:
                raise ConfigError(f"{spec.name}: expected option=value after the colon, found {spec.argument!r}")
            options = {first: spec.argument, **options}
        around: tuple[str, ...] = ("long",) if "judge" in names and "long" not in names else ()
        if not {"judge", "scorers"}.isdisjoint(names):
            around += WRAPPING_OPTIONS
            if (wrapped := self._wrapped(spec, options, names)) is not None:
                return wrapped
        long = options.pop("long", None) if "long" in around else None
        for option in options:
            if option not in names:
                raise ConfigError.unknown(f"option of {spec.name}", option, dict.fromkeys((*names, *around)))
        if "judge" in names:
            options["judge"] = judge = self._judge_for(spec)
            if long is not None:
                settings: dict[str, Any] = {setting: getattr(judge, setting) for setting in judge.model_fields_set}
                options["judge"] = type(judge)(**{**settings, "long": cast("Any", long)})
        if "scorers" in names:
            options["scorers"] = [
                self.build(member.with_judge(spec.judge)) for member in _members(spec.name, options.get("scorers"))
            ]
        if (inner := options.get("scorer")) is not None:
            options["scorer"] = self.build(_member(spec.name, inner).with_judge(spec.judge))
        if "args" in options:
            options["args"] = self._arg_rules(options["args"])
        if "match" in options:
            options["match"] = self._tool_match(options["match"])
        if spec.alias is not None:
            options["name"] = spec.alias
        _must_fit(spec.name, kind, options)
        return _build_scorer(spec, lambda: kind(**options))

    def _wrapped(self, spec: ScorerSpec, options: Mapping[str, object], names: Sequence[str]) -> Scorer | None:
        """Return the scorer in a `Repeat`, a `Selective` or both, by its options; ``None`` without such options."""
        own = {name: value for name, value in options.items() if name not in WRAPPING_OPTIONS}
        repeats, least, escalate = (options.get(name) for name in WRAPPING_OPTIONS)
        for option in WRAPPING_OPTIONS:
            if option in options and options[option] is None:
                raise ConfigError(f"{spec.name}: {option} is null: give it a value, or leave it out")
        if (cascade := _table(escalate)) and "name" not in cascade:  # the same scorer with another judge
            below = cascade.get("below")
            if below is not None and least is not None:
                raise ConfigError(f"{spec.name}: min_confidence and escalate.below say the same: leave one out")
            least = below if least is None else least
            changed = {option: setting for option, setting in cascade.items() if option != "below"}
            escalate = {**own, **changed, "name": spec.name}
        if "escalate" in names and isinstance(escalate, bool):  # an option of the panel itself
            own["escalate"], escalate = escalate, None
        if repeats is None and least is None and escalate is None:
            return None

        from judgekit.scorers.repeat import Repeat  # noqa: PLC0415 - only for judges
        from judgekit.scorers.selective import Selective  # noqa: PLC0415

        alias = None if repeats else spec.alias
        scorer = once = self.build(spec.model_copy(update={"options": own, "argument": None, "alias": alias}))
        if repeats is not None:
            if repeats != "auto" and not isinstance(repeats, int):
                raise ConfigError(f"{spec.name}: repeats must be a number or 'auto', found {repeats!r}")
            times: int | Literal["auto"] = repeats if isinstance(repeats, int) else "auto"
            scorer = _build_scorer(spec, lambda: Repeat(once, times, name=spec.alias or ""))
        if least is None and escalate is None:
            return scorer
        if least is None:
            raise ConfigError(f"{spec.name}: escalate needs min_confidence=..., below which it asks another scorer")
        judge = cast("str | None", options.get("judge")) or spec.judge
        other = None if escalate is None else self.build(_member(spec.name, escalate).with_judge(judge))
        return _build_scorer(spec, lambda: Selective(scorer, cast("float", least), other))

    def _tool_match(self, match: object) -> object:
        """Return rules for tool calls, with scorers that compare arguments in place of their tables or texts."""
        built = {name: self._arg_rules(rules) for name, rules in _table(match).items() if name == "args"}
        if tools := _table(_table(match).get("tools")):
            built["tools"] = {tool: self._arg_rules(rules) for tool, rules in tools.items()}
        return {**_table(match), **built} if built else match

    def _arg_rules(self, rules: object) -> object:
        """Return rules for arguments, with the scorer that compares texts in place of its table or text."""
        if "name" in _table(rules) or isinstance(rules, str):
            return self.build(_member("args", rules))
        text = _table(rules).get("text")
        if _table(text) or (isinstance(text, str) and text.partition(":")[0] in SCORERS):
            return {**_table(rules), "text": self.build(_member("text", text))}
        return rules

    def _judge_for(self, spec: ScorerSpec) -> "Judge":
        name = spec.options.get("judge") or spec.judge or self._judge or "default"
        if not isinstance(name, str):
            raise ConfigError(f"{spec.name}: judge must be a name or a model, found {name!r}")
        if name == "default" and name not in self.judges:
            called = f"{spec.name}:{spec.argument}" if isinstance(spec.argument, str) else spec.name
            others = f"; the config has {', '.join(self.judges)}, and none is called default" if self.judges else ""
            raise ConfigError(
                f"{called} asks a judge: name one with --judge provider/model, "
                f"in {JUDGE_VARIABLE}, or as [judges.default] in {CONFIG_FILE}{others}"
            )
        judge = self.judges_used[name] = self.judge(name)
        return judge


def _no_judge(name: str, judges: Iterable[str]) -> ConfigError:
    from judgekit.judges.providers.provider import suggest_model  # noqa: PLC0415 - loads judges

    return ConfigError(
        f"{ConfigError.unknown('judge', name, judges, guess=suggest_model(name))}, or any model as provider/model"
    )


def _members(name: str, tables: object) -> Iterable[ScorerSpec]:
    """Yield the scorers within a scorer, from their tables, or on the command line their texts."""
    if not isinstance(tables, list):
        raise ConfigError(
            f'{name}: scorers must be a list of scorers, such as [{{name = "prompt", prompt = "tone", judge = "a"}}]'
        )
    for table in cast("list[object]", tables):
        yield _member(name, table)


def _member(name: str, table: object) -> ScorerSpec:
    if isinstance(table, str):
        return ScorerSpec.parse(table)
    if isinstance(table, dict):
        return ScorerSpec.from_table(cast("JsonObject", table))
    raise ConfigError(f"{name}: expected a scorer as a table or a text, found {table!r}")


def _table(option: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", option) if isinstance(option, dict) else {}


def _must_fit(name: str, kind: _ScorerClass, options: Mapping[str, object]) -> None:
    """Check options that a scorer's class leaves to type checkers."""
    for option in fields(kind):
        if option.name not in options:
            if needs_value(option):
                raise ConfigError(f"{name}: the option {option.name}=... is required; judgekit scorers {name} shows it")
        elif isinstance(option.default, bool) and not isinstance(flag := options[option.name], bool):
            raise ConfigError(f"{name}: {option.name} must be true or false, found {flag!r}")


def _build_scorer(spec: ScorerSpec, make: Callable[[], Scorer]) -> Scorer:
    """Create a scorer; errors name it."""
    try:
        return make()
    except ConfigError as error:
        raise ConfigError(f"{spec.name}: {error}") from error
    except (TypeError, ValueError) as error:
        problem = validation_message(error) if isinstance(error, ValidationError) else error
        raise ConfigError(f"{spec.name}: {', '.join(spec.options)}: {problem}") from error


def needs_value(option: DataclassField[Any]) -> bool:
    """Return whether an option has no default."""
    return option.default is MISSING and option.default_factory is MISSING


def describe_scorers() -> Iterable[tuple[str, str, bool]]:
    """Yield the name, a short description, and whether a judge is asked, of all scorers and prompts with a scale."""
    from judgekit.judges.prompt_file import shipped_prompts  # noqa: PLC0415 - loads judges

    for name in (*SCORERS, *(reference for reference in entry_point_references("scorers") if reference not in SCORERS)):
        try:
            kind = scorer_class(name)
        except ConfigError as error:  # of an installed package
            yield name, f"cannot be used: {error}", False
            continue
        if not is_class(kind):
            described = kind.function if isinstance(kind, FunctionScorer) else kind
            yield name, (described.__doc__ or "").partition("\n")[0], bool(scorer_prompts(kind))
            continue
        asks = not {"judge", "scorers"}.isdisjoint(option.name for option in fields(kind))
        if name != "prompt":
            yield name, (kind.__doc__ or "").partition("\n")[0], asks
    for prompt in shipped_prompts():
        if prompt.scale:
            labels = ", ".join(f"{label} {grade:g}" for label, grade in prompt.scale if not isinstance(grade, str))
            yield f"prompt:{prompt.name}", f"{prompt.description} {labels}. {prompt.skipped}".strip(), True


def scorer_class(name: str) -> "_ScorerClass | Scorer":
    """Return the class of a scorer by its name, or an object that is a scorer already."""
    if name in SCORERS:
        module, _, shipped = SCORERS[name].partition(":")
        return cast("_ScorerClass", getattr(import_module(module), shipped))
    packages = entry_point_references("scorers")
    if name in packages or is_reference(name, {**SCORERS, **packages}):
        named = import_object(name, "scorers")
        if not isinstance(named, type):
            is_function = callable(named) and not hasattr(named, "ascore")
            return scorer(cast("ScorerFunction", named)) if is_function else check_scorer(named, name)
        if not (is_dataclass(named) and hasattr(named, "ascore")):
            raise ConfigError(
                f"{name}: a scorer class must be a dataclass with an ascore method; its fields are the options"
            )
        return cast("_ScorerClass", named)
    if name.partition(":")[0] in SCORERS:
        raise ConfigError(
            f'no scorer is called {name!r}: in a table, options have their own keys, as in name = "prompt", prompt = "tone"'
        )

    from judgekit.judges.prompt_file import shipped_prompts  # noqa: PLC0415

    prompt = closest_name(name, (shipped.name for shipped in shipped_prompts() if shipped.scale))
    unknown = ConfigError.unknown("scorer", name, {**SCORERS, **packages}, guess=prompt and f"prompt:{prompt}")
    raise ConfigError(f"{unknown}. For your own scorer, give file.py:NAME or package.module:NAME")


def is_class(kind: "_ScorerClass | Scorer") -> TypeIs[_ScorerClass]:
    """Return whether a scorer is given as its class."""
    return isinstance(kind, type)


def _renamed_scorer(own: Scorer, spec: ScorerSpec) -> Scorer:
    """Return the user's own scorer, which is an object, under another name if the spec has one."""
    if spec.options or spec.argument is not None:
        raise ConfigError(f"{spec.name}: functions and objects take no options; make it a class")
    if spec.alias is None:
        return own
    if not is_dataclass(own):
        raise ConfigError(f"{spec.name}: cannot be renamed, since it is not a dataclass")
    return cast("Scorer", replace(own, name=spec.alias))
