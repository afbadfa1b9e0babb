"""``judgekit skill``: where the skill is written, and that all it names exists."""

import re
from pathlib import Path

import pytest
import typer

from judgekit import load_prompt
from judgekit.cli.app import COMMAND_MODULES, app, load_commands
from judgekit.resources import resource_folder

SKILL = resource_folder("skills") / "judgekit" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
RECIPES = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("agent", "folder"), [("claude", ".claude"), ("codex", ".agents"), ("cursor", ".cursor"), ("gemini", ".gemini")]
)
def test_it_is_written_where_the_agent_looks_and_never_over_a_changed_file(cli, agent, folder):
    path = Path(folder, "skills", "judgekit", "SKILL.md")
    for _ in range(2):
        ended = cli("skill", "install", agent)
        assert (ended.code, ended.out) == (0, f"wrote {path}: {agent} reads it when a task is about judgekit\n")
        assert path.read_text(encoding="utf-8") == TEXT
    path.write_text("ours")
    ended = cli("skill", "install", agent)
    assert ended.code == 2
    assert f"{path}: differs from the skill of this version, and is left as it is" in ended.err
    assert path.read_text() == "ours"


def test_its_front_matter_is_what_agents_require():
    name, description = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", TEXT).groups()
    assert name == SKILL.parent.name
    assert 50 < len(description) <= 1024


def test_each_command_and_option_that_it_names_exists():
    load_commands([])
    commands = typer.main.get_command(app).commands
    named = [line.partition("#")[0] for block in snippets("bash") for line in block.splitlines()]
    named += re.findall(r"`(judgekit [^`]+)`", TEXT + RECIPES)
    assert len(named) > 20
    for line in named:
        _, command, *words = line.split()
        if command in ("COMMAND", "--help"):
            continue
        options = {text for parameter in commands[command].params for text in (*parameter.opts, "--help")}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= options, line
    assert {*COMMAND_MODULES} >= {line.split()[1] for line in named} - {"COMMAND"}
    with_json = re.search(r"Add `--json` to (.*?) for an answer", TEXT, re.DOTALL)[1]
    for command in re.findall(r"`(\w+)`", with_json):
        assert any("--json" in parameter.opts for parameter in commands[command].params), command


def test_its_examples_of_a_scorer_a_question_and_a_config_work(cli, examples):
    Path("my_scorers.py").write_text(snippets("python")[0])
    ended = cli("run", examples / "conversations.jsonl", "--scorer", "my_scorers.py:polite", "--json")
    assert ended.code == 0, ended.err
    Path("next_step.md").write_text(snippets("markdown")[0])
    assert dict(load_prompt("next_step.md").scale) == {
        "clear": 1,
        "vague": 0.5,
        "missing": 0,
        "not_applicable": "skipped",
    }
    exec(compile(snippets("python")[1] + "test_vague()", "skill", "exec"), {})  # noqa: S102 - our own example
    Path("judgekit.toml").write_text(snippets("toml")[0].replace("MODEL", "gpt-5-mini"))
    ended = cli("run", examples / "conversations.jsonl", "--dry-run")
    assert (ended.code, "agent_goal_accuracy_without_reference" in ended.out) == (0, True), ended.err
