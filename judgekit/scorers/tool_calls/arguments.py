"""Comparison of the arguments of an expected call and an actual call."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import zip_longest
from math import fsum
from typing import Annotated, Literal, NamedTuple, TypeAlias, cast

from pydantic import Field, JsonValue, PlainValidator, ValidationError
from pydantic_core import from_json

from judgekit.errors import ConfigError, validation_message
from judgekit.look_alikes import tell_apart
from judgekit.score import rounded_to_unit
from judgekit.scorers.text.normalization import fold_text
from judgekit.scorers.tool_calls.assignment import bottleneck_pairs
from judgekit.scorers.tool_calls.comparers import TextComparer, check_text_comparer
from judgekit.scorers.tool_calls.matchers import KEY_BYTES, contains_matcher, parse_matcher
from judgekit.scorers.tool_calls.schemas import schema_problems
from judgekit.scoring import Scorer, check_scorer
from judgekit.traces.equality import canonical_json, json_bytes, same_json
from judgekit.traces.message import FrozenModel, JsonObject, Many, ToolCall, parse_arguments
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.rendering import compact_json
from judgekit.traces.sample import ExpectedCall

_PLAIN_KEY = re.compile(r"[\w-]+")
_SPELLED: dict[str, JsonValue] = {"True": True, "False": False, "None": None}


class Absent(Enum):
    """A placeholder for a missing value."""

    ABSENT = "nothing"


ABSENT = Absent.ABSENT
ArgumentValue: TypeAlias = JsonValue | Absent


class ArgDifference(NamedTuple):
    """The path of a difference between arguments, such as ``args.items[0].price``, and the values on both sides."""

    path: str
    expected: ArgumentValue
    actual: ArgumentValue

    def as_json(self, actual_key: str = "actual") -> JsonObject:
        """Return the path and the value on each side, with the second one under the key ``actual_key``."""
        sides = {"expected": self.expected, actual_key: self.actual}
        return {"path": self.path, **{name: side for name, side in sides.items() if not isinstance(side, Absent)}}


def difference_texts(differences: Sequence[ArgDifference], verb: str, max_length: int) -> Iterator[str]:
    """Yield each as ``PATH expected X, found Y``, with at most ``max_length`` characters for each part; see `tell_apart`."""
    paths = tell_apart([difference.path for difference in differences], max_length)
    for path, (_, expected, actual) in zip(paths, differences, strict=True):
        shown = tell_apart([side_text(expected), side_text(actual)], max_length)
        yield f"{path} expected {f', {verb} '.join(shown)}"


class ArgComparison(NamedTuple):
    """The agreement of arguments: a score in [0, 1], where 1 is a match, and the differences.

    ``similarities`` are the results of text comparers by path, for texts that differ.
    """

    score: float
    differences: tuple[ArgDifference, ...]
    similarities: tuple[tuple[str, float], ...] = ()


EQUAL_ARGS = ArgComparison(1.0, ())


class ArgMatch(FrozenModel):
    """Rules for comparing arguments; by default, as typed JSON.

    The score of a call's arguments is the mean agreement of the values over all names; a name on one side only does not
    agree. Paths are written ``city``, ``filter.date``, ``items[0].id``; in patterns, ``*`` matches any text:
    ``items[*].id``.

    Attributes:
        mode: ``equal``: the same names and values. ``at_least``: the expected arguments must be present, others are
            allowed, even in nested objects. ``at_most``: all arguments present must be expected, others may be missing.
            ``ignore``: only the tool's name counts. ``schema``: the arguments must conform to the tool's definition in
            the trace, whatever was expected.
        only: Patterns of the paths to compare; all if not given.
        ignore: Patterns of paths not to compare.
        defaults: The values of omitted arguments.
        types: ``coerce``: a text also equals the JSON value that it spells: ``"75"`` is 75 and ``"True"`` is true.
        text: ``casefold``: case is ignored. ``normalized``: so are different forms of a character (NFKC), the length of
            runs of whitespace, and surrounding whitespace. Alternatively a function of the expected and the actual text
            that returns a similarity in [0, 1], or a text scorer, such as `ROUGE`, with the expected text as the
            reference and the actual one as the response. Texts that it skips count as different, with a warning.
        lists: ``unordered``: the order of elements is free. ``contains``: additional elements are allowed as well.
    """

    mode: Literal["equal", "at_least", "at_most", "ignore", "schema"] = "equal"
    only: Many[str] | None = None
    ignore: Many[str] = ()
    defaults: JsonObject = Field(default_factory=dict)
    types: Literal["strict", "coerce"] = "strict"
    text: Annotated[TextComparer, PlainValidator(check_text_comparer)] = "exact"
    lists: Literal["ordered", "unordered", "contains"] = "ordered"

    @cached_property
    def is_plain(self) -> bool:
        """Whether this is typed JSON equality of all arguments."""
        return all(getattr(self, name) == field.get_default(call_default_factory=True) for name, field in _FIELDS)

    @cached_property
    def is_ignored(self) -> Callable[[str], bool]:
        """A test of whether a path is ignored."""
        return any_glob(self.ignore)

    @cached_property
    def is_compared(self) -> Callable[[str], bool]:
        """A test of whether a path is to be compared."""
        return any_glob(("*",) if self.only is None else self.only)


PLAIN = ArgMatch()
_FIELDS = tuple(ArgMatch.model_fields.items())

ArgRules: TypeAlias = ArgMatch | Callable[[JsonObject, JsonObject], bool | float]
"""Rules for arguments, or a function of the expected and actual ones that returns a bool or a score in [0, 1]."""
ArgCompare: TypeAlias = ArgRules | Scorer
"""An `ArgMatch`, or a text scorer as a shorthand for ``ArgMatch(text=scorer)``."""


def are_plain(rules: ArgCompare) -> bool:
    """Return whether the rules are typed JSON equality of all arguments."""
    return isinstance(rules, ArgMatch) and rules.is_plain


def arg_rules(option: object) -> ArgRules:
    """Return the rules for comparing arguments, also from a table in a config file.

    Raises:
        ValueError: The rules are invalid.
        ConfigError: The option is a class.
    """
    if isinstance(option, type):  # it could be called like a function
        check_scorer(option, "args")
    if isinstance(option, Scorer):
        option = {"text": option}
    elif callable(option):
        return cast("ArgRules", option)
    try:
        return ArgMatch.model_validate(option)
    except ValidationError as error:
        raise ValueError(validation_message(error)) from error


def check_args_option(option: ArgCompare | Mapping[str, JsonValue]) -> ArgRules:
    """Return `arg_rules` of a scorer's option ``args``."""
    try:
        return arg_rules(option)
    except ValueError as error:
        raise ConfigError(f"args: {error}") from error


