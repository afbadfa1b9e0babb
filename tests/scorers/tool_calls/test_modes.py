"""What is asked of tool calls."""

import pytest

from judgekit.errors import ConfigError
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.modes import ToolMatch, parse_tool_match


def test_a_mode_may_be_a_table_with_tables_for_arguments():
    table = {"order": "any", "args": {"text": "casefold"}, "tools": {"search*": {"mode": "ignore"}}, "credit": "f1"}
    assert parse_tool_match(table) == ToolMatch(
        order="any", args=ArgMatch(text="casefold"), tools={"search*": ArgMatch(mode="ignore")}, credit="f1"
    )


def test_what_a_table_cannot_say_is_an_error_that_says_where():
    with pytest.raises(ConfigError, match=r"^match: order: Input should be 'sequence', 'in_order' or 'any'"):
        parse_tool_match({"order": "sorted"})
    with pytest.raises(ConfigError, match=r"^match: extras: "):
        parse_tool_match({"extras": "allow"})
