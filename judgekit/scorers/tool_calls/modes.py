"""Rules for matching tool calls: extra and missing calls, their order, and the comparison of arguments."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue, PlainValidator, ValidationError

from judgekit.errors import ConfigError, check_choice, validation_message
from judgekit.scorers.tool_calls.arguments import PLAIN, ArgCompare, ArgMatch, ArgRules, any_glob, arg_rules
from judgekit.scoring import Scorer
from judgekit.traces.message import FrozenModel


class ToolMatch(FrozenModel):
    """Rules for comparing actual calls with expected ones.

    Calls are paired one to one, by the tool's name and the score of their arguments, so that their total score is the
    maximum that the order allows (not greedily). This total is TP; calls made beyond it are FP, expected ones FN.

    Attributes:
        order: ``sequence``: each call must match the expected call at its own position. ``in_order``: pairs must not
            cross. ``any``: the order is free. If no call may be left over, the first two give the same value, and
            mismatches are explained by the pairs in order, so that an extra call does not displace all later ones.
        extra: Whether more calls than expected may be made; allowed ones are not FP.
        missing: Whether fewer calls than expected may be made; allowed ones are not FN.
        within: ``turn``: calls only match calls expected in the same turn, `ExpectedCall.turn`, in its order.
        parallel: Whether the calls of one message have an order among themselves.
        args: The rules for arguments; or a function of the expected and actual ones that returns a bool or a score in
            [0, 1]; or a text scorer for ``ArgMatch(text=scorer)``.
        tools: The rules for individual tools, by name or pattern (``*`` matches any text). A name takes precedence over
            patterns, and earlier patterns over later ones.
        credit: The value: ``all_or_nothing`` is 1 if no forbidden call is extra or missing, else 0; ``precision`` is TP
            / (TP + FP), ``recall`` TP / (TP + FN), ``f1`` 2 TP / (2 TP + FP + FN). 0 / 0 counts as ``all_or_nothing``.
        args_credit: ``all``: arguments that do not fully agree get no credit. ``fraction``: they get their score.
    """

    order: Literal["sequence", "in_order", "any"] = "sequence"
    extra: Literal["forbid", "allow"] = "forbid"
    missing: Literal["forbid", "allow"] = "forbid"
    within: Literal["conversation", "turn"] = "conversation"
    parallel: Literal["unordered", "ordered"] = "unordered"
    args: Annotated[ArgCompare, PlainValidator(arg_rules)] = PLAIN
    tools: dict[str, Annotated[ArgCompare, PlainValidator(arg_rules)]] = Field(default_factory=dict[str, ArgCompare])
    credit: Literal["all_or_nothing", "precision", "recall", "f1"] = "all_or_nothing"
    args_credit: Literal["all", "fraction"] = "all"

    @cached_property
    def has_text_scorers(self) -> bool:
        """Whether scorers compare texts in arguments."""
        rules = (self.args, *self.tools.values())
        return any(isinstance(rule, ArgMatch) and isinstance(rule.text, Scorer) for rule in rules)

    @cached_property
    def compares_texts(self) -> bool:
        """Whether functions or scorers compare texts in arguments."""
        rules = (self.args, *self.tools.values())
        return any(isinstance(rule, ArgMatch) and not isinstance(rule.text, str) for rule in rules)

    @cached_property
    def calls_functions(self) -> bool:
        """Whether functions or scorers compare arguments, or texts in them."""
        return self.compares_texts or any(map(callable, (self.args, *self.tools.values())))

    def arg_rules_for(self, tool: str) -> ArgRules:
        """Return the rules for a tool's arguments."""
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


def parse_tool_match(option: ToolMatch | str | Mapping[str, JsonValue]) -> ToolMatch:
    """Return the rules for matching tool calls, also from the name of a preset or a table in a config file."""
    if isinstance(option, ToolMatch):
        return option
    if isinstance(option, str):
        check_choice("preset of tool-call matching", option, PRESETS)
        return PRESETS[option]
    try:
        return ToolMatch.model_validate(option)
    except ValidationError as error:
        raise ConfigError(f"match: {validation_message(error)}") from error
