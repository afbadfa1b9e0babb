"""Rules for matching tool calls: more or fewer of them, their order, and how their arguments compare."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue, PlainValidator, ValidationError

from judgekit.errors import ConfigError, explain
from judgekit.scorers.tool_calls.arguments import PLAIN, ArgCompare, ArgMatch, ArgRules, any_glob, arg_rules
from judgekit.traces.message import Record


class ToolMatch(Record):
    """How the calls that were made are held against those that were expected.

    Calls are paired one to one, by the tool's name and the score of their arguments, so that the scores of the pairs
    add up to the most that the order allows (never greedily). This sum is TP; calls made beyond it are FP, calls
    expected beyond it FN.

    Attributes:
        order: ``sequence``: a call made answers the expected call at its own position. ``in_order``: pairs do not cross.
            ``any``: the order is free. Where no call may be left over, the first two give the same value, and what did
            not match is told by the pairs in order, so that one call too many does not put all after it out of place.
        extra: Whether more calls may be made than are expected; those allowed are no FP.
        missing: Whether fewer calls may be made than are expected; those allowed are no FN.
        scope: ``turn``: calls only answer calls that are expected in the same turn, `ExpectedCall.turn`, and are put in
            order within it.
        parallel: Whether calls of one message have an order among themselves.
        args: How arguments are compared: rules, or a function of those expected and those made that gives a bool or a
            score in [0, 1], or a scorer of texts for ``ArgMatch(text=scorer)``.
        tools: The same for single tools, by name or by pattern (``*`` stands for anything). A name goes before a
            pattern, a pattern before the next.
        credit: The value: ``all_or_nothing`` is 1 if no forbidden call is extra or missing, else 0; ``precision`` is
            TP / (TP + FP), ``recall`` TP / (TP + FN), ``f1`` 2 TP / (2 TP + FP + FN). Where that is 0 / 0 it is the
            first one.
        args_credit: ``all``: arguments that do not agree in all are worth nothing. ``fraction``: they are worth their
            score.
    """

    order: Literal["sequence", "in_order", "any"] = "sequence"
    extra: Literal["forbid", "allow"] = "forbid"
    missing: Literal["forbid", "allow"] = "forbid"
    scope: Literal["conversation", "turn"] = "conversation"
    parallel: Literal["unordered", "ordered"] = "unordered"
    args: Annotated[ArgCompare, PlainValidator(arg_rules)] = PLAIN
    tools: dict[str, Annotated[ArgCompare, PlainValidator(arg_rules)]] = Field(default_factory=dict[str, ArgCompare])
    credit: Literal["all_or_nothing", "precision", "recall", "f1"] = "all_or_nothing"
    args_credit: Literal["all", "fraction"] = "all"

    @cached_property
    def has_text_scorers(self) -> bool:
        """Whether scorers compare texts of arguments."""
        rules = (self.args, *self.tools.values())
        return any(isinstance(rule, ArgMatch) and rule.text_scorer is not None for rule in rules)

    @cached_property
    def compares_texts(self) -> bool:
        """Whether functions or scorers compare texts of arguments."""
        rules = (self.args, *self.tools.values())
        return any(isinstance(rule, ArgMatch) and not isinstance(rule.text, str) for rule in rules)

    def args_of(self, tool: str) -> ArgRules:
        """How a tool's arguments are compared."""
        fitting = (how for pattern, how in self.tools.items() if any_glob([pattern])(tool))
        return cast("ArgRules", self.tools[tool] if tool in self.tools else next(fitting, self.args))


PRESETS: Mapping[str, ToolMatch] = {
    "exact": ToolMatch(),
    "same_calls": ToolMatch(order="any"),
    "contains_in_order": ToolMatch(order="in_order", extra="allow"),
    "contains": ToolMatch(order="any", extra="allow"),
    "only_these": ToolMatch(order="any", missing="allow"),
    "no_detours": ToolMatch(order="in_order", missing="allow"),
}


def tool_match(option: ToolMatch | str | Mapping[str, JsonValue]) -> ToolMatch:
    """Return the rules for matching tool calls, also by the name of a preset, or from a table of a config file.

    Raises:
        ConfigError: There is no such preset or rule.
    """
    if isinstance(option, ToolMatch):
        return option
    if isinstance(option, str):
        if option not in PRESETS:
            raise ConfigError.unknown("preset of tool-call matching", option, PRESETS)
        return PRESETS[option]
    try:
        return ToolMatch.model_validate(option)
    except ValidationError as error:
        raise ConfigError(f"match: {explain(error)}") from error
