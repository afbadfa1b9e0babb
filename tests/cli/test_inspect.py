"""``judgekit inspect``."""

import io
import json
import sys
from pathlib import Path

import pytest


def tool_call(arguments: str, identity: str) -> dict:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": arguments}}


ROWS = [
    {
        "id": "first",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": "Hi \x1b[2J"},
            {"role": "assistant", "tool_calls": [tool_call("{}", "1"), tool_call("{oops", "2"), tool_call("{}", "3")]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": "two"},
            {"role": "tool", "tool_call_id": "9", "content": "nine"},
            {"role": "assistant", "content": "Done"},
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20},
        "reference": "Done",
        "reference_tool_calls": [{"name": "f"}],
    },
    {"id": "first", "messages": [{"role": "user", "content": "Bye"}], "reference": "Bye"},
]


def write(name: str, rows: list[object]) -> Path:
    path = Path(name)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_what_is_in_a_file_is_counted(cli):
    ended = cli("inspect", write("a.jsonl", ROWS))
    assert (ended.code, ended.err) == (0, "")
    assert ended.heads == {
        "format": "openai-chat",
        "conversations": "2; 1 repeat an earlier id",
        "no answer": "1; 1 stop after the user's message, so that a reply may not have been recorded",
        "messages": "tool 3, user 2, assistant 2, system 1",
        "tool calls": "3 by the agent, 0 by the user; 1 with arguments that are not valid JSON; 1 without a result",
        "tool results": "3; 1 without a call; 3 with no recorded status",
        "usage": "1,000 tokens in, 20 out, reported by 1 of 2 whole conversations",
        "references": "reference 2, reference_tool_calls 1",
        "warnings": "1",
    }
    assert "               1  a tool result that answers no earlier call (first: first at messages[5])\n" in ended.out
    conversation = ended.out.partition("\nthe first conversation, first:\n")[2]
    assert "| Hi \\x1b[2J\n" in conversation
    assert "\x1b" not in ended.out


def test_what_traces_say_of_errors_agents_labels_and_costs_is_counted(cli):
    said = {"model": "m", "usage": {"input_tokens": 7, "output_tokens": 2}}
    trace = {
        "messages": [
            {"role": "user", "tool_calls": [{"name": "f"}]},
            {"role": "tool", "requestor": "user", "is_error": True},
            {"role": "assistant", "content": "x", **said},
        ],
        "labels": [{"name": "reward", "value": 1.0}],
        "children": [
            {"children": [{"messages": [{"role": "assistant", "tool_calls": [{"name": "g"}, {"name": "h"}]}]}]}
        ],
        "cost_usd": 0.5,
        "warnings": [{"message": f"expected a string, found {number}", "path": "a"} for number in range(3)],
    }
    ended = cli("inspect", write("a.jsonl", [{"id": "a", "trace": trace}, {"id": "b", "trace": trace}]))
    assert ended.heads == {
        "format": "judgekit",
        "conversations": "2; 1 with the recording of another one",
        "sub-agents": "4; 4 tool calls, not counted below",
        "messages": "user 2, tool 2, assistant 2",
        "tool calls": "0 by the agent, 2 by the user",
        "tool results": "2; 2 errors",
        "usage": "14 tokens in, 4 out, reported by 2 of 2 agent messages; $1.0000 reported by 2 conversations",
        "labels": "reward 2",
        "references": "none",
        "warnings": "6",
    }
    assert "\n               6  expected a string (first: a at a)" in ended.out


def test_the_format_of_each_of_many_files_is_counted_and_what_is_not_read_is_told(cli):
    write("a.jsonl", [*ROWS, "{oops", *['{"messages": [{"role": "user", "content": 5}]}'] * 6])
    write("b.csv", ["input,output", "q,a"])
    write("c.json", ["{oops"])
    ended = cli("inspect", ".")
    assert ended.code == 1
    assert ended.heads["format"] == "openai-chat (1), rows (1) in 2 files"
    assert ended.heads["not read"] == "7 records; 1 file"
    assert "a.jsonl (line 3): not JSON" in ended.out
    assert "and 3 more" in ended.out


def test_columns_an_encoding_and_standard_input_can_be_given(cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("frage,output\nnaïve,x\n".encode("latin-1"))))
    ended = cli("inspect", "-", "--column", "frage=input", "--encoding", "latin-1", "--format", "rows")
    assert (ended.code, ended.heads["format"]) == (0, "rows")
    assert "| naïve\n" in ended.out


def test_a_conversation_that_has_no_room_is_not_shown(cli):
    ended = cli("inspect", write("a.json", [{"messages": [{"role": "user", "content": "x"}] * 3000}]))
    assert ended.code == 0
    assert "not shown: a budget of 2,000 tokens is too small for this conversation of 3,000 messages" in ended.out


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            ['{"messages": [{"role": "user", "content": 5}]}'] * 2,
            "none of 2 records could be read; first error: a.jsonl (line 1)",
        ),
        (["[]"], "a.jsonl (line 1): unknown format: found an empty list"),
    ],
)
def test_where_nothing_can_be_read_it_is_an_error(cli, rows, said):
    ended = cli("inspect", write("a.jsonl", rows))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"judgekit: {said}")


def test_of_many_labels_the_most_frequent_are_named(cli):
    names = ["often", *map(str, range(24)), "often"]
    trace = {"messages": [{"role": "user"}], "labels": [{"name": name, "value": 1} for name in names]}
    ended = cli("inspect", write("a.jsonl", [{"id": "a", "trace": trace}]))
    assert ended.heads["labels"].startswith("often 2, 0 1, ")
    assert ended.heads["labels"].endswith(", 18 1 and 5 more")


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        ({"extra": {"prompt_tokens": "many"}}, "none reported"),
        ({"input_tokens": 5}, "5 tokens in, 0 out, reported by 1 of 1 whole conversation"),
    ],
)
def test_usage_without_a_number_is_none(cli, usage, said):
    trace = {"messages": [{"role": "user"}], "usage": usage}
    assert cli("inspect", write("a.jsonl", [{"id": "a", "trace": trace}])).heads["usage"] == said
