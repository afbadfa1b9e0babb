"""``judgekit doctor`` asks each judge a question, and says when its model shuts down."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest


@pytest.fixture
def server(judging, monkeypatch):
    """A judge that gives the right answer."""
    monkeypatch.setattr("judgekit.cli.app.other_owners", list)  # which looks at all that is installed
    Path("judgekit.toml").write_text(f'[judges.default]\nmodel = "openai/org/m"\nbase_url = "{judging.url}"\n')
    judging.answer = lambda _: {"reason": "r", "verdict": "true"}
    return judging


def test_doctor_asks_each_judge_of_the_config_one_question(cli, server):
    with Path("judgekit.toml").open("a") as file:
        file.write('[judges.nobody]\nmodel = "openai/b"\nbase_url = "http://127.0.0.1:9/v1"\n')
    ended = cli("doctor")
    assert (ended.code, ended.err, len(server.requests)) == (1, "", 1)
    assert ended.table["default"][:6] == ["openai/org/m", "none", "yes", "yes", "json_schema", "no"]
    assert ended.table["default"][6:8] == ["1000 in, 100 out", "unknown"]
    assert "default: the provider reports the model m-1\n" in ended.out
    assert ended.table["nobody"] == ["openai/b", "none", "no", "no"]
    assert "nobody: UnreachableError: openai/b at http://127.0.0.1:9/v1: " in ended.out
    usual = server.reply
    server.reply = lambda *asked: (200, {**usual(*asked)[1], "model": None})
    ended = cli("doctor", "--judge", "default")
    assert (ended.code, list(ended.table)) == (0, ["default"])
    assert "default: reports no model, so a change behind this name would go unnoticed\n" in ended.out


def test_a_missing_key_and_a_missing_judge_are_named(cli):
    ended = cli("doctor", "--judge", "openai/a")
    assert (ended.code, ended.table["openai/a"]) == (1, ["openai/a", "missing", "no", "no"])
    assert "set the environment variable OPENAI_API_KEY" in ended.out
    said = "judgekit: there is no judge to test: name one with --judge, or in judgekit.toml\n"
    assert cli("doctor") == (2, "", said)


def test_a_date_is_a_line_below_the_table_and_no_problem(cli, server):
    for days, message in {
        -4000: "was to shut down on {day}: choose another model",
        0: "shuts down on {day}, today: choose another model",
        90: "shuts down on {day}, in 90 days: choose another model",
        91: "shuts down on {day}, in 91 days",
    }.items():
        day = datetime.now(UTC).date() + timedelta(days)
        server.shutdown_date = f"{day}"
        ended = cli("doctor")
        assert (ended.code, ended.err) == (0, "")
        *_, answered, last = ended.out.splitlines()
        assert answered == "default: the provider reports the model m-1"
        assert last == f"default: org/m {message.format(day=day)}"
    for shutdown_date in (None, "\x1b[2Jsoon", 5):
        server.shutdown_date = shutdown_date
        assert cli("doctor").out.splitlines()[-1] == "default: the provider reports the model m-1"


def test_a_date_stands_below_a_problem(cli, server):
    server.answer, server.shutdown_date = lambda _: {"reason": "r", "verdict": "false"}, "2020-01-01"
    ended = cli("doctor")
    assert (ended.code, ended.out.splitlines()[-2:]) == (
        1,
        [
            "default: the judge says that 2 + 2 is not 4",
            "default: org/m was to shut down on 2020-01-01: choose another model",
        ],
    )
