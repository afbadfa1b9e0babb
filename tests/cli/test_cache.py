"""``judgekit cache``."""

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import fakeredis
import pytest

from judgekit.judges.cache.replies import RecordedReply, ReplyDatabase
from judgekit.judges.cache.store import add_replies
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.spending import SQLiteSpending
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

CACHE = Path(".judgekit/cache.sqlite")
NOW = datetime.now(UTC)


@pytest.fixture
def cli(cli) -> Callable[..., tuple]:
    """Runs ``judgekit cache`` as the shell would."""
    return partial(cli, "cache")


def recorded(key, prompt="goal@1", judge="openai/small", days=0, **said):
    """A reply that was kept some days ago."""
    reply = Reply(text=f"reply {key}", **said)
    return RecordedReply(key=key, prompt=prompt, judge=judge, recorded_at=NOW - timedelta(days=days), reply=reply)


def keep(*lines, path=CACHE):
    replies = ReplyDatabase(path)
    add_replies(replies, lines, replace=False)
    replies.close()


def kept(path=CACHE):
    replies = ReplyDatabase(path, read_only=True)
    found = {line.key: line.reply.text for line in replies.recorded()}
    replies.close()
    return found


def keep_three() -> None:
    """Keeps three replies to two prompts, of two judges."""
    used = Usage(input_tokens=1000, output_tokens=200)
    keep(
        recorded("a", days=3, usage=used),
        recorded("b", days=1, usage=used),
        recorded("c", prompt="topics@2", judge="litellm/x/big", days=40),
    )


@pytest.fixture
def three() -> None:
    keep_three()


# Stats


def test_stats_say_how_many_replies_there_are_of_whom_and_what_they_save(cli, three):
    ended = cli("stats")
    assert ended.code == 0
    first, *table = [line.strip() for line in ended.out.splitlines() if line.strip()]
    assert re.fullmatch(r"\.judgekit/cache\.sqlite: 3 replies, \d+\.\d kB", first)
    day = [f"{NOW - timedelta(days=days):%Y-%m-%d}" for days in (3, 1, 40)]
    assert [re.split(r"\s{2,}", line) for line in table if "─" not in line] == [
        ["judge", "prompt", "replies", "tokens saved", "oldest", "newest"],
        ["openai/small", "goal@1", "2", "2,400", day[0], day[1]],
        ["litellm/x/big", "topics@2", "1", "unknown", day[2], day[2]],
    ]


def test_stats_say_how_many_replies_nobody_counted_the_tokens_of(cli, three):
    keep(recorded("d"), recorded("e", usage=Usage(input_tokens=5)))
    assert re.search(r"goal@1 +4 +2,400 \(2 unknown\) ", cli("stats").out)


def test_what_would_steer_a_terminal_is_made_visible(cli):
    evil = "\x1b]0;mine\x07"
    keep(recorded("a", prompt=f"goal{evil}", judge=f"openai/{evil}"), path=Path("a.sqlite"))
    for words in (["stats"], ["export"], ["export", "-o", f"{evil}.jsonl"], ["import", f"{evil}.jsonl"], ["stats"]):
        ended = cli(*words, "--cache", f"{evil}.sqlite" if "import" in words else "a.sqlite")
        assert ended.code == 0
        assert "\x1b" not in ended.out + ended.err
        assert "\x07" not in ended.out + ended.err
    assert "\x1b" not in cli("stats", "--cache", f"{evil}.db").err


# Export


def test_a_cassette_is_written_to_a_file_and_to_standard_output_alike(cli, three):
    ended = cli("export", "-o", "out.jsonl")
    assert ended == (0, "", "wrote out.jsonl: 3 replies\n")
    text = Path("out.jsonl").read_text()
    assert cli("export").out == text
    assert [json.loads(line)["key"] for line in text.splitlines()] == ["a", "b", "c"]


def test_a_cassette_on_standard_output_is_utf_8_whatever_the_terminal_speaks(cli):
    keep(recorded("a", model="é"))
    sys.stdout.reconfigure(encoding="ascii")
    assert json.loads(cli("export").out)["reply"]["model"] == "é"


