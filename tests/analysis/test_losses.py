"""Losses of tool scorers, held against tables made by hand and against counts of the details."""

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import ArgMatch, Sample, Score, ToolCall, ToolCallAccuracy, ToolCallF1, ToolCallMatch, compare, run
from judgekit.analysis.losses import losses, new_losses, run_losses
from judgekit.runs.rows import Row
from judgekit.stats.wilson import wilson
from judgekit.traces.message import AIMessage


def sample(made: list[ToolCall], expected: list[ToolCall], sample_id: str = "s", group: str | None = None) -> Sample:
    return Sample.of([AIMessage(sample_id, tool_calls=made)], reference_tool_calls=expected, id=sample_id, group=group)


def rows_of(pairs, scorer=None) -> list[Row]:
    scorer = scorer or ToolCallF1()
    samples = [sample(*pair, sample_id=f"s{number}") for number, pair in enumerate(pairs)]
    return [Row.of(number, one, asyncio.run(scorer.ascore(one))) for number, one in enumerate(samples)]


def pay(method: object) -> list[ToolCall]:
    return [ToolCall("pay", {"method": method, "n": 1})]


def test_losses_are_grouped_by_tool_argument_and_what_came_instead():
    pairs = [
        (pay("card"), pay("card")),
        (pay("gift"), pay("card")),
        (pay("gift"), pay("card")),
        (pay("gift"), pay("cash")),
        (pay("x"), pay("card")),
        (pay("y"), pay("card")),
        ([ToolCall("pay", {"n": 1})], pay("card")),
        ([*pay("card"), ToolCall("look"), ToolCall("look")], pay("card")),
        ([], [ToolCall("look")]),
        ([ToolCall("pay", {}, args_raw="{", args_error="cut off")], pay("card")),
    ]
    rows = rows_of(pairs)
    skipped = Row.of(99, sample([], []), Score.skipped("tool_call_f1", "nothing to compare"))
    found = losses([*rows, skipped, rows[1].model_copy(update={"score": Score.scored("other", 0)})])
    assert [str(loss) for loss in found] == [
        'pay: method got "gift" (3 of 10 samples)',
        'pay: method got something else each time, expected "card" (3 of 10 samples)',
        "extra tool: look (1 of 10 samples)",
        "missing tool: look (1 of 10 samples)",
        "unreadable arguments: pay (1 of 10 samples)",
    ]
    gift, others, extra, missing, _ = found
    assert [one.id for one in gift.samples] == ["s1", "s2", "s3"]
    assert [one.number for one in others.samples] == [4, 5, 6]
    assert [one.message for one in extra.samples + missing.samples] == [1, None]
    assert (gift.kind, gift.tool, gift.argument) == ("wrong_argument", "pay", "method")
    assert (gift.share.low, gift.share.high) == pytest.approx(wilson(3, 10)[:2])
    assert losses(reversed(rows)) == losses(rows)
    assert losses(rows[4:5])[0].came_instead == '"x"'


def test_what_a_scorer_allows_is_no_loss():
    look, extra = [ToolCall("look")], [ToolCall("look"), ToolCall("more")]
    pairs = [([*extra, *pay("gift")], [*look, *pay("card")]), (extra, [*look, ToolCall("late")])]
    assert [loss.text for loss in losses(rows_of(pairs, ToolCallMatch("contains")))] == [
        "missing tool: late",
        'pay: method got "gift", expected "card"',
    ]
    assert [loss.text for loss in losses(rows_of(pairs, ToolCallMatch("only_these")))] == [
        "extra tool: more",
        'pay: method got "gift", expected "card"',
    ]
    free = ToolCallF1(args=ArgMatch(ignore=["method"]))
    assert losses(rows_of([(pay("gift"), pay("card"))], free)) == []
    swapped = rows_of([([ToolCall("b"), ToolCall("a")], [ToolCall("a"), ToolCall("b")])], ToolCallAccuracy())
    assert [loss.kind for loss in losses(swapped)] == ["wrong_order"]


def test_elements_of_lists_are_one_argument():
    made, expected = ([ToolCall("book", {"seats": seats})] for seats in ([{"row": 1}, {"row": 1}], [{"row": 2}] * 2))
    [loss] = losses(rows_of([(made, expected)]))
    assert str(loss) == "book: seats[*].row got 1, expected 2 (1 of 1 sample)"


def test_trials_of_a_task_count_once_in_intervals():
    samples = [
        sample(pay("gift" if task < 3 else "card"), pay("card"), f"s{task}", f"t{task}") for task in range(6)
    ] * 4
    [loss] = run_losses(run(samples, [ToolCallF1()]))["tool_call_f1"]
    assert (len(loss.samples), loss.total) == (12, 24)
    assert "6 groups" in loss.share.method


