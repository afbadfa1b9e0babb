"""Where replies are kept: a SQLite file that grows, and a JSONL file that somebody recorded."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import StoreError
from judgekit.judges.client import Reply
from judgekit.judges.replies import CachedReplies, Recorded, RecordedReplies
from judgekit.traces.message import Usage

REPLY = Reply(text='{"good": "é\\u0000"}', model="m", usage=Usage(input_tokens=3, extra={"a": [1]}), cost_usd=0.1)


@pytest.fixture
def opened(tmp_path):
    """Opens a cache file, as often as asked, and closes all."""
    held = []

    def open_(path=tmp_path / "cache.sqlite"):
        held.append(CachedReplies(path))
        return held[-1]

    yield open_
    for replies in held:
        replies.close()


# SQLite


def test_a_cached_reply_is_found_by_its_key_with_all_that_it_says(opened, question):
    replies = opened()
    replies.put(question(), REPLY)
    assert replies.get(question().key) == REPLY
    assert replies.get(question(draw=1).key) is None
    assert list(replies.digests()) == [question().digests]


@given(text=st.text(), model=st.none() | st.text(), cost=st.none() | st.floats(0, 1e6))
def test_whatever_a_judge_says_comes_back_as_it_was(question, tmp_path_factory, text, model, cost):
    replies = CachedReplies(tmp_path_factory.getbasetemp() / "any.sqlite")
    replies.put(question(), Reply(text=text, model=model, cost_usd=cost))
    assert replies.get(question().key) == Reply(text=text, model=model, cost_usd=cost)
    replies.close()


def test_a_newer_reply_takes_the_place_of_the_older_one(opened, question):
    replies = opened()
    replies.put(question(), REPLY)
    replies.put(question(), Reply(text="newer"))
    assert replies.get(question().key) == Reply(text="newer")
    assert len(list(replies.digests())) == 1


def test_replies_outlive_the_connection_and_are_seen_by_another_at_once(opened, question):
    one, other = opened(), opened()
    one.put(question(), REPLY)
    assert other.get(question().key) == REPLY
    one.close()
    other.close()
    assert opened().get(question().key) == REPLY


def test_a_file_holds_text_that_any_program_can_read(opened, question, tmp_path):
    opened().put(question(), REPLY)
    database = sqlite3.connect(tmp_path / "cache.sqlite")
    [row] = database.execute("SELECT key, digests, prompt, reply FROM replies")
    database.close()
    assert row[0] == question().key
    assert json.loads(row[1]) == question().digests
    assert row[2] == "goodness@12345678"
    assert json.loads(row[3])["text"] == REPLY.text


WRITER = """
import sys, time
from pathlib import Path
from judgekit.judges.client import Reply, Request, Turn
from judgekit.judges.replies import CachedReplies
folder, name = Path(sys.argv[1]), sys.argv[2]
(folder / f"{name}.ready").touch()
while not (folder / "go").exists():
    time.sleep(0.001)
replies = CachedReplies(folder / "new" / "cache.sqlite")
for draw in range(100):
    request = Request("p", "u", name, {}, (Turn("user", "?"),), "s", {}, "p@1", str, draw)
    replies.put(request, Reply(text=f"{name} {draw}"))
    assert replies.get(request.key).text == f"{name} {draw}"
