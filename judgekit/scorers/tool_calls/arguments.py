"""How the arguments of an expected call and of one that was made are compared."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import zip_longest
from math import fsum
from typing import Annotated, Literal, NamedTuple, TypeAlias, cast

from pydantic import Field, JsonValue, PlainValidator, ValidationError
from pydantic_core import from_json

from judgekit.errors import ConfigError, explain, truncated
from judgekit.scorers.text.normal import folded
from judgekit.scorers.tool_calls.assignment import evenest_pairs
from judgekit.scorers.tool_calls.comparers import TextComparer, text_comparer
from judgekit.scorers.tool_calls.matchers import holds_matcher, matcher_in
from judgekit.scorers.tool_calls.schemas import schema_problems
from judgekit.scoring import Scorer, must_be_scorer
from judgekit.traces.equality import canonical_json, same_json
from judgekit.traces.message import JsonObject, Many, Record, ToolCall, parse_arguments
from judgekit.traces.rendering import compact_json
from judgekit.traces.sample import ExpectedCall
from judgekit.traces.trace import ToolDefinition

_PLAIN_KEY = re.compile(r"[\w-]+")
_SPELLED: dict[str, JsonValue] = {"True": True, "False": False, "None": None}


class Absent(Enum):
    """A placeholder where one side has nothing."""

    ABSENT = "nothing"


ABSENT = Absent.ABSENT
Side: TypeAlias = JsonValue | Absent


class Difference(NamedTuple):
    """Where two objects of arguments differ, such as ``args.items[0].price``, and what stands there on each side."""

    path: str
    expected: Side
    made: Side

    def as_text(self, found: str, longest: int) -> str:
        """Return one line such as ``PATH expected X, found Y``, with at most ``longest`` characters for each part."""
        expected, made = side_text(self.expected, longest), side_text(self.made, longest)
        return f"{truncated(self.path, longest)} expected {expected}, {found} {made}"

    def as_json(self, made: str = "made") -> JsonObject:
        """Return the path and what stands on each side, of which the second is called ``made``."""
        sides = {"expected": self.expected, made: self.made}
        return {"path": self.path, **{name: side for name, side in sides.items() if not isinstance(side, Absent)}}


class Comparison(NamedTuple):
    """How far arguments agree: a score in [0, 1], where 1 is a match, and where they do not.

    ``similarities`` are the numbers of what compares texts, by path, where two texts differ.
    """

    score: float
    differences: tuple[Difference, ...]
    similarities: tuple[tuple[str, float], ...] = ()


AGREED = Comparison(1.0, ())


class ArgMatch(Record):
    """How arguments are compared: as typed JSON, unless said otherwise.

    The score of a call's arguments is the mean over their names of whether the values agree; a name that only one side
    has does not. Paths are written ``city``, ``filter.date``, ``items[0].id``; in patterns ``*`` stands for anything,
    as in ``items[*].id``.

    Attributes:
        mode: ``equal``: the same names and values. ``at_least``: what is expected must be there, and more is free, in
            nested objects too. ``at_most``: what is there must be expected, and less is free. ``ignore``: the tool's
            name alone counts. ``schema``: the arguments must fit the tool's definition in the trace, whatever was
            expected.
        only: Patterns of the paths that are compared; all if not given.
        ignore: Patterns of paths that are not compared.
        defaults: What an argument is where it is left out.
        types: ``coerce``: a text also equals the JSON that it spells, as ``"75"`` does 75 and ``"True"`` true.
        text: ``casefold``: upper and lower case are one. ``normalized``: so are forms of one character (NFKC) and runs
            of white space, and that at the ends is none. Or a function of the expected text and the one found that
            gives a similarity in [0, 1]; or a scorer of texts, such as `ROUGE`, to which the expected text is the
            reference and the one found the response. Texts that it skips are different, and a warning says so.
        lists: ``unordered``: the order of elements is free. ``contains``: so are further elements.
    """

    mode: Literal["equal", "at_least", "at_most", "ignore", "schema"] = "equal"
    only: Many[str] | None = None
    ignore: Many[str] = ()
    defaults: JsonObject = Field(default_factory=dict)
    types: Literal["strict", "coerce"] = "strict"
    text: Annotated[TextComparer, PlainValidator(text_comparer)] = "exact"
    lists: Literal["ordered", "unordered", "contains"] = "ordered"

    @cached_property
    def is_plain(self) -> bool:
        """Whether this is typed JSON equality of all arguments."""
        return all(getattr(self, name) == field.get_default(call_default_factory=True) for name, field in _FIELDS)

    @cached_property
    def text_scorer(self) -> Scorer | None:
        """The scorer that compares texts, if it is one that does."""
        return self.text if isinstance(self.text, Scorer) else None

    @cached_property
    def is_ignored(self) -> Callable[[str], bool]:
        """Whether a path is not compared."""
        return any_glob(self.ignore)

    @cached_property
    def is_asked_for(self) -> Callable[[str], bool]:
        """Whether a path is among those that are compared."""
        return any_glob(("*",) if self.only is None else self.only)


PLAIN = ArgMatch()
_FIELDS = tuple(ArgMatch.model_fields.items())

ArgRules: TypeAlias = ArgMatch | Callable[[JsonObject, JsonObject], bool | float]
"""How arguments are compared, or a function of those expected and those made that says so: a bool, or a score in [0, 1]."""
ArgCompare: TypeAlias = ArgRules | Scorer
"""An `ArgMatch`, or a scorer of texts, which stands for ``ArgMatch(text=scorer)``."""


def arg_rules(option: object) -> ArgRules:
    """Return how arguments are compared, also from a table of a config file.

    Raises:
        ValueError: There is no such rule.
        ConfigError: It is a class.
    """
    if isinstance(option, type):  # it could be called like a function
        must_be_scorer(option, "args")
    if isinstance(option, Scorer):
        option = {"text": option}
    elif callable(option):
        return cast("ArgRules", option)
    try:
        return ArgMatch.model_validate(option)
    except ValidationError as error:
        raise ValueError(explain(error)) from error


def arg_compare(option: ArgCompare | Mapping[str, JsonValue]) -> ArgRules:
    """Return what `arg_rules` does, for the option ``args`` of a scorer.

    Raises:
        ConfigError: There is no such rule.
    """
    try:
        return arg_rules(option)
    except ValueError as error:
        raise ConfigError(f"args: {error}") from error


def any_glob(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a text fits one of the patterns, in which ``*`` stands for any run of characters and all else for itself."""
    tests = [re.compile(_glob(pattern), re.DOTALL).fullmatch for pattern in patterns]
    return lambda text: any(test(text) for test in tests)


