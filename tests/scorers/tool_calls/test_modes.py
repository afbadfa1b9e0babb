"""What is asked of tool calls."""

import pytest

from judgekit.errors import ConfigError
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.modes import PRESETS, ToolMatch, parse_tool_match

AXES = {
    "exact": ("sequence", "forbid", "forbid"),
    "same_calls": ("any", "forbid", "forbid"),
    "contains_in_order": ("in_order", "allow", "forbid"),
    "contains": ("any", "allow", "forbid"),
    "only_these": ("any", "forbid", "allow"),
    "no_detours": ("in_order", "forbid", "allow"),
}
"""Order, extra and missing of each preset."""


@pytest.mark.parametrize("name", AXES)
def test_a_preset_is_a_point_on_three_axes_and_plain_on_the_others(name):
    order, extra, missing = AXES[name]
    assert parse_tool_match(name) is PRESETS[name]
    assert PRESETS[name] == ToolMatch(
        order=order,
        extra=extra,
        missing=missing,
        within="conversation",
        parallel="unordered",
        args=ArgMatch(),
        tools={},
        credit="all_or_nothing",
        args_credit="all",
    )


def test_there_are_six_presets():
    assert list(PRESETS) == list(AXES)


def test_a_mode_may_be_a_table_with_tables_for_arguments():
    table = {"order": "any", "args": {"text": "casefold"}, "tools": {"search*": {"mode": "ignore"}}, "credit": "f1"}
    assert parse_tool_match(table) == ToolMatch(
        order="any", args=ArgMatch(text="casefold"), tools={"search*": ArgMatch(mode="ignore")}, credit="f1"
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"order": "sorted"}, "match: order: Input should be 'sequence', 'in_order' or 'any'"),
        ({"extras": "allow"}, "match: extras: "),
    ],
)
def test_what_a_table_cannot_say_is_an_error_that_says_where(table, message):
    with pytest.raises(ConfigError) as caught:
        parse_tool_match(table)
    assert str(caught.value).startswith(message)