def test_of_two_runs_those_count_that_only_the_worse_side_has():
    look = [ToolCall("look")]
    once, twice = ([*look * times, *pay("card")] for times in (1, 2))
    before = [(made, pay("card")) for made in [*[pay("card")] * 3, once, look, pay("gift")]]
    after = [(made, pay("card")) for made in [*[[*pay("gift"), *look]] * 3, twice, pay("card"), pay("gift")]]
    sides = ([sample(*pair, f"s{n}") for n, pair in enumerate(pairs)] for pairs in (before, after))
    compared = compare(*(run(samples, [ToolCallMatch("same_calls", name="match"), ToolCallF1()]) for samples in sides))
    assert [str(loss) for loss in compared.new_losses("tool_call_f1")] == [
        "extra tool: look (4 of 4 samples)",
        'pay: method got "gift", expected "card" (3 of 4 samples)',
    ]
    assert [str(loss) for loss in compared.gone_losses("tool_call_f1")] == [
        "extra tool: look (1 of 1 sample)",
        "missing tool: pay (1 of 1 sample)",
    ]
    assert [loss.total for loss in compared.new_losses("match")] == [3, 3]


@given(st.text(max_size=90), st.text(max_size=90), st.text(max_size=90))
def test_texts_are_bounded_and_told_apart(name, one, other):
    rows = rows_of([([ToolCall(name, {name: text * 40})], [ToolCall(name, {name: None})]) for text in (one, other)] * 2)
    found = losses(rows)
    assert sum(len(loss.samples) for loss in found) == 4
    assert len({str(loss) for loss in found}) == len(found)
    assert all(len(loss.text) < 300 for loss in found)


calls = st.lists(
    st.builds(
        ToolCall,
        st.sampled_from("fg"),
        st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, "1", [2, 3], [2]]), max_size=2),
    ),
    max_size=3,
)
scorers = st.sampled_from(
    [ToolCallF1(), ToolCallAccuracy(), ToolCallAccuracy(strict_order=False)]
    + [ToolCallMatch(name) for name in ("exact", "same_calls", "contains", "only_these", "no_detours")]
)


def counted(rows: list[Row]) -> Counter:
    """The samples of each kind, tool and argument, from the details."""
    found: Counter = Counter()
    for row in rows:
        details, parts = row.score.details, set()
        if row.score.value is None or row.score.value == 1:
            continue
        for pair in details["pairs"] + details["out_of_order"]:
            for one in pair.get("differences", ()):
                path = one["path"].removeprefix("args.")
                path = re.sub(r"\[\d\]", "[*]", path)
                parts.add(("wrong_argument", pair["name"], path, str(one.get("actual", "nothing"))))
        parts |= {("wrong_order", pair["name"]) for pair in details["out_of_order"]}
        parts |= {("missing_tool", call["name"]) for call in details["missing"] if details["fn"]}
        parts |= {("extra_tool", call["name"]) for call in details["extra"] if details["fp"]}
        assert parts, row.score  # each loss of value has a reason
        found.update({part[:3] for part in parts})
    return found


@given(st.lists(st.tuples(calls, calls), max_size=5), scorers)
def test_everything_that_went_wrong_is_in_exactly_one_group(pairs, scorer):
    rows = rows_of(pairs, scorer)
    in_groups: Counter = Counter()
    seen = set()
    for loss in losses(rows):
        key = (loss.kind, loss.tool) if loss.argument is None else (loss.kind, loss.tool, loss.argument)
        in_groups.update({(*key, one.number) for one in loss.samples})
        assert (key, loss.came_instead) not in seen
        seen.add((key, loss.came_instead))
    assert Counter(key[:-1] for key in in_groups) == counted(rows)
    assert losses(rows) == losses(iter(rows))
    assert new_losses((row, row) for row in rows) == []
    nothing = Score.scored(scorer.name, 1)
    assert [str(one) for one in new_losses((row.model_copy(update={"score": nothing}), row) for row in rows)] == [
        str(one) for one in losses(rows)
    ] or any(row.score.value is None for row in rows)


@pytest.mark.parametrize("domain", ["airline", "retail", "telecom"])
def test_losses_of_real_recordings_are_those_in_the_details(shared_data: Path, domain):
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    done = run(path, [ToolCallF1(), ToolCallAccuracy(), ToolCallMatch("contains")])
    for name, found in run_losses(done).items():
        rows = list(done.rows(scorer=name))
        parts = {
            (loss.kind, loss.tool, *([loss.argument] if loss.argument else []), one.number)
            for loss in found
            for one in loss.samples
        }
        assert Counter(part[:-1] for part in parts) == counted(rows)
        assert {one.number for loss in found for one in loss.samples} == {
            row.index for row in rows if row.score.value != 1
        }