def _glob(pattern: str) -> str:
    first, *others = map(re.escape, pattern.split("*"))
    # What stands between two stars is best found as early as can be, and not looked for again: texts may be hostile.
    return first + "".join(f"(?>.*?{part})" for part in others[:-1]) + "".join(f".*{part}" for part in others[-1:])


def compare_arguments(
    how: ArgRules, expected: ExpectedCall, made: ToolCall, tools: Sequence[ToolDefinition] = ()
) -> Comparison:
    """Compares the arguments of two calls.

    Where the expected call has ``compare_args``, only these arguments count. Arguments that could not be read agree in
    nothing.

    Args:
        how: The rules, or a function that compares.
        expected: The call that was expected; its values may be value matchers, such as `near`.
        made: The call that was made.
        tools: The definitions that ``mode="schema"`` looks into.

    Raises:
        ValueError: A value matcher is malformed or stands for all arguments, a function gave no number in [0, 1], or
            there is no definition to look into.
    """
    if matcher_in(expected.args) is not None:
        raise ValueError("a value matcher stands for a value; compare_args=[] takes any arguments")
    if expected.compare_args == () or (isinstance(how, ArgMatch) and how.mode == "ignore"):
        return AGREED
    if made.args_error is not None:
        return Comparison(0.0, (Difference("args", expected.args, made.args_raw),))
    if not isinstance(how, ArgMatch):
        wanted, found = _narrowed(expected.args, expected), _narrowed(made.args, expected)
        score = _checked(how(wanted, found), f"the comparer of {made.name}'s arguments")
        return AGREED if score == 1 else Comparison(score, (Difference("args", wanted, found),))
    if how.mode == "schema":
        problems = schema_problems(made, tools)
        return Comparison(0.0, tuple(Difference("args", one, made.args) for one in problems)) if problems else AGREED
    walk = _Walk(how)
    return Comparison(walk.arguments(expected, made), tuple(walk.differences), tuple(walk.similarities))


def _narrowed(args: JsonObject, expected: ExpectedCall) -> JsonObject:
    names = expected.compare_args
    return args if names is None else {name: args[name] for name in names if name in args}


def _checked(score: float, of: str) -> float:
    try:
        fits = 0 <= score <= 1
    except (TypeError, ValueError):  # what a function gave may be anything
        fits = False
    if not fits:
        raise ValueError(f"{of} gave {score!r}, and not a number in [0, 1]")
    return float(score)


