"""Folders of agents that crashed, of replies that were not recorded, and of columns that are not read."""

import json
from pathlib import Path

import pytest

QUESTION, ANSWER = "Where is order 7?", "Order 7 arrives on Monday."
ASK, REPLY = {"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}
CALL = {
    "role": "assistant",
    "content": "Let me look.",
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "find_order", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "Monday"}
STOPS = {"id": "stops", "messages": [ASK], "reference": ANSWER}
CHAT = [
    {"id": "good", "messages": [ASK, CALL, RESULT, REPLY], "reference": ANSWER},
    {"id": "thanks", "messages": [ASK, REPLY, {"role": "user", "content": "Thanks!"}], "reference": ANSWER},
    {"id": "error", "messages": [ASK], "error": {"message": "overloaded \x1b[31m<b>"}, "reference": ANSWER},
    {"id": "result", "messages": [ASK, CALL, RESULT], "reference": ANSWER},
]
OPTION = "the column 'ground_truth' is not read; to read it as reference: --column ground_truth=reference"


def write(name: str, rows: list[object]) -> None:
    Path("in").mkdir(exist_ok=True)
    Path("in", name).write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def folder() -> None:
    write("chat.jsonl", [*CHAT, STOPS])


@pytest.mark.usefixtures("folder")
def test_crashed_agents_score_0_and_a_reply_that_may_be_missing_fails(cli):
    ended = cli("run", "in", "-s", "exact_match", "--show", 5, "-o", "report.html", "-o", "rows.jsonl")
    assert ended.code == 1
    assert "exit code 1: scores of exact_match failed\n" in ended.err
    assert "exact_match: 2 with a warning: the agent gave no answer\n" in ended.out
    assert "exact_match: 1 failed: no answer recorded: the conversation stops after the user's message" in ended.out
    assert "the agent gave no answer: the conversation ends with the result of 'find_order'\n" in ended.out
    assert "\x1b" not in ended.out
    scores = {
        row["sample_id"]: row["score"]["value"] for row in map(json.loads, Path("rows.jsonl").read_text().splitlines())
    }
    assert scores == {"good": 1, "thanks": 1, "error": 0, "result": 0, "stops": None}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("way", ["option", "config"])
def test_a_file_is_said_to_hold_agents_that_failed(cli, way):
    Path("judgekit.toml").write_text('no_answer = "zero"\n' if way == "config" else "")
    option = ["--no-answer", "zero"] if way == "option" else []
    ended = cli("run", "in", "-s", "exact_match", *option, "--gate", "exact_match == 0.4")
    assert ended.code == 0, ended.err
    assert "exact_match: 3 with a warning: the agent gave no answer\n" in ended.out


@pytest.mark.usefixtures("folder")
def test_inspect_counts_conversations_without_an_answer_and_lists_errors(cli):
    ended = cli("inspect", "in")
    assert ended.heads["no answer"] == (
        "3; 2 where the agent gave up; 1 stop after the user's message, so that a reply may not have been recorded"
    )
    assert ended.heads["errors"] == "1"
    assert "1  overloaded \\x1b[31m<b> (first: error)" in ended.out


def test_a_column_that_is_not_read_is_named_with_its_option(cli):
    write("rows.jsonl", [{"input": "q", "response": "a", "ground_truth": "a"}] * 4)
    ended = cli("run", "in", "-s", "exact_match")
    assert ended.code == 1
    reason = "exit code 1: exact_match scored none of 4 samples: 4 skipped: the sample has no reference"
    assert ended.err.splitlines()[-2:] == [reason, OPTION]
    assert cli("run", "in", "-s", "exact_match", "--column", "ground_truth=reference").code == 0


def test_a_gate_that_covers_under_half_is_not_met(cli):
    rows = [{"input": "q", "response": "a", "ground_truth": "a"}] * 3
    write("rows.jsonl", [*rows, {"input": "q", "response": "a", "reference": "a"}])
    ended = cli("run", "in", "-s", "exact_match", "--gate", "exact_match >= 0.9")
    assert ended.code == 1
    assert "only 1 of 4 samples were scored, which is less than half" in ended.err
    assert OPTION in ended.err
    Path("judgekit.toml").write_text("min_coverage = 0.2\n")
    assert cli("run", "in", "-s", "exact_match", "--gate", "exact_match >= 0.9").code == 0
