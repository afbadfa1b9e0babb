"""How many requests go at once: found out while they go."""

import heapq
import random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.judges.limits.concurrency import ConcurrencyLimit


def send(concurrency, requests=None):
    """Sends as many as may go at once, or fewer, and returns when each was sent."""
    return [concurrency.acquire() for _ in range(int(concurrency.limit) if requests is None else requests)]


def good_round(concurrency, requests=None):
    """As many good replies as there are places; of a few requests at a time, if so asked."""
    for _ in range(int(concurrency.limit) // (requests or int(concurrency.limit))):
        for sent in send(concurrency, requests):
            concurrency.release()
            concurrency.succeeded(sent)


def bad_round(concurrency):
    """A rate limit for all that are under way."""
    for sent in send(concurrency):
        concurrency.release()
        concurrency.rate_limited(sent)


def test_it_starts_with_all_that_is_allowed():
    concurrency = ConcurrencyLimit(200)
    for _ in range(3):
        assert concurrency.limit == concurrency.free == 200
        good_round(concurrency)
    concurrency.maximum = 300
    assert concurrency.limit == 300


def test_rate_limits_halve_it_until_a_round_succeeds_and_then_it_grows_by_a_twentieth_a_round():
    concurrency = ConcurrencyLimit(256)
    for limit in (128, 64):
        bad_round(concurrency)
        assert concurrency.limit == limit
    good_round(concurrency)
    assert concurrency.limit == pytest.approx(64 * 1.05)
    good_round(concurrency)
    assert concurrency.limit == pytest.approx(64 * 1.05 * 1.05)
    bad_round(concurrency)
    assert concurrency.limit == pytest.approx(64 * 1.05 * 1.05 * 0.8)


def test_what_was_sent_before_a_cut_does_not_make_it_grow():
    concurrency = ConcurrencyLimit(100)
    first, *others = send(concurrency)
    concurrency.rate_limited(first)
    concurrency.release()
    concurrency.acquire()
    for sent in others:
        concurrency.succeeded(sent)
    assert concurrency.limit == 50


def test_it_never_falls_below_one():
    concurrency = ConcurrencyLimit(100)
    for _ in range(50):
        bad_round(concurrency)
    assert concurrency.limit == 1
    assert concurrency.free


def test_it_grows_again_from_one_and_a_round_is_four_good_replies_at_least():
    concurrency = ConcurrencyLimit(100)
    for _ in range(50):
        bad_round(concurrency)
    for _ in range(4 * 15 - 1):
        good_round(concurrency)
    assert int(concurrency.limit) == 1
    good_round(concurrency)  # 1.05 ** 15 is 2.08
    assert int(concurrency.limit) == 2


@pytest.mark.parametrize(("at_once", "grows"), [(6, False), (7, True)])
def test_it_grows_only_if_four_fifths_of_it_were_used(at_once, grows):
    concurrency = ConcurrencyLimit(16)
    bad_round(concurrency)
    for _ in range(8):
        good_round(concurrency, at_once)
    assert (concurrency.limit > 8) == grows


def test_use_in_one_round_is_no_reason_to_grow_in_the_next():
    concurrency = ConcurrencyLimit(8)
    bad_round(concurrency)
    good_round(concurrency)
    assert concurrency.limit == pytest.approx(4 * 1.05)
    for _ in range(10):
        good_round(concurrency, 2)
    assert concurrency.limit == pytest.approx(4 * 1.05)


class Server:
    """A provider that bears so many requests at once; time is simulated. More are refused, a little later."""

    def __init__(self, bears, most, seed):
        self.apply_limits, self.under_way, self.now, self.done, self.refused = bears, 0, 0.0, 0, 0
        self.random = random.Random(seed)  # noqa: S311 - a simulation
        self.concurrency = ConcurrencyLimit(most)
        self.events = []

    def serve(self, requests):
        """Answers so many, from clients that always have another one to send. Returns the limits on the way."""
        limits = []
        while self.done < requests:
            while self.concurrency.free:
                self._take()
            self._answer()
            limits.append(int(self.concurrency.limit))
        return limits

    def _take(self):
        refused = self.under_way == self.apply_limits
        self.under_way += not refused
        seconds = 0.05 if refused else self.random.uniform(0.5, 2)
        heapq.heappush(self.events, (self.now + seconds, self.concurrency.acquire(), refused))

    def _answer(self):
        self.now, sent, refused = heapq.heappop(self.events)
        self.concurrency.release()
        if refused:
            self.refused += 1
            self.concurrency.rate_limited(sent)
        else:
            self.under_way -= 1
            self.done += 1
            self.concurrency.succeeded(sent)


@pytest.mark.parametrize("bears", [1, 3, 10, 40, 150])
def test_it_settles_near_what_a_provider_bears(bears):
    server = Server(bears, most=200, seed=bears)
    server.serve(20 * bears + 200)  # finds its way
    server.refused, server.done = 0, 0
    limits = server.serve(100 * bears)
    assert 0.8 * bears <= mean(limits) <= max(1.1 * bears, bears + 1)
    assert server.refused < 0.1 * server.done + 10


def test_a_provider_that_bears_all_is_used_in_full_and_never_beyond_the_most():
    server = Server(1_000, most=200, seed=0)
    assert set(server.serve(1_000)) == {200}
    assert server.refused == 0


@given(
    most=st.integers(1, 100),
    steps=st.lists(st.tuples(st.sampled_from(["send", "succeed", "limit", "fail"]), st.integers(0, 99)), max_size=200),
)
def test_whatever_happens_it_stays_between_one_and_the_most(most, steps):
    concurrency, under_way = ConcurrencyLimit(most), []
    for step, which in steps:
        if step == "send":
            if concurrency.free:
                under_way.append(concurrency.acquire())
        elif under_way:
            sent = under_way.pop(which % len(under_way))
            concurrency.release()
            if step == "succeed":
                concurrency.succeeded(sent)
            elif step == "limit":
                concurrency.rate_limited(sent)
        assert 1 <= concurrency.limit <= most
        assert concurrency.in_flight == len(under_way) <= most