class _Walk:
    """Goes through both sides at once, from path to path, and notes where they differ.

    Each step gives a score in [0, 1], or ``None`` where there is nothing that is to be compared.
    """

    def __init__(self, how: ArgMatch, *, notes: bool = True) -> None:
        self.how = how
        self.notes = notes
        self.differences: list[Difference] = []
        self.similarities: list[tuple[str, float]] = []

    def arguments(self, expected: ExpectedCall, made: ToolCall) -> float:
        """The mean of the scores of the arguments."""
        left, right = _narrowed(expected.args, expected), _narrowed(made.args, expected)
        for name, default in self.how.defaults.items():
            if name in right and self.how.mode != "at_least":  # where what is not expected is free
                left = {name: default, **left}
            elif name in left and self.how.mode != "at_most":
                right = {name: default, **right}
        scores = self._object("args", left, right, asked=self.how.only is None)
        scores += [1.0 for name in {*(expected.compare_args or ())} if name not in left and name not in right]
        return fsum(scores) / len(scores) if scores else 1.0

    def value(self, path: str, expected: Side, made: Side, *, asked: bool) -> float | None:
        """The score of what stands at a path; ``asked``: whether it is within what is asked for."""
        pattern = path.removeprefix("args").removeprefix(".")
        if self.how.is_ignored(pattern):
            return None
        asked = asked or self.how.is_asked_for(pattern)
        if isinstance(expected, dict) and (matcher := matcher_in(expected)):
            spelled = _spelled(made) if self.how.types == "coerce" else made
            fits = any(side is not ABSENT and matcher.matches(side) for side in (made, spelled))
            return self._noted(path, expected, made, float(fits)) if asked else None
        left, right = expected, made
        if self.how.types == "coerce" and isinstance(expected, str) != isinstance(made, str):
            left, right = _spelled(expected), _spelled(made)
        if asked and not any(isinstance(left, kind) and isinstance(right, kind) for kind in (dict, list)):
            return self._noted(path, expected, made, self._scalar(path, left, right))
        # Where a container is not asked for, something in it may be, also where the other side has none.
        scores = self._object(path, *(side if isinstance(side, dict) else {} for side in (left, right)), asked=asked)
        scores += self._list(path, *(side if isinstance(side, list) else [] for side in (left, right)), asked=asked)
        return min(scores) if scores else 1.0 if asked else None

    def _object(self, path: str, expected: JsonObject, made: JsonObject, *, asked: bool) -> list[float]:
        names = expected if self.how.mode == "at_least" else made if self.how.mode == "at_most" else expected | made
        scores = [
            self.value(f"{path}{_step(name)}", expected.get(name, ABSENT), made.get(name, ABSENT), asked=asked)
            for name in names
        ]
        return [score for score in scores if score is not None]

    def _list(self, path: str, expected: list[JsonValue], made: list[JsonValue], *, asked: bool) -> list[float]:
        if self.how.lists != "ordered":
            return self._free_list(path, expected, made, asked=asked)
        scores = [
            self.value(f"{path}[{index}]", one, other, asked=asked)
            for index, (one, other) in enumerate(zip_longest(expected, made, fillvalue=ABSENT))
        ]
        return [score for score in scores if score is not None]

    def _free_list(self, path: str, expected: list[JsonValue], made: list[JsonValue], *, asked: bool) -> list[float]:
        if asked and not holds_matcher(expected):
            wanted, found = Counter(map(canonical_json, expected)), Counter(map(canonical_json, made))
            if wanted == found or (self.how.lists == "contains" and wanted <= found):
                return []  # all there is agrees, and it need not be found out who answers whom
        trial = _Walk(self.how, notes=False)
        weights = [
            [trial.value(f"{path}[{index}]", one, other, asked=asked) for other in made]
            for index, one in enumerate(expected)
        ]
        pairs = dict(evenest_pairs([[1.0 if weight is None else weight for weight in row] for row in weights]))
        scores: list[float | None] = []
        for index, one in enumerate(expected):
            if index in pairs and not self.notes:  # else each list within a list would double the work
                scores.append(weights[index][pairs[index]])
            else:
                other = made[pairs[index]] if index in pairs else ABSENT
                scores.append(self.value(f"{path}[{index}]", one, other, asked=asked))
        if self.how.lists == "unordered":
            surplus = sorted({*range(len(made))}.difference(pairs.values()))
            scores += [self.value(f"{path}[{index}]", ABSENT, made[index], asked=asked) for index in surplus]
        return [score for score in scores if score is not None]

    def _scalar(self, path: str, expected: Side, made: Side) -> float:
        if isinstance(expected, Absent) or isinstance(made, Absent):
            return 0.0
        if same_json(expected, made):
            return 1.0
        text = self.how.text
        if not (isinstance(expected, str) and isinstance(made, str)) or text == "exact":
            return 0.0
        if callable(text):
            similarity = _checked(text(expected, made), "the comparer of texts")
            if self.notes:
                self.similarities.append((path, similarity))
            return similarity
        if not isinstance(text, str):
            raise TypeError(f"{text.name} is asked before calls are paired, see Match.of")
        fold = str.casefold if text == "casefold" else folded
        return float(fold(expected) == fold(made))

    def _noted(self, path: str, expected: Side, made: Side, score: float) -> float:
        if score < 1 and self.notes:
            self.differences.append(Difference(path, expected, made))
        return score


def side_text(side: Side, longest: int) -> str:
    """Return one side of a difference as text of at most ``longest`` characters."""
    return side.value if isinstance(side, Absent) else truncated(compact_json(side), longest)


def _step(name: str) -> str:
    return f".{name}" if _PLAIN_KEY.fullmatch(name) else f"[{compact_json(name)}]"


def _spelled(side: Side) -> Side:
    """The JSON that a text spells, if it does."""
    if not isinstance(side, str):
        return side
    try:
        found = _SPELLED[side] if side in _SPELLED else cast("JsonValue", from_json(side))
    except ValueError:
        return side
    return side if "args_error" in parse_arguments({"": found}) else found  # 1e999 is no number that JSON can hold