replies.close()
"""


def test_processes_that_start_at_once_share_a_file_and_lose_nothing(opened, tmp_path):
    names = ["a", "b", "c"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], env=environment)  # noqa: S603 - this Python
        for name in names
    ]
    while not all((tmp_path / f"{name}.ready").exists() for name in names):
        assert all(process.poll() is None for process in running)
    (tmp_path / "go").touch()
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(list(opened(tmp_path / "new" / "cache.sqlite").digests())) == 300


def test_a_file_in_which_another_process_is_writing_is_waited_for(opened, question, tmp_path):
    other = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # under which SQLite refuses to switch to WAL, without waiting
    soon = threading.Timer(0.02, lambda: other.execute("COMMIT"))
    soon.start()
    replies = opened()
    soon.join()
    other.close()
    replies.put(question(), REPLY)
    assert opened().get(question().key) == REPLY


def test_the_folder_of_a_new_cache_is_made_and_is_not_for_git(opened, tmp_path):
    opened(tmp_path / ".judgekit" / "cache.sqlite")
    assert (tmp_path / ".judgekit" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_was_there_is_left_to_git(opened, tmp_path):
    opened(tmp_path / "cache.sqlite")
    assert not (tmp_path / ".gitignore").exists()


def test_another_process_may_make_the_folder_first(opened, tmp_path, monkeypatch):
    made = Path.mkdir

    def mkdir(path, *args, **options):
        made(path, parents=True, exist_ok=True)  # the other process
        made(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert list(opened(tmp_path / ".judgekit" / "cache.sqlite").digests()) == []


def newer(path):
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 2")
    database.close()


def foreign(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE replies (something TEXT)")
    database.close()


UNUSABLE = [
    pytest.param(newer, "written by a newer judgekit (schema 2); update, or use another file", id="newer schema"),
    pytest.param(lambda path: path.write_bytes(b"x" * 5000), "not a database; remove it or name another", id="noise"),
    pytest.param(lambda path: path.write_bytes(b"{}"), "not a database", id="another format"),
    pytest.param(Path.mkdir, "unable to open database file; remove it or name another", id="directory"),
]


@pytest.mark.parametrize(("make", "found"), UNUSABLE)
def test_a_file_that_cannot_be_a_cache_is_left_as_it_is_and_reported_in_words(tmp_path, make, found):
    path = tmp_path / "cache.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as info:
        CachedReplies(path)
    assert str(info.value).startswith(f"{path}: ")
    assert found in str(info.value)
    assert before == (path.read_bytes() if path.is_file() else None)
    assert open_files(path) == []


def open_files(path):
    """The handles on a file that this process holds (where the system tells)."""
    handles = Path("/proc/self/fd")
    links = [str(handle.readlink()) for handle in handles.iterdir() if handle.is_symlink()] if handles.is_dir() else []
    return [link for link in links if link.startswith(str(path))]


def test_a_folder_that_cannot_be_made_is_reported_in_words(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/folder/cache\.sqlite: cannot be used as a cache: .*Not a directory"):
        CachedReplies(tmp_path / "file" / "folder" / "cache.sqlite")


def test_a_table_of_somebody_else_is_reported_in_words(opened, question, tmp_path):
    foreign(tmp_path / "cache.sqlite")
    replies = opened()
    for use in (lambda: replies.get("k"), lambda: replies.put(question(), REPLY), replies.digests):
        with pytest.raises(StoreError, match=r"cannot be used as a cache: .*column"):
            use()


def test_a_row_that_was_damaged_is_reported_in_words(opened, question, tmp_path):
    replies = opened()
    replies.put(question(), REPLY)
    database = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)
    database.execute("""UPDATE replies SET reply = '{"text": "x', digests = '{' """)
    database.close()
    for use in (lambda: replies.get(question().key), replies.digests):
        with pytest.raises(StoreError, match="cannot be used as a cache: "):
            use()


# JSONL


def line(question, reply=REPLY):
    return Recorded(key=question.key, digests=question.digests, prompt=question.prompt, reply=reply).model_dump_json()


def test_a_recorded_reply_is_found_by_its_key(question, tmp_path):
    path = tmp_path / "replies.jsonl"
    lines = ['{"about": "Written by hand."}', line(question()), line(question(draw=1), Reply(text="two"))]
    path.write_text("\n".join(lines), encoding="utf-8")
    replies = RecordedReplies(path)
    assert replies.get(question().key) == REPLY
    assert replies.get(question(draw=1).key) == Reply(text="two")
    assert replies.get(question(draw=2).key) is None
    assert replies.get("") is None
    assert list(replies.digests()) == [question().digests, question(draw=1).digests]


def test_a_recorded_file_is_only_read(question, tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text(line(question()))
    replies = RecordedReplies(path)
    with pytest.raises(StoreError, match="a recorded file is only read; use cache_mode='replay', or a SQLite cache"):
        replies.put(question(), REPLY)
    replies.close()
    assert path.read_text() == line(question())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(b'{"about": "x"}\n{"key": "k"}\n', ", line 2: has no reply", id="no reply"),
        pytest.param(b'{"about": "x"}\nnonsense\n', ", line 2: the record: Invalid JSON", id="no JSON"),
        pytest.param(b'{"key": "k", "answer": {}}', ", line 1: answer: Extra inputs", id="unknown field"),
        pytest.param(b'{"key": "k", "reply": {"text": 3}}', ", line 1: reply.text: Input should be", id="no text"),
        pytest.param(b"\xff\xfe", ": cannot be read: 'utf-8' codec", id="no UTF-8"),
        pytest.param(None, ": cannot be read: [Errno 2] No such file", id="missing"),
    ],
)
def test_a_recorded_file_that_cannot_be_read_is_reported_with_its_line(tmp_path, text, found):
    path = tmp_path / "replies.jsonl"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(StoreError) as info:
        RecordedReplies(path)
    assert str(info.value).startswith(f"{path}{found}")


def test_a_folder_of_the_users_own_choice_is_not_hidden_from_git(tmp_path):
    CachedReplies(tmp_path / "verdicts" / "cache.sqlite").close()
    assert not (tmp_path / "verdicts" / ".gitignore").exists()
