"""What budgets have spent, in a file that processes share."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import StoreError
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.redis_spending import RedisSpending
from judgekit.judges.limits.spending import SQLiteSpending
from judgekit.judges.redis.server import RedisServer

TEN_CENTS = Amount(1, 100, 0.1)


@pytest.fixture(params=["file", "memory", "redis"])
def spending(request, tmp_path):
    if request.param == "redis":
        return RedisSpending(RedisServer(request.getfixturevalue("redis_server").address))
    return SQLiteSpending(tmp_path / "folder" / "budgets.sqlite" if request.param == "file" else None)


def test_three_times_ten_cents_are_thirty_cents(spending):
    refused = [spending.reserve("a", Budget(usd=0.3), TEN_CENTS) for _ in range(4)]
    assert refused == [None, None, None, ("$0.3 (spent: $0.3, the request may cost $0.1)", True)]
    assert spending.amount("a") == (3, 300, 0.3)


def test_a_settled_request_leaves_the_rest_of_its_reservation_to_others(spending):
    limits = Budget(tokens=150)
    assert spending.reserve("a", limits, TEN_CENTS) is None
    spending.settle("a", TEN_CENTS, Amount(1, 40, 0.04))
    assert spending.amount("a") == (1, 40, 0.04)
    assert spending.reserve("a", limits, TEN_CENTS) is None
    assert spending.reserve("b", limits, TEN_CENTS) is None  # another budget


def test_what_would_pass_a_limit_may_fit_later_while_requests_are_under_way(spending):
    large, small = Amount(1, 100, 0.1), Amount(1, 10, 0.01)
    assert [spending.reserve("a", Budget(tokens=150), share) for share in (large, small)] == [None, None]
    assert spending.reserve("a", Budget(tokens=150), large) == (
        "150 tokens (spent: 110, the request may take 100)",
        True,
    )
    spending.settle("a", large, small)
    assert spending.reserve("a", Budget(requests=2), small) == ("2 requests (spent: 2)", True)
    spending.settle("a", small, Amount())
    assert spending.reserve("a", Budget(requests=1), small) == ("1 requests (spent: 1)", False)


def test_what_was_settled_but_not_recorded_by_a_process_that_dies_stays_charged_in_full(tmp_path):
    dead, alive = (SQLiteSpending(tmp_path / "budgets.sqlite") for _ in range(2))
    for _ in range(3):
        dead.reserve("a", Budget(), TEN_CENTS)
    dead.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
    assert alive.amount("a") == (3, 300, 0.3)
    dead.flush()
    assert alive.amount("a") == (3, 205, 0.21)
    dead.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
    dead.close()
    assert alive.amount("a") == (3, 110, 0.12)


def test_what_was_settled_is_recorded_once_the_file_can_be_written_again(tmp_path):
    spending = SQLiteSpending(tmp_path / "budgets.sqlite")
    for _ in range(2):
        spending.reserve("a", Budget(), TEN_CENTS)
    spending._db.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(tmp_path / "budgets.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    spending.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
    with pytest.raises(StoreError, match="locked"):
        spending.flush()
    other.execute("ROLLBACK")
    assert spending.amount("a") == (2, 105, 0.11)
    spending.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
    assert spending.amount("a") == (2, 10, 0.02)
    assert spending.reserve("a", Budget(requests=0), TEN_CENTS) == ("0 requests (spent: 2)", False)
    other.close()


def test_after_a_renewal_reservations_survive_a_power_cut(tmp_path):
    spending = SQLiteSpending(tmp_path / "budgets.sqlite")
    spending.reserve("a", Budget(), TEN_CENTS)
    spending.renew()
    without_log = sqlite3.connect(
        f"file:{tmp_path / 'budgets.sqlite'}?immutable=1", uri=True
    )  # all that is on the disk
    assert without_log.execute("SELECT requests FROM budgets").fetchall() == [(1,)]
    without_log.close()


def test_in_redis_what_was_never_settled_stays_spent_and_nobody_waits_for_it_without_a_lease(redis_server):
    dead, alive = (RedisSpending(RedisServer(redis_server.address)) for _ in range(2))
    dead.reserve("a", Budget(requests=1), TEN_CENTS)
    assert alive.reserve("a", Budget(requests=1), TEN_CENTS) == ("1 requests (spent: 1)", True)
    redis_server.end_leases()
    assert alive.reserve("a", Budget(requests=1), TEN_CENTS) == ("1 requests (spent: 1)", False)
    assert alive.amount("a") == TEN_CENTS
    dead.renew()  # it was not dead
    assert alive.reserve("a", Budget(requests=1), TEN_CENTS) == ("1 requests (spent: 1)", True)
    dead.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
    assert alive.amount("a") == TEN_CENTS
    dead.flush()
    assert alive.amount("a") == (1, 5, 0.01)


def test_in_redis_a_command_that_is_sent_twice_counts_once(redis_server, monkeypatch):
    server = RedisServer(redis_server.address)
    spending, once = RedisSpending(server), server.run
    monkeypatch.setattr(server, "run", lambda command: (once(command), once(command))[1])
    spending.reserve("a", Budget(), TEN_CENTS)
    spending.reserve("a", Budget(), TEN_CENTS)
    assert spending.amount("a") == (2, 200, 0.2)
    spending.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
    assert spending.amount("a") == (2, 105, 0.11)


@pytest.mark.parametrize("is_done", [False, True], ids=["before it is done", "after it is done"])
def test_in_redis_what_was_settled_is_recorded_once_the_server_is_back(redis_server, monkeypatch, is_done):
    server = RedisServer(redis_server.address)
    spending = RedisSpending(server)
    for _ in range(2):
        spending.reserve("a", Budget(), TEN_CENTS)
    run = server.run

    def fail(command):
        if is_done:
            run(command)
        raise StoreError("away")

    for call in (spending.flush, lambda: spending.reserve("a", Budget(requests=0), TEN_CENTS)):
        spending.settle("a", TEN_CENTS, Amount(1, 5, 0.01))
        monkeypatch.setattr(server, "run", fail)
        with pytest.raises(StoreError, match="away"):
            call()
    monkeypatch.setattr(server, "run", run)
    spending.flush()
    assert RedisSpending(RedisServer(redis_server.address)).amount("a") == (2, 10, 0.02)


def test_a_budget_that_redis_has_forgotten_stops_who_spends_it(redis_server):
    spending = RedisSpending(RedisServer(redis_server.address))
    spending.reserve("a", Budget(requests=9), TEN_CENTS)
    redis_server.client.flushall()
    with pytest.raises(StoreError, match="Redis has forgotten what was spent: it was emptied, or"):
        spending.reserve("a", Budget(requests=9), TEN_CENTS)
    spending.settle("a", TEN_CENTS, Amount())
    assert spending.amount("a") == Amount()
    again = RedisSpending(RedisServer(redis_server.address))
    assert again.reserve("a", Budget(requests=9), TEN_CENTS) is None


def test_what_was_never_settled_stays_spent_and_nobody_waits_for_it_without_a_lease(tmp_path, monkeypatch):
    path = tmp_path / "budgets.sqlite"
    dead = SQLiteSpending(path)
    monkeypatch.setattr("judgekit.judges.limits.spending.RESERVATION_LEASE_SECONDS", 0.0)
    dead.reserve("a", Budget(requests=1), TEN_CENTS)
    alive = SQLiteSpending(path)
    assert alive.amount("a") == TEN_CENTS
    assert alive.reserve("a", Budget(requests=1), TEN_CENTS) == ("1 requests (spent: 1)", False)
    monkeypatch.undo()
    dead.renew()  # it was not dead
    assert alive.reserve("a", Budget(requests=1), TEN_CENTS) == ("1 requests (spent: 1)", True)


def test_a_reset_budget_begins_again(spending):
    spending.reserve("a", Budget(), TEN_CENTS)
    spending.reserve("b", Budget(), TEN_CENTS)
    spending.reset("a")
    spending.settle("a", TEN_CENTS, Amount(1, 5, 0.01))  # it was under way
    assert spending.by_budget() == {"a": (0, 0, 0.0), "b": TEN_CENTS}


def test_threads_cannot_come_between_the_look_at_a_limit_and_the_count(spending):
    with ThreadPoolExecutor(4) as threads:
        refused = list(threads.map(lambda _: spending.reserve("a", Budget(requests=10), TEN_CENTS), range(40)))
    assert refused.count(None) == spending.amount("a").requests == 10


amounts = st.builds(Amount, st.integers(0, 3), st.integers(0, 1000), st.integers(0, 10**6).map(lambda n: n / 10**6))


@given(st.lists(st.tuples(amounts, amounts)))
def test_the_sum_of_what_was_taken_is_what_is_spent(made):
    spending = SQLiteSpending()
    for share, _ in made:
        assert spending.reserve("a", Budget(), share) is None
    for share, taken in made:
        spending.settle("a", share, taken)
    requests, tokens, usd = spending.amount("a")
    assert (requests, tokens) == (sum(taken.requests for _, taken in made), sum(taken.tokens for _, taken in made))
    assert usd == pytest.approx(sum(taken.usd for _, taken in made), abs=1e-9)


def damaged(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def of_others(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (x)")
    db.close()


def newer(path: Path) -> None:
    SQLiteSpending(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9")
    db.close()


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (damaged, "cannot be used: "),
        (of_others, "belongs to another program"),
        (newer, "a newer judgekit"),
        (Path.mkdir, "open"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_and_left_alone(tmp_path, spoil, found):
    path = tmp_path / "budgets.sqlite"
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=found):
        SQLiteSpending(path)
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda client: client.hset("jk1:b:b", "tokens", "1e30"),
        lambda client: client.hset("jk1:b:b", "requests", "x"),
        lambda client: client.delete("jk1:b:b") and client.rpush("jk1:b:b", "x"),
        lambda client: client.sadd("jk1:budgets", b"\xff"),
    ],
)
def test_a_budget_in_redis_that_is_damaged_is_skipped_and_named_and_stops_what_uses_it(redis_server, caplog, spoil):
    spending = RedisSpending(RedisServer(redis_server.address))
    spending.reserve("a", Budget(), TEN_CENTS)
    spending.reserve("b", Budget(), TEN_CENTS)
    spoil(redis_server.client)
    shown = spending.by_budget()
    assert shown["a"] == TEN_CENTS
    assert (shown.keys() == {"a", "b"}) == ("\\xff" in caplog.text)
    assert "skipped a budget whose spending is no number, or whose name no text; delete the key 'jk1:b:" in caplog.text
    if "b" not in shown:
        with pytest.raises(StoreError):
            spending.reserve("b", Budget(tokens=150), TEN_CENTS)
        with pytest.raises(StoreError):
            spending.amount("b")
        spending.reset("b")
        assert spending.amount("b") == (0, 0, 0)
