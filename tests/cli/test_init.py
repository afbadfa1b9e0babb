"""``judgekit init``: a config for the file at hand, which runs as it is written."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from judgekit.config import Config

CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
ANSWERED = {
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "no"},
        {"role": "assistant", "content": "So."},
    ]
}
ROW = {"input": "2 + 2?", "response": "4", "reference": "4", "documents": ["2 + 2 = 4"]}
SAMPLE = {
    "trace": {"messages": [{"role": "assistant", "content": "So.", "tool_calls": [{"name": "search", "args": {}}]}]},
    "reference_tool_calls": [{"name": "search", "args": {}}],
    "reference": "found",
    "reference_topics": ["search"],
}


@pytest.mark.parametrize(
    ("record", "scorers", "judged"),
    [
        (ANSWERED, ["unfinished", "max_repeated_calls"], ["tool_selection"]),
        (ROW, ["unfinished", "answer_match"], ["groundedness"]),
        (SAMPLE, ["tool_call_f1", "tool_call_accuracy"], ["topic_adherence", "agent_goal_accuracy_with_reference"]),
    ],
)
def test_a_config_for_a_file_names_the_scorers_for_what_is_in_it_and_runs(cli, record, scorers, judged):
    Path("samples.jsonl").write_text(json.dumps(record))
    ended = cli("init", "samples.jsonl")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "wrote judgekit.toml; next: judgekit run samples.jsonl\n"
    text = Path("judgekit.toml").read_text()
    assert set(scorers) <= {scorer["name"] for scorer in tomllib.loads(text)["scorers"]}
    assert cli("run", "samples.jsonl", "--gate", "failed <= 0", "--gate", "skipped >= 0").code == 0

    commented = re.compile(r"^# (?=\[|(?:gate|name|prompt|model|budget) = )", re.MULTILINE)
    Path("judgekit.toml").write_text(commented.sub("", text))
    config = Config(None, None, {})
    assert [*config.judges] == ["default"]
    names = {config.build(spec).name for spec in config.scorers}
    assert {*judged, "agent_goal_accuracy_without_reference"} <= names
    assert config.gates[1] == "failed <= 1%"


def test_no_file_is_overwritten_and_none_is_written_for_what_cannot_be_read(cli):
    Path("samples.jsonl").write_text(json.dumps(ROW))
    Path("judgekit.toml").write_text("# mine\n")
    ended = cli("init", "samples.jsonl")
    assert (ended.code, Path("judgekit.toml").read_text()) == (2, "# mine\n")
    assert "judgekit.toml exists: name another file with --config, or remove it first" in ended.err
    ended = cli("init", "samples.jsonl", "--config", "other.toml")
    assert (ended.code, ended.err.splitlines()[-1]) == (
        0,
        "wrote other.toml; next: judgekit run samples.jsonl --config other.toml",
    )
    Path("half.jsonl").write_text(f"{json.dumps(ROW)}\nno JSON\n")
    ended = cli("init", "half.jsonl", "--config", "half.toml")
    assert ended.err.startswith("not read: 1 record; judgekit inspect says why\n")
    Path("broken.jsonl").write_text('{"a": 1}\n')
    assert cli("init", "broken.jsonl", "--config", "third.toml").code == 2
    assert not Path("third.toml").exists()


def test_a_shell_completes_commands_and_options(cli, monkeypatch):
    for words, completed in (("judgekit ini", "init"), ("judgekit run --expl", "--explain")):
        monkeypatch.setenv("_JUDGEKIT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        assert cli().out.split() == [completed]
