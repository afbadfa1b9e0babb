"""Where replies are kept: a SQLite file that grows, and that processes share."""

import gc
import json
import os
import shutil
import sqlite3
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import StoreError
from judgekit.judges.cache.replies import Claim, RecordedReply, ReplyDatabase, _checksum
from judgekit.judges.cache.store import ImportCounts, add_replies
from judgekit.judges.request import Reply, TokenLogprob
from judgekit.traces.message import Usage

REPLY = Reply(text='{"good": "é\\u0000"}', model="m", usage=Usage(input_tokens=3, extra={"a": [1]}), cost_usd=0.1)


@pytest.fixture
def opened(tmp_path):
    """Opens a cache file, as often as asked, and closes all."""
    held = []

    def open_(path=tmp_path / "cache.sqlite", **options):
        held.append(ReplyDatabase(path, **options))
        return held[-1]

    yield open_
    for replies in held:
        replies.close()


@pytest.fixture
def path(tmp_path) -> Path:
    """Where the cache file of a test is."""
    return tmp_path / "cache.sqlite"


def by_hand(path, *statements):
    """Does something to a file past judgekit."""
    database = sqlite3.connect(path, isolation_level=None)
    rows = [row for statement in statements for row in database.execute(statement)]
    database.close()
    return rows


def is_sound(path):
    return by_hand(path, "PRAGMA integrity_check") == [("ok",)]


def beside(path):
    """All files of a folder with what is in them."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def test_a_cached_reply_is_found_by_its_key_with_all_that_it_says(opened, question):
    replies = opened()
    replies.put(question(), REPLY)
    assert replies.get(question().key) == REPLY
    assert replies.get(question(repeat=1).key) is None
    assert [line.digests for line in replies.recorded()] == [question().digests]


LOGPROBS = st.builds(TokenLogprob, token=st.text(), logprob=st.floats(max_value=0, allow_nan=False))
REPLIES = st.builds(
    Reply,
    text=st.text(),
    model=st.none() | st.text(),
    usage=st.none() | st.builds(Usage, input_tokens=st.none() | st.integers(0, 2**40)),
    cost_usd=st.none() | st.floats(0, 1e6),
    logprobs=st.none() | st.lists(LOGPROBS).map(tuple),
)


@given(reply=REPLIES)
def test_whatever_a_judge_says_comes_back_as_it_was(question, tmp_path_factory, reply):
    replies = ReplyDatabase(tmp_path_factory.getbasetemp() / "any.sqlite")
    replies.put(question(), reply, replace=True)
    assert replies.get(question().key) == reply
    replies.close()


def test_what_no_file_can_hold_is_kept_as_a_question_mark(opened, question):
    replies = opened()
    replies.put(question(), Reply(text="a\ud800b"))
    assert replies.get(question().key) == Reply(text="a?b")


def test_a_file_that_nobody_closes_is_closed_without_a_warning(question, path):
    """An event loop that ends while a thread opens it drops it; since Python 3.13, a connection left open warns."""
    replies = ReplyDatabase(path)
    replies.put(question(), REPLY)
    del replies
    gc.collect()
    assert open_files(path) == []


def test_a_file_holds_text_that_any_program_can_read(opened, question, path):
    opened().put(question(), REPLY)
    [row] = by_hand(path, "SELECT key, judge, prompt, digests, reply, at FROM replies")
    assert row[:3] == (question().key, "openai/judge-1", "goodness@12345678")
    assert json.loads(row[3]) == question().digests
    assert json.loads(row[4])["text"] == REPLY.text
    assert abs(datetime.now(UTC) - datetime.fromisoformat(row[5])) < timedelta(minutes=1)


def test_another_process_may_make_the_folder_first(opened, tmp_path, monkeypatch):
    made = Path.mkdir

    def mkdir(path, *args, **options):
        made(path, parents=True, exist_ok=True)  # the other process
        made(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert list(opened(tmp_path / ".judgekit" / "cache.sqlite").recorded()) == []


# Files that are not caches


def foreign(path):
    by_hand(path, "CREATE TABLE replies (something TEXT)")


def newer(path):
    ReplyDatabase(path).close()
    by_hand(path, "PRAGMA user_version = 2")


def of_others(path):
    by_hand(path, "PRAGMA application_id = 7")


def active(path):
    ReplyDatabase(path).close()
    by_hand(path, "CREATE TRIGGER mine AFTER INSERT ON replies BEGIN UPDATE replies SET reply = ''; END")


UNUSABLE = [
    pytest.param(
        newer, "written by a newer judgekit (schema 2); update judgekit, or name another file", id="newer schema"
    ),
    pytest.param(foreign, "belongs to another program; name another file", id="tables of another program"),
    pytest.param(of_others, "belongs to another program; name another file", id="another program"),
    pytest.param(active, "holds triggers or views, which judgekit does not run; name another file", id="triggers"),
    pytest.param(Path.mkdir, "cannot be used as a cache: it is a folder; name a file in it", id="folder"),
]


@pytest.mark.parametrize(("make", "found"), UNUSABLE)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_cache_is_left_as_it_is_and_reported_in_words(path, make, found, read_only):
    make(path)
    before = None if path.is_dir() else beside(path)
    with pytest.raises(StoreError) as info:
        ReplyDatabase(path, read_only=read_only)
    assert str(info.value) == f"{path}: {found}"
    assert before == (None if path.is_dir() else beside(path))
    assert open_files(path) == []


def open_files(path):
    """The handles on a file that this process holds (where the system tells)."""
    handles = Path("/proc/self/fd")
    links = [str(handle.readlink()) for handle in handles.iterdir() if handle.is_symlink()] if handles.is_dir() else []
    return [link for link in links if link.startswith(str(path))]


def test_an_empty_file_is_a_new_cache(opened, question, path):
    path.touch()
    opened().put(question(), REPLY)
    assert opened().get(question().key) == REPLY


def test_a_table_that_somebody_took_away_is_reported_in_words(opened, path):
    replies = opened()
    by_hand(path, "DROP TABLE replies")
    for use in (lambda: replies.get("k"), lambda: list(replies.recorded())):
        with pytest.raises(StoreError, match=r"cannot be used as a cache: no such table: replies; name another file$"):
            use()


# Corruption


def noise(path):
    path.write_bytes(b"x" * 5000)


def short(path):
    path.write_bytes(path.read_bytes()[:100])


def torn_pages(path):
    """All pages but the first are overwritten, so that the file opens well."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def garbled_schema(path):
    """SQLite's own message then quotes what is no UTF-8."""
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE replies", b"CREATE T\xf9BLE replies"))


