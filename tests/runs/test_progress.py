"""How far a run is."""

import io
import re
import threading
import time

import pytest
from rich.console import Console

from judgekit.runs import progress as module
from judgekit.runs.progress import Tally, progress
from judgekit.runs.rows import Row
from judgekit.score import JudgeCall, Score

COLORS = {str(code) for code in (*range(30, 50), *range(90, 108))}


def row(score: Score) -> Row:
    return Row(index=0, sample_id="a", score=score)


def call(**changes: object) -> JudgeCall:
    return JudgeCall.model_validate({"judge": "j", "prompt": "p", "cost_usd": 0.25, **changes})


SCORED = row(Score.scored("s", 1))
ASKED = row(Score.scored("s", 1, calls=[call(), call(cached=True, cost_usd=0.0)]))
UNPRICED = row(Score.scored("s", 1, calls=[call(cost_usd=None)]))
FAILED = row(Score.failed("s", "broken"))


def seen(out: io.StringIO) -> str:
    """What was written, without what moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())


def test_it_says_what_there_is_here_and_elsewhere_and_what_judges_took():
    cases = [
        (Tally(), [SCORED] * 3, "3 scores", ""),
        (Tally(4), [SCORED, FAILED], "2 of 4 scores", "1 failed"),
        (Tally(4, done=2, failed=1), [FAILED], "3 of 4 scores", "2 failed"),
        (Tally(1), [SCORED] * 2, "2 of 2 scores", ""),
        (Tally(9_000, worker_counts=lambda: (1_000, 10)), [FAILED], "1,001 of 9,000 scores", "11 failed"),
        (Tally(), [ASKED, ASKED], "2 scores", "2 from cache, $0.5000"),
        (Tally(in_flight=lambda: 0), [ASKED, UNPRICED], "2 scores", "1 from cache, 0 under way, cost unknown"),
        (Tally(in_flight=lambda: 16), [], "0 scores", "0 from cache, 16 under way, $0.0000"),
    ]
    for tally, rows, far, others in cases:
        for one in rows:
            tally.add(one)
        assert tally.status(0.0)[1:] == (far, others)


def test_how_long_it_takes_is_said_by_the_pace_of_the_last_minute():
    """Replies from a cache come first, and fast: 1,000 of them in a second, and then one score a second."""
    tally = Tally(2_000)
    tally.status(0)
    tally.done = 1_000
    assert tally.status(1)[1] == "1,000 of 2,000 scores, 0:00:01 left"
    for second in range(2, 100):
        tally.done += 1
        told = tally.status(second)[1]
    assert told == "1,098 of 2,000 scores, 0:15:02 left"


def test_with_workers_elsewhere_it_says_how_many_and_how_fast_they_are():
    made = [0]
    tally = Tally(9_000, worker_counts=lambda: (made[0], 10), workers=4)
    tally.status(0.0)
    made[0] = 1_000
    assert tally.status(2.0)[1:] == ("1,000 of 9,000 scores, 0:00:16 left", "4 workers, 500 scores/s, 10 failed")


def test_the_pace_is_that_of_what_was_made_meanwhile():
    for tally, before, after in (
        (Tally(1_000, done=900), "900 of 1,000 scores", "901 of 1,000 scores, 0:16:30 left"),  # 99, each in ten seconds
        (Tally(2, done=1), "1 of 2 scores", "2 of 2 scores"),
        (Tally(), "0 scores", "1 scores"),
    ):
        assert tally.status(0)[1] == before
        tally.add(SCORED)
        assert tally.status(10)[1] == after


@pytest.mark.parametrize("width", [60, 200])
def test_on_a_terminal_it_is_a_bar_whose_lines_fit(width, monkeypatch):
    monkeypatch.setattr(module.time, "monotonic", lambda: 10.0)
    tally = Tally(20_000_000, done=12_345_678, failed=1_000, cached=1_000_000, cost_usd=1234.5678, in_flight=lambda: 64)
    tally.status(0)
    tally.done += 1_000
    out = io.StringIO()
    with progress(tally, Console(file=out, force_terminal=True, width=width)):
        pass
    text = seen(out)
    assert re.search(r"^scoring ━.* 12,346,678 of 20,000,000 scores, 21:15:33 left$", text, re.MULTILINE)
    assert "1,000 failed, 1,000,000 from cache, 64 under way, $1234.5678" in text
    assert all(len(line.rstrip()) <= width for line in text.splitlines())


def test_a_bar_is_drawn_while_nothing_comes():
    drawn = threading.Event()

    def under_way() -> int:
        if threading.current_thread() is not threading.main_thread():
            drawn.set()
        return 1

    with progress(Tally(in_flight=under_way), Console(file=io.StringIO(), force_terminal=True, width=80)):
        assert drawn.wait(5)


@pytest.mark.parametrize(
    ("settings", "has_colors"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colors_are_off_where_nobody_wants_them(settings, has_colors):
    out = io.StringIO()
    on = Console(file=out, force_terminal=True, width=80, color_system="auto", _environ={"TERM": "xterm", **settings})
    with progress(Tally(10, done=5, failed=1), on):
        pass
    found = {code for codes in re.findall(r"\x1b\[([0-9;]*)m", out.getvalue()) for code in codes.split(";")}
    assert bool(found & COLORS) == has_colors


def test_elsewhere_it_is_now_and_then_a_line_and_one_in_the_end(monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LINES", 0.01)
    out, tally = io.StringIO(), Tally(3)
    with progress(tally, Console(file=out, width=140)):
        tally.add(FAILED)
        tally.add(ASKED)
        while "2 of 3" not in out.getvalue():
            time.sleep(0.001)
        tally.add(SCORED)
    lines = [re.sub(r", 0:00:\d\d left", "", line) for line in out.getvalue().splitlines()]
    assert "2 of 3 scores, 1 failed, 1 from cache, $0.2500 (0:00:00)" in lines
    assert lines[-1] == "3 of 3 scores, 1 failed, 1 from cache, $0.2500 (0:00:00)"


def test_what_is_soon_done_prints_no_line():
    out = io.StringIO()
    with progress(Tally(1), Console(file=out)) as _:
        pass
    assert out.getvalue() == ""


@pytest.mark.parametrize("is_terminal", [False, True])
def test_it_ends_with_the_run_however_that_ends(is_terminal):
    before = threading.active_count()
    with (
        pytest.raises(KeyboardInterrupt),
        progress(Tally(1), Console(file=io.StringIO(), force_terminal=is_terminal, width=80)),
    ):
        raise KeyboardInterrupt
    while threading.active_count() > before:  # rich lets its thread have a last look
        time.sleep(0.01)
