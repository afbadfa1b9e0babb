"""How two tool calls' arguments are compared."""

from typing import NamedTuple

from pydantic import JsonValue

from judgekit.traces.message import ToolCall
from judgekit.traces.sample import ExpectedCall


class Comparison(NamedTuple):
    """Names of arguments: those that agree, and those that do not, be they different, missing or not expected."""

    matched: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        """Matched names over the union of names; 1 where nothing is to be compared."""
        return len(self.matched) / (len(self.matched) + len(self.different)) if self.different else 1.0


def compare_arguments(expected: ExpectedCall, made: ToolCall) -> Comparison:
    """Compares arguments as typed JSON, name by name. Arguments that could not be read agree in none.

    Where the expected call has ``compare_args``, only these names count; else each name of either side does, so that an
    argument nobody expected counts against the call.
    """
    names = expected.compare_args
    if names is None:
        if made.args_error is None and same_json(expected.args, made.args):
            return Comparison(tuple(expected.args), ())
        names = [*expected.args, *(name for name in made.args if name not in expected.args)]
    elif not names:
        return Comparison((), ())
    if made.args_error is not None:
        return Comparison((), tuple(names) or ("arguments",))
    matched: list[str] = []
    different: list[str] = []
    for name in dict.fromkeys(names):
        agrees = (name in expected.args) == (name in made.args) and same_json(
            expected.args.get(name), made.args.get(name)
        )
        (matched if agrees else different).append(name)
    return Comparison(tuple(matched), tuple(different))


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Equality of JSON values: 75 is 75.0, but True is not 1 and "75" is not 75. The order of keys does not matter."""
    if isinstance(left, str):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same_json(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same_json, left, right))
    return left == right