def test_patterns_choose_what_is_written(cli, three):
    for options, found in (
        (("--prompt", "goal"), "ab"),
        (("--prompt", "*@2"), "c"),
        (("--judge", "openai/*"), "ab"),
        (("--prompt", "goal", "--judge", "litellm/*"), ""),
    ):
        assert "".join(json.loads(line)["key"] for line in cli("export", *options).out.splitlines()) == found


def test_the_cache_itself_is_not_written_over(cli, three):
    ended = cli("export", "--output", Path("..") / Path.cwd().name / CACHE)
    assert ended.code == 2
    assert ended.err.endswith("is the cache itself; name another file\n")
    assert len(kept()) == 3


# Import


def test_a_cassette_is_taken_in_once(cli, three):
    cli("export", "-o", "out.jsonl")
    assert (
        cli("import", "out.jsonl", "--cache", "new.sqlite").out == "new.sqlite: added 3 replies, 0 were already there\n"
    )
    assert (
        cli("import", "out.jsonl", "--cache", "new.sqlite").out == "new.sqlite: added 0 replies, 3 were already there\n"
    )
    assert cli("export", "--cache", "new.sqlite").out == Path("out.jsonl").read_text()


def test_a_reply_that_differs_is_left_out_and_counted_unless_it_is_to_replace(cli, three):
    cli("export", "-o", "out.jsonl")
    Path("out.jsonl").write_text(Path("out.jsonl").read_text().replace("reply b", "another b"))
    assert cli("import", "out.jsonl").out == (
        ".judgekit/cache.sqlite: added 0 replies, 2 were already there, "
        "1 differ from cached replies and were skipped (see --replace)\n"
    )
    assert kept()["b"] == "reply b"
    assert cli("import", "out.jsonl", "--replace").out == (
        ".judgekit/cache.sqlite: added 0 replies, 2 were already there, 1 were replaced\n"
    )
    assert kept() == {"a": "reply a", "b": "another b", "c": "reply c"}


def test_a_broken_line_is_named_and_nothing_is_taken_in(cli, three):
    cli("export", "-o", "out.jsonl")
    with Path("out.jsonl").open("a") as file:
        file.write("{broken\n")
    ended = cli("import", "out.jsonl", "--cache", "new.sqlite")
    assert ended.code == 2
    assert ended.err.startswith("judgekit: out.jsonl, line 4: the record: Invalid JSON")
    assert not Path("new.sqlite").exists()


# Prune


def test_what_is_chosen_is_thrown_away_and_said(cli):
    for options, left in (
        ("--older-than 2", "b"),
        ("--older-than 30", "ab"),
        ("--prompt goal", "c"),
        ("--judge openai/*", "c"),
        ("--older-than 2 --judge openai/*", "bc"),
        ("--prompt nothing", "abc"),
    ):
        keep_three()
        gone = 3 - len(left)
        assert cli("prune", *options.split(), "--dry-run").out == f"{CACHE}: {gone} replies would be deleted\n"
        assert "".join(sorted(kept())) == "abc"
        assert cli("prune", *options.split()).out == f"{CACHE}: {gone} replies were deleted\n"
        assert "".join(sorted(kept())) == left


def test_not_all_is_thrown_away_because_nothing_was_said(cli, three):
    ended = cli("prune")
    assert (ended.code, ended.err) == (
        2,
        "judgekit: choose the replies to delete with --older-than, --prompt or --judge\n",
    )
    assert len(kept()) == 3


# Errors


def test_a_cache_that_is_not_there_is_an_error_and_is_not_made(cli):
    for words in ("stats", "export", "prune --prompt *"):
        said = "judgekit: .judgekit/cache.sqlite: does not exist; name the cache with --cache\n"
        assert cli(*words.split()) == (2, "", said)
        assert list(Path().iterdir()) == []


def test_a_file_that_is_no_cache_is_an_error_and_left_as_it_is(cli):
    Path("in.jsonl").write_text("")
    Path("notes.txt").write_text("x" * 5000)
    for words in ("stats", "export", "import in.jsonl", "prune --prompt *"):
        ended = cli(*words.split(), "--cache", "notes.txt")
        assert ended.code == 2
        assert ended.err.endswith(
            "notes.txt: cannot be used as a cache: file is not a database; name another file, or if it is a damaged cache, move it away\n"
        )
        assert Path("notes.txt").read_text() == "x" * 5000


