"""``judgekit scorers NAME`` and ``judgekit formats NAME``: the options and examples of a scorer, the records of a format."""

import json
import re
import shlex
import tomllib
from dataclasses import fields

import judgekit.behavior
from judgekit.cli.scorer_help import scorer_help
from judgekit.config import Config, describe_scorers
from judgekit.formats.readers import READERS
from judgekit.specs import ScorerSpec

NAMES = [name for name, *_ in describe_scorers()]


def test_the_examples_of_each_scorer_make_it():
    for name in NAMES:
        text = "\n".join(scorer_help(name))
        words = shlex.split(re.search("^judgekit run .*", text, re.MULTILINE)[0])
        config = Config(None, words[words.index("--judge") + 1] if "--judge" in words else None, {})
        (table,) = tomllib.loads(re.search(r"^\[\[scorers.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)[0])["scorers"]
        of_command = config.build(ScorerSpec.parse(words[words.index("--scorer") + 1]))
        of_python = eval(text.splitlines()[-1], {"judgekit": judgekit})  # noqa: S307 - what the user is told to write
        assert of_command == config.build(ScorerSpec.from_table(table)), name
        assert type(of_python) is type(of_command), name
        assert [option.name for option in fields(of_command) if f"\n  {option.name}: " not in text] == [], name


def test_options_have_their_types_defaults_and_descriptions(cli):
    out = cli("scorers", "topic_adherence").out
    assert "\n  mode: Literal['precision', 'recall', 'f1', 'accuracy'], default 'f1'\n" in out
    out = cli("scorers", "tool_call_f1").out
    assert "  include_failed: bool, default True\n      Whether calls that resulted in an error count.\n" in out
    assert "`" not in out
    assert "Labels: fitting 1.0, lacking 0.0" in cli("scorers", "prompt:tone").out
    assert "no scorer is called 'tool_cal_f1'. Did you mean 'tool_call_f1'?" in cli("scorers", "tool_cal_f1").err


def test_scorers_are_listed_as_json(cli):
    assert [scorer["name"] for scorer in json.loads(cli("scorers", "--json").out)] == NAMES
    assert json.loads(cli("scorers", "regex", "--json").out)["help"].startswith("regex\n")


def test_formats_are_listed_and_each_says_what_is_read(cli):
    listed = [line.partition(":")[0] for line in cli("formats").out.splitlines()]
    assert listed == list(READERS)
    assert [name for name in listed if cli("formats", name).out.count("\n") < 3] == []
    assert "Did you mean 'langfuse'?" in cli("formats", "langfus").err