def any_glob(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a test of whether a text matches one of the patterns, in which ``*`` matches any run of characters."""
    tests = [re.compile(_glob(pattern), re.DOTALL).fullmatch for pattern in patterns]
    return lambda text: any(test(text) for test in tests)


def _glob(pattern: str) -> str:
    first, *others = map(re.escape, pattern.split("*"))
    # Text between stars is matched as early as possible, without backtracking, because texts may be hostile.
    return first + "".join(f"(?>.*?{part})" for part in others[:-1]) + "".join(f".*{part}" for part in others[-1:])


def compare_arguments(
    rules: ArgRules, expected: ExpectedCall, actual: ToolCall, tools: Sequence[ToolDefinition] = ()
) -> ArgComparison:
    """Return the comparison of two calls' arguments.

    If the expected call has ``compare_args``, only these are compared. Unreadable arguments agree with nothing.

    Raises:
        ValueError: A value matcher is malformed or stands for all arguments, a function did not return a number in
            [0, 1], or there is no tool definition.
    """
    if parse_matcher(expected.args) is not None:
        raise ValueError("a value matcher replaces a value, not all arguments; compare_args=[] accepts any arguments")
    if expected.compare_args == () or (isinstance(rules, ArgMatch) and rules.mode == "ignore"):
        return EQUAL_ARGS
    if actual.args_error is not None:
        return ArgComparison(0.0, (ArgDifference("args", expected.args, actual.args_raw),))
    if not isinstance(rules, ArgMatch):
        wanted, received = _narrowed(expected.args, expected), _narrowed(actual.args, expected)
        score = _checked(rules(wanted, received), f"the comparison function for the arguments of {actual.name}")
        return EQUAL_ARGS if score == 1 else ArgComparison(score, (ArgDifference("args", wanted, received),))
    if rules.mode == "schema":
        problems = tuple(ArgDifference("args", problem, actual.args) for problem in schema_problems(actual, tools))
        return ArgComparison(0.0, problems) if problems else EQUAL_ARGS
    walk = _Walk(rules)
    return ArgComparison(walk.arguments(expected, actual), tuple(walk.differences), tuple(walk.similarities))


def _narrowed(args: JsonObject, expected: ExpectedCall) -> JsonObject:
    names = expected.compare_args
    return args if names is None else {name: args[name] for name in names if name in args}


def _checked(score: object, of: str) -> float:
    number = rounded_to_unit(score)
    if not isinstance(number, float) or not 0 <= number <= 1:
        raise ValueError(f"{of} must return a number in [0, 1], found {score!r}")
    return number


class _Walk:
    """A traversal of both sides that records their differences.

    Each step returns a score in [0, 1], or ``None`` if there is nothing to compare.
    """

    def __init__(self, rules: ArgMatch, *, notes: bool = True) -> None:
        self.rules = rules
        self.notes = notes
        self.differences: list[ArgDifference] = []
        self.similarities: list[tuple[str, float]] = []

    def arguments(self, expected: ExpectedCall, actual: ToolCall) -> float:
        """Return the mean score of the arguments."""
        left, right = _narrowed(expected.args, expected), _narrowed(actual.args, expected)
        for name, default in self.rules.defaults.items():
            if name in right and self.rules.mode != "at_least":  # which allows unexpected arguments
                left = {name: default, **left}
            elif name in left and self.rules.mode != "at_most":
                right = {name: default, **right}
        scores = self._object("args", left, right, selected=self.rules.only is None)
        scores += [1.0 for name in {*(expected.compare_args or ())} if name not in left and name not in right]
        return fsum(scores) / len(scores) if scores else 1.0

    def value(self, path: str, expected: ArgumentValue, actual: ArgumentValue, *, selected: bool) -> float | None:
        """Return the score of the values at a path; ``selected`` is whether an enclosing path is to be compared."""
        pattern = path.removeprefix("args").removeprefix(".")
        if self.rules.ignore and self.rules.is_ignored(pattern):
            return None
        selected = selected or self.rules.is_compared(pattern)
        if isinstance(expected, dict) and (matcher := parse_matcher(expected)):
            spelled = _spelled(actual) if self.rules.types == "coerce" else actual
            fits = any(side is not ABSENT and matcher.matches(side) for side in (actual, spelled))
            return self._record(path, expected, actual, float(fits)) if selected else None
        left, right = expected, actual
        if self.rules.types == "coerce" and isinstance(expected, str) != isinstance(actual, str):
            left, right = _spelled(expected), _spelled(actual)
        both_objects = isinstance(left, dict) and isinstance(right, dict)
        if selected and not (both_objects or (isinstance(left, list) and isinstance(right, list))):
            return self._record(path, expected, actual, self._scalar(path, left, right))
        # If a container is not to be compared, something in it may be, even if the other side has none.
        scores = self._object(
            path, *(side if isinstance(side, dict) else {} for side in (left, right)), selected=selected
        )
        scores += self._list(
            path, *(side if isinstance(side, list) else [] for side in (left, right)), selected=selected
        )
        return min(scores) if scores else 1.0 if selected else None

    def _is_same(self, expected: ArgumentValue, actual: ArgumentValue) -> bool:
        """Return whether values agree for sure, without a walk through all that is in them."""
        if not self.rules.is_plain or expected != actual:
            return False
        written = json_bytes(expected)
        return written == json_bytes(actual) and KEY_BYTES not in written

    def _object(self, path: str, expected: JsonObject, actual: JsonObject, *, selected: bool) -> list[float]:
        mode = self.rules.mode
        names = expected if mode == "at_least" else actual if mode == "at_most" else expected | actual
        scores = [
            1.0
            if self._is_same(left := expected.get(name, ABSENT), other := actual.get(name, ABSENT))
            else self.value(f"{path}{_step(name)}", left, other, selected=selected)
            for name in names
        ]
        return [score for score in scores if score is not None]

    def _list(self, path: str, expected: list[JsonValue], actual: list[JsonValue], *, selected: bool) -> list[float]:
        if self.rules.lists != "ordered":
            return self._free_list(path, expected, actual, selected=selected)
        scores = [
            1.0 if self._is_same(left, other) else self.value(f"{path}[{index}]", left, other, selected=selected)
            for index, (left, other) in enumerate(zip_longest(expected, actual, fillvalue=ABSENT))
        ]
        return [score for score in scores if score is not None]

    def _free_list(
        self, path: str, expected: list[JsonValue], actual: list[JsonValue], *, selected: bool
    ) -> list[float]:
        if selected and not contains_matcher(expected):
            wanted, received = Counter(map(canonical_json, expected)), Counter(map(canonical_json, actual))
            if wanted == received or (self.rules.lists == "contains" and wanted <= received):
                return []  # everything agrees, without pairing
        trial = _Walk(self.rules, notes=False)
        weights = [
            [trial.value(f"{path}[{index}]", element, other, selected=selected) for other in actual]
            for index, element in enumerate(expected)
        ]
        pairs = dict(bottleneck_pairs([[1.0 if weight is None else weight for weight in row] for row in weights]))
        scores: list[float | None] = []
        for index, element in enumerate(expected):
            if index in pairs and not self.notes:  # otherwise each nested list would double the work
                scores.append(weights[index][pairs[index]])
            else:
                other = actual[pairs[index]] if index in pairs else ABSENT
                scores.append(self.value(f"{path}[{index}]", element, other, selected=selected))
        if self.rules.lists == "unordered":
            surplus = sorted({*range(len(actual))}.difference(pairs.values()))
            scores += [self.value(f"{path}[{index}]", ABSENT, actual[index], selected=selected) for index in surplus]
        return [score for score in scores if score is not None]

    def _scalar(self, path: str, expected: ArgumentValue, actual: ArgumentValue) -> float:
        if isinstance(expected, Absent) or isinstance(actual, Absent):
            return 0.0
        if same_json(expected, actual):
            return 1.0
        text = self.rules.text
        if not (isinstance(expected, str) and isinstance(actual, str)) or text == "exact":
            return 0.0
        if callable(text):
            similarity = _checked(text(expected, actual), "the comparison function for texts")
            if self.notes:
                self.similarities.append((path, similarity))
            return similarity
        if not isinstance(text, str):
            raise TypeError(f"{text.name} runs before calls are paired; see Calls.with_texts_compared")
        fold = str.casefold if text == "casefold" else fold_text
        return float(fold(expected) == fold(actual))

    def _record(self, path: str, expected: ArgumentValue, actual: ArgumentValue, score: float) -> float:
        if score < 1 and self.notes:
            self.differences.append(ArgDifference(path, expected, actual))
        return score


def side_text(side: ArgumentValue) -> str:
    """Return one side of a difference as text."""
    return side.value if isinstance(side, Absent) else compact_json(side)


def _step(name: str) -> str:
    return f".{name}" if _PLAIN_KEY.fullmatch(name) else f"[{compact_json(name)}]"


def _spelled(side: ArgumentValue) -> ArgumentValue:
    """Return the JSON value that a text spells, or the text if it spells none."""
    if not isinstance(side, str):
        return side
    try:
        spelled = _SPELLED[side] if side in _SPELLED else cast("JsonValue", from_json(side))
    except ValueError:
        return side
    return side if "args_error" in parse_arguments({"": spelled}) else spelled  # JSON cannot represent 1e999