# Budgets


def test_named_budgets_are_shown_and_begin_again_when_they_are_reset(cli):
    missing = cli("budgets")
    assert (missing.code, "budgets.sqlite: does not exist" in missing.err) == (2, True)
    spending = SQLiteSpending(CACHE.with_name("budgets.sqlite"))
    for name in ("named team", "named \x1b[31m", "run 1 openai/a"):
        spending.reserve(name, Budget(), Amount(3, 4_500, 0.25))
    shown = cli("budgets")
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["team", "3", "4,500", "$0.2500"] in lines
    assert "\x1b" not in shown.out
    assert "openai/a" not in shown.out
    unknown = cli("budgets", "--reset", "tean")
    assert (unknown.code, "Did you mean 'team'?" in unknown.err) == (2, True)
    assert cli("budgets", "--reset", "team").code == 0
    assert set(spending.by_budget()) == {"named \x1b[31m", "run 1 openai/a"}


# Redis

SHARED = "redis://127.0.0.1:1"


@pytest.fixture
def fake_redis(monkeypatch):
    server = fakeredis.FakeServer(server_type="redis", version=(7,))
    monkeypatch.setattr("judgekit.judges.redis.server.connect", lambda _: fakeredis.FakeRedis(server=server))
    return fakeredis.FakeRedis(server=server)


@pytest.mark.usefixtures("fake_redis", "three")
def test_replies_go_from_a_file_to_redis_and_back(cli, monkeypatch):
    monkeypatch.setenv("MY_REDIS", "redis://user:correct-horse@127.0.0.1:1")
    assert cli("export", "-o", "all.jsonl").code == 0
    assert cli("import", "all.jsonl", "--cache", SHARED).out.startswith(f"{SHARED}: added 3 replies")
    shown = cli("stats", "--cache", "env:MY_REDIS")
    assert shown.out.startswith("MY_REDIS: 3 replies, Redis, maxmemory-policy ")
    assert "horse" not in shown.out + shown.err
    assert cli("stats").out.splitlines()[2:] == shown.out.splitlines()[2:]
    assert cli("export", "--cache", SHARED).out == Path("all.jsonl").read_text()
    assert cli("prune", "--prompt", "goal", "--dry-run", "--cache", SHARED).out.startswith(f"{SHARED}: ")
    assert cli("prune", "--judge", "*", "--cache", SHARED).out == f"{SHARED}: 3 replies were deleted\n"
    assert cli("stats", "--cache", SHARED).out.startswith(f"{SHARED}: 0 replies")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("words", [["stats"], ["export"], ["prune", "--judge", "*"], ["budgets"]], ids=str)
def test_what_in_redis_is_not_ours_is_named_and_skipped(cli, fake_redis, words, caplog):
    assert cli("export", "-o", "all.jsonl").code == cli("import", "all.jsonl", "--cache", SHARED).code == 0
    fake_redis.rpush("jk1:r:bad", "x")
    fake_redis.sadd("jk1:budgets", "named bad")
    fake_redis.hset("jk1:b:named bad", "requests", "many")
    shown = cli(*words, "--cache", SHARED)
    assert shown.code == 0
    named = (
        "delete the key 'jk1:b:named bad'"
        if words == ["budgets"]
        else "skipped 1 key without an intact reply: jk1:r:bad"
    )
    assert named in caplog.text


def test_a_redis_that_is_away_or_an_address_with_a_password_is_an_error(cli):
    for words in ("stats", "export", "budgets", "prune --judge *"):
        away = cli(*words.split(), "--cache", SHARED)
        assert (away.code, f"{SHARED}: Redis cannot be reached: " in away.err) == (2, True)
        refused = cli(*words.split(), "--cache", "redis://:correct-horse@h")
        assert (refused.code, "the address may not contain a user or password" in refused.err) == (2, True)
        assert "horse" not in refused.err