@pytest.fixture
def filled(path, question) -> Path:
    """A cache file that was used and closed."""
    replies = ReplyDatabase(path)
    for repeat in range(50):
        replies.put(question(repeat=repeat), REPLY)
    replies.close()
    return path


ADVICE = "name another file, or if it is a damaged cache, move it away"


@pytest.mark.parametrize("damage", [noise, short, garbled_schema], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_corrupt_file_is_an_error_and_left_as_it_is(filled, damage, read_only):
    damage(filled)
    before = filled.read_bytes()
    with pytest.raises(StoreError, match=f"cannot be used as a cache: .*; {ADVICE}$"):
        ReplyDatabase(filled, read_only=read_only)
    assert filled.read_bytes() == before


def test_torn_pages_are_an_error_where_they_are_read(opened, question, filled):
    torn_pages(filled)
    with pytest.raises(StoreError, match=f"cannot be used as a cache: .*; {ADVICE}$"):
        opened(read_only=True).get(question().key)


# Damaged rows

DAMAGE = {
    "another verdict": "reply = replace(reply, 'good', 'evil')",
    "another time": "at = '1999-01-01T00:00:00Z'",
    "another prompt": "prompt = 'badness@12345678'",
    "no JSON": "reply = '{'",
    "no UTF-8": "reply = CAST(x'ff' AS TEXT)",
    "no checksum": "checksum = x''",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_row_that_was_damaged_is_a_miss_and_is_replaced(opened, question, path, damage, caplog):
    replies = opened()
    replies.put(question(), REPLY)
    replies.put(question(repeat=1), REPLY)
    by_hand(path, f"UPDATE replies SET {damage} WHERE key = '{question().key}'")  # noqa: S608
    assert [line.key for line in replies.recorded()] == [question(repeat=1).key]
    caplog.clear()
    assert replies.get(question().key) is None
    [warning] = caplog.records
    assert warning.getMessage() == f"{path}: ignoring a damaged reply"
    assert warning.name == "judgekit"
    assert replies.claim(Claim(question().key, "a")) is True
    replies.put(question(), Reply(text="again"))
    assert replies.get(question().key) == Reply(text="again")


def test_a_value_of_another_type_is_damage_too(opened, question, path):
    replies = opened()
    replies.put(question(), REPLY)
    by_hand(  # as after a flipped bit in the header of a row; what is not STRICT takes any type
        path,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '') WHERE name = 'replies'",
        "PRAGMA writable_schema = RESET",
        "UPDATE replies SET reply = x'00', at = 3",
    )
    assert replies.get(question().key) is None


def test_a_reply_that_another_version_of_judgekit_wrote_is_a_miss(opened, question, path):
    replies = opened()
    replies.put(question(), REPLY)
    [row] = by_hand(path, "SELECT key, judge, prompt, digests, reply, at FROM replies")
    changed = [*row[:4], '{"text": "fine", "unheard_of": 1}', row[5]]
    checksum = _checksum([value.encode() for value in changed])
    by_hand(path, f"UPDATE replies SET reply = '{changed[4]}', checksum = x'{checksum.hex()}'")  # noqa: S608
    assert replies.get(question().key) is None


# Claims


def end_leases(path, seconds=1):
    by_hand(path, f"UPDATE claims SET until = {time.time() - seconds}")  # noqa: S608


def test_a_claim_that_another_made_while_this_one_waited_for_its_turn_to_write_is_seen(opened, path):
    one, other = opened(), opened()
    one.claim(Claim("k", "one"))
    end_leases(path, -10.5)  # made half a second after the other looked at the clock
    assert other.claim(Claim("k", "other")) is False


def test_what_was_claimed_by_a_process_that_was_killed_is_swept_out_in_time(opened, path):
    opened().claim(Claim("old", "a"))
    end_leases(path)
    opened().claim(Claim("new", "b"))
    opened()
    assert by_hand(path, "SELECT key FROM claims") == [("new",)]


@pytest.mark.parametrize("seconds", [60, 86_400 * 365])
def test_a_lease_that_ends_too_late_to_be_true_holds_nobody_back(opened, path, seconds):
    """A clock may be set back; what was claimed before then would be claimed for a year."""
    one, other = opened(), opened()
    one.claim(Claim("k", "one"))
    end_leases(path, -seconds)
    assert other.claim(Claim("k", "other")) is True
    assert one.claim(Claim("k", "one")) is False


def test_the_log_of_a_file_that_was_deleted_is_not_taken_for_that_of_a_new_one(opened, question, path):
    replies = opened()
    for repeat in range(50):
        replies.put(question(repeat=repeat), REPLY)
    path.unlink()
    new = opened()
    new.put(question(repeat=99), REPLY)
    assert [line.key for line in opened().recorded()] == [question(repeat=99).key]
    assert is_sound(path)


# What cannot be written


def test_a_full_disk_is_reported_with_what_to_do_and_what_was_kept_stays(opened, question, path):
    replies = opened()
    replies.put(question(), REPLY)
    replies._db.execute("PRAGMA max_page_count = 12")
    with pytest.raises(StoreError) as info:
        replies.put(question(repeat=1), Reply(text="x" * 100_000))
    assert str(info.value) == (
        f"{path}: cannot be used as a cache: database or disk is full; "
        "free some disk space and try again; the replies so far are saved"
    )
    assert replies.get(question().key) == REPLY
    assert is_sound(path)
    replies._db.execute("PRAGMA max_page_count = 1000")
    replies.put(question(repeat=2000), REPLY)
    assert opened().get(question(repeat=2000).key) == REPLY


@pytest.fixture
def open_to_all():
    """A folder that every user may reach; files in it are owned by whoever runs the tests."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def no_longer_root():
    """From when it is called, the files of root are those of somebody else."""
    was = os.geteuid()
    yield lambda: os.seteuid(65_534 if was == 0 else was)
    os.seteuid(was)


@pytest.fixture
def protect(open_to_all, no_longer_root):
    """Takes the right to write from a folder and from all that is in it."""

    def protect():
        for file in open_to_all.iterdir():
            file.chmod(0o444)
        open_to_all.chmod(0o555)
        no_longer_root()

    return protect


@pytest.mark.parametrize("name", ["cache.sqlite", "new.sqlite", "folder/new.sqlite"])
def test_a_read_only_folder_is_reported_with_what_to_do(open_to_all, protect, name):
    ReplyDatabase(open_to_all / "cache.sqlite").close()
    protect()
    with pytest.raises(StoreError, match=r"cannot be used as a cache: .*(cache_mode='replay' only reads|denied)"):
        ReplyDatabase(open_to_all / name)


def test_a_file_in_which_another_program_writes_for_too_long_is_reported_with_what_to_do(opened, question, path):
    replies = opened()
    replies._db.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"database is locked; another program is writing to it; try again"):
        replies.put(question(), REPLY)
    other.close()
    replies.put(question(), REPLY)
    assert replies.get(question().key) == REPLY


# Only reading


def killed_after_writing(path, question):
    """Leaves a file behind whose last reply is not yet in it, but in the log beside it, as a killed process does."""
    replies = ReplyDatabase(path.with_name("alive.sqlite"))
    replies.put(question(), Reply(text="last words"))
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{path.with_name('alive.sqlite')}{ending}", f"{path}{ending}")
    replies.close()
    path.with_name("alive.sqlite").unlink()
    assert Path(f"{path}-wal").stat().st_size > 0


def test_only_reading_makes_and_changes_nothing(opened, question, filled):
    before = beside(filled)
    replies = opened(read_only=True)
    assert replies.get(question().key) == REPLY
    assert replies.get("k") is None
    assert len(list(replies.recorded())) == 50
    assert beside(filled) == before
    replies.close()
    assert beside(filled) == before


def test_only_reading_sees_what_another_process_is_writing(opened, question):
    writing = opened()
    writing.put(question(), REPLY)
    reading = opened(read_only=True)
    assert reading.get(question().key) == REPLY
    writing.put(question(repeat=1), REPLY)
    assert reading.get(question(repeat=1).key) == REPLY


def test_only_reading_an_empty_file_finds_nothing_and_leaves_it_empty(opened, path):
    path.touch()
    replies = opened(read_only=True)
    assert replies.get("k") is None
    assert list(replies.recorded()) == []
    assert beside(path) == {path.name: b""}


@pytest.mark.parametrize("killed", [False, True])
def test_a_read_only_file_in_a_read_only_folder_can_be_read(open_to_all, protect, question, killed):
    path = open_to_all / "cache.sqlite"
    ReplyDatabase(path).close()
    if killed:
        killed_after_writing(path, question)
    else:
        replies = ReplyDatabase(path)
        replies.put(question(), Reply(text="last words"))
        replies.close()
    before = beside(path)
    protect()
    replies = ReplyDatabase(path, read_only=True)
    assert [line.reply.text for line in replies.recorded()] == ["last words"]
    replies.close()
    assert beside(path) == before


def test_a_log_that_cannot_be_read_is_an_error_and_not_a_miss(open_to_all, protect, question):
    path = open_to_all / "cache.sqlite"
    killed_after_writing(path, question)
    Path(f"{path}-shm").unlink()
    protect()
    with pytest.raises(
        StoreError, match=r"it must be readable, with the -wal and -shm files that SQLite may have left"
    ):
        ReplyDatabase(path, read_only=True)


# Without a write-ahead log


def test_a_file_system_without_a_shared_log_is_said_once_and_used_all_the_same(
    opened, question, path, monkeypatch, caplog
):
    connect = sqlite3.connect
    without_shared_memory = "&vfs=unix-dotfile"  # a file system of SQLite's own that has none, like NFS
    monkeypatch.setattr(sqlite3, "connect", lambda name, **options: connect(name + without_shared_memory, **options))
    replies, other = opened(), opened()
    replies.put(question(), REPLY)
    assert other.get(question().key) == REPLY
    [warning] = caplog.records
    assert warning.getMessage().startswith(f"{path}: SQLite cannot use a write-ahead log here (journal_mode is delete)")
    assert not Path(f"{path}-wal").exists()


# Many at once


def test_replies_come_in_the_order_of_prompt_and_judge_whenever_they_were_kept(opened, question):
    replies = opened()
    asked = [
        question(prompt=prompt, model=model, params={prompt: 0})
        for prompt in ("b@2", "a@2", "a@1")
        for model in ("z", "y")
    ]
    for request in asked:
        replies.put(request, REPLY)
    assert [(line.prompt, line.judge) for line in replies.recorded()] == [
        ("a@1", "openai/y"),
        ("a@1", "openai/z"),
        ("a@2", "openai/y"),
        ("a@2", "openai/z"),
        ("b@2", "openai/y"),
        ("b@2", "openai/z"),
    ]
    [first, *_] = replies.recorded()
    assert first.key == asked[5].key
    assert first.digests == asked[5].digests
    assert first.reply == REPLY
    assert abs(datetime.now(UTC) - first.recorded_at) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("prompt", "judge", "found"),
    [
        ("*", "*", "abcd"),
        ("goal_with", "*", "ab"),
        ("goal_with@1", "*", "a"),
        ("goal_*", "*", "abc"),
        ("*", "openai/*", "abc"),
        ("goal_*", "openai/small", "a"),
        ("goal", "*", ""),
        ("", "*", ""),
    ],
)
def test_patterns_choose_by_prompt_with_or_without_its_version_and_by_judge(opened, question, prompt, judge, found):
    replies = opened()
    for text, asked_prompt, asked_judge in (
        ("a", "goal_with@1", "openai/small"),
        ("b", "goal_with@2", "openai/big"),
        ("c", "goal_without@1", "openai/big"),
        ("d", "topics@1", "litellm/x/y"),
    ):
        provider, _, model = asked_judge.partition("/")
        replies.put(question(prompt=asked_prompt, provider=provider, model=model, params={text: 0}), Reply(text=text))
    assert "".join(sorted(line.reply.text for line in replies.recorded(prompt, judge))) == found
    assert replies.prune(prompt, judge, None, dry_run=True) == len(found)
    assert replies.prune(prompt, judge, None, dry_run=False) == len(found)
    assert "".join(sorted(line.reply.text for line in replies.recorded())) == "".join(sorted(set("abcd") - set(found)))


def test_replies_that_are_too_old_are_thrown_away_and_their_space_is_given_back(opened, question, path):
    replies = opened()
    now = datetime.now(UTC)
    lines = [
        RecordedReply(key=f"{day}", prompt="p@1", recorded_at=now - timedelta(days=day), reply=Reply(text="x" * 5000))
        for day in range(100)
    ]
    assert add_replies(replies, lines, replace=False) == ImportCounts(added=100, unchanged=0, conflicting=0)
    opened().close()
    before = now - timedelta(days=9, hours=12)
    size = size_of(path)
    assert replies.prune("*", "*", before, dry_run=True) == 90
    assert size_of(path) == size
    assert replies.prune("*", "*", before, dry_run=False) == 90
    assert sorted(line.key for line in replies.recorded()) == [f"{day}" for day in range(10)]
    assert size_of(path) < size / 5
    assert is_sound(path)


def size_of(path):
    log = Path(f"{path}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def test_replies_are_added_once_and_others_only_replace_those_that_are_there_if_asked_to(opened):
    replies = opened()
    lines = [RecordedReply(note="By hand."), *(RecordedReply(key=key, reply=Reply(text=key)) for key in "abc")]
    assert add_replies(replies, lines, replace=False) == ImportCounts(added=3, unchanged=0, conflicting=0)
    others = [RecordedReply(key=key, reply=Reply(text=text)) for key, text in (("a", "a"), ("b", "other"), ("d", "d"))]
    assert add_replies(replies, others, replace=False) == ImportCounts(added=1, unchanged=1, conflicting=1)
    assert replies.get("b") == Reply(text="b")
    assert add_replies(replies, others, replace=True) == ImportCounts(added=0, unchanged=2, conflicting=1)
    assert replies.get("b") == Reply(text="other")
