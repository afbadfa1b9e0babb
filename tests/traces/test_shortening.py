"""How a conversation is made to fit a budget."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.traces.message import AIMessage, HumanMessage, OtherPart, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.rendering import message_passages
from judgekit.traces.shortening import BYTES_A_TOKEN
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Branch

OMISSION = r"\[\.\.\. ([\d,]+) characters omitted \.\.\.\]"
OURS = re.compile(r"^(\| |\[\w{12} \d+\] calls f (with arguments that cannot be read: )?|\[\w{12} .*)")
GAP = re.compile(rf"\[\w{{12}} (\d+)(?:-(\d+))?\] {OMISSION}")


def tokens(text):
    return len(text.encode()) / BYTES_A_TOKEN


def rendered(messages, budget_tokens=None):
    return Trace(messages=messages).render(budget_tokens=budget_tokens)


def blocks(text):
    """What a rendering shows of each message: its number, or the first and the last of a gap, and its lines."""
    found = {}
    for line in text.split("\n")[1:-1]:
        if gap := GAP.fullmatch(line):
            found[int(gap[1]), int(gap[2] or gap[1])] = line
        elif header := re.match(r"\[\w{12} (\d+)\] (.*)", line):
            number = int(header[1])
            found[number] = f"{found[number]}\n{header[2]}" if number in found else header[2]
        else:
            found[number] += f"\n{line}"
    return found


def length(cut):
    """Characters of what was said that are shown of a message."""
    return sum(len(line) - 2 for line in cut.split("\n") if line.startswith("| ") and not re.search(OMISSION, line))


ASKED, ANSWERED = "a" * 180, "b" * 240
MESSAGES = [
    SystemMessage("c" * 240),
    HumanMessage(ASKED),
    AIMessage("x" * 600, tool_calls=[ToolCall("search", {"query": "q" * 600})]),
    ToolMessage("r" * 3_000),
    ToolMessage("s" * 2_000),
    ToolMessage("t" * 300),
    AIMessage("y" * 250),
    HumanMessage(ASKED, tool_calls=[ToolCall("toggle", {"screen": "on"})]),
    ToolMessage("On.", requestor="user"),
    AIMessage("Well."),
    HumanMessage("z" * 700),
    AIMessage(ANSWERED),
]
WHOLE = rendered(MESSAGES)
KEPT = (1, 2, 8, 11, 12)
"""The messages of the user, the first and the last."""


@pytest.mark.parametrize("more", range(BYTES_A_TOKEN))
def test_what_fits_to_the_byte_is_not_touched(more):
    messages = [*MESSAGES, AIMessage("." * (1 + more))]
    whole = rendered(messages)
    exact = math.ceil(tokens(whole))
    assert (rendered(messages, exact), rendered(messages, exact).omitted) == (whole, 0)
    assert rendered(messages, exact - 1) != whole


def test_long_tool_results_are_cut_first_and_to_one_length():
    found, whole = blocks(rendered(MESSAGES, 1_500)), blocks(WHOLE)
    assert {number for number in whole if found[number] != whole[number]} == {4, 5}
    assert abs(length(found[4]) - length(found[5])) <= 2
    assert re.fullmatch(
        rf"tool result of search \(called in 3\)\n\| (r+)\n\| {OMISSION}\n\| (r+)", found[4], flags=re.DOTALL
    )


def test_then_what_else_was_said_and_called_in_the_middle():
    found, whole = blocks(rendered(MESSAGES, 950)), blocks(WHOLE)
    assert {number for number in whole if found[number] != whole[number]} == {3, 4, 5, 6}
    assert all(length(found[number]) < 200 for number in (4, 5, 6))
    assert re.fullmatch(rf'assistant\n\| x+\n\| {OMISSION}\n\| x+\ncalls search {{"query":"q+{OMISSION}q+"}}', found[3])


def test_then_whole_messages_go_from_the_middle_on_and_the_numbers_of_the_others_stay():
    found, whole = blocks(rendered(MESSAGES, 750)), blocks(WHOLE)
    assert [*found] == [1, 2, 3, 4, 5, (6, 7), *range(8, 13)]
    assert found[6, 7].endswith(" 6-7] [... 550 characters omitted ...]")
    assert all(found[number] == whole[number] for number in (*KEPT, 9, 10))


def test_a_message_stays_where_the_line_in_its_place_would_be_longer():
    messages = [HumanMessage("a"), AIMessage("x" * 99), HumanMessage("b"), AIMessage("Well."), HumanMessage("c" * 99)]
    found = blocks(rendered(messages, 80))
    assert [*found] == [1, (2, 2), 3, 4, 5]
    assert found[4] == "assistant\n| Well."
    assert "omitted" in found[5]


def test_what_was_left_out_before_a_message_goes_is_counted_with_it():
    part = OtherPart("o" * 498)
    shown = rendered([HumanMessage("a"), AIMessage([part]), ToolMessage("t" * 9_000), HumanMessage("c" * 99)], 70)
    [gap] = [one for number, one in blocks(shown).items() if number == (2, 3)]
    rest = len(
        message_passages(Branch(Trace(messages=[AIMessage([part])])), 0)[0].text
    )  # what of the part was shown, and how
    assert gap.endswith(f" [... {300 + rest + 9_000:,} characters omitted ...]")
    assert shown.omitted >= 300 + rest + 9_000


@pytest.mark.parametrize(("budget", "cut"), [(400, {11}), (350, {1, 11, 12}), (300, {1, 2, 8, 11, 12})])
def test_the_rest_is_cut_last_the_longest_first(budget, cut):
    found, whole = blocks(rendered(MESSAGES, budget)), blocks(WHOLE)
    assert [*found] == [1, 2, (3, 7), 8, (9, 10), 11, 12]
    assert {number for number in KEPT if found[number] != whole[number]} == cut
    lengths = [length(found[number]) for number in cut]
    assert max(lengths) - min(lengths) <= 2


def test_a_budget_without_room_for_the_headers_is_an_error_that_says_what_is_needed():
    with pytest.raises(ValueError, match=r"a budget of 20 tokens is too small .* of 12 messages: .* take \d+$") as info:
        rendered(MESSAGES, 20)
    needed = int(str(info.value).split()[-1])
    assert tokens(rendered(MESSAGES, needed)) <= needed
    with pytest.raises(ValueError, match=f"a budget of {needed - 1} tokens is too small"):
        rendered(MESSAGES, needed - 1)


def test_a_conversation_without_messages_fits_or_not():
    assert rendered([], 17) == rendered([])
    with pytest.raises(ValueError, match="too small"):
        rendered([], 16)


def test_a_budget_shows_no_more_of_a_result_than_its_limit():
    """All of it would take less room than two ends with the line between them."""
    trace = Trace(messages=[HumanMessage("a"), ToolMessage("é" * 101), HumanMessage("b")])
    shown = trace.render(tool_result_limit=100, budget_tokens=int(tokens(trace.render(tool_result_limit=100))) - 1)
    assert 90 < shown.count("é") < 100


def messages_of(texts):
    args = st.fixed_dictionaries({"a": texts}) | texts
    calls = st.lists(st.builds(ToolCall, name=st.just("f"), args=args), max_size=2)
    message = (
        st.builds(SystemMessage, texts)
        | st.builds(HumanMessage, texts, tool_calls=calls)
        | st.builds(AIMessage, texts, tool_calls=calls)
        | st.builds(ToolMessage, texts)
    )
    return st.lists(message, min_size=1, max_size=12)


def repeated(alphabet):
    return st.builds(str.__mul__, st.text(alphabet, max_size=20), st.integers(0, 40))


def within(messages, budget, limit):
    """A rendering within the budget, or within the smallest that is possible."""
    trace = Trace(messages=messages)
    try:
        return trace.render(budget_tokens=budget, tool_result_limit=limit), budget
    except ValueError as error:
        needed = int(str(error).split()[-1].replace(",", ""))
        assert needed > budget
        return trace.render(budget_tokens=needed, tool_result_limit=limit), needed


@settings(max_examples=2 * settings.default.max_examples)
@given(messages_of(repeated("aé😀\n\r\x85\u2028[| ")), st.integers(1, 1_500), st.integers(0, 200))
def test_a_budget_is_kept_and_the_same_every_time(messages, budget, limit):
    shown, budget = within(messages, budget, limit)
    again, _ = within(messages, budget, limit)
    assert tokens(shown) <= budget
    assert (shown, shown.omitted) == (again, again.omitted)
    whole = Trace(messages=messages).render(tool_result_limit=limit)
    assert tokens(whole) > budget or (shown, shown.omitted) == (whole, whole.omitted)


@settings(max_examples=2 * settings.default.max_examples)
@given(messages_of(repeated("aé😀[| ")), st.integers(1, 1_500), st.integers(0, 200))
def test_what_is_shown_and_what_is_left_out_is_all_and_the_marks_say_how_much(messages, budget, limit):
    shown, _ = within(messages, budget, limit)
    assert shown.omitted == sum(int(found.replace(",", "")) for found in re.findall(OMISSION, shown))
    said = [re.sub(OMISSION, "", OURS.sub("", line)) for line in shown.split("\n")]
    assert sum(map(len, said)) + shown.omitted == sum(
        len(one.text) for one in message_passages(Branch(Trace(messages=messages)), limit)
    )


@settings(max_examples=2 * settings.default.max_examples)
@given(messages_of(repeated("a\n")), st.integers(1, 500))
def test_what_is_kept_is_whole_as_long_as_anything_else_could_give_way(messages, budget):
    shown, _ = within(messages, budget, 8_000)
    found, whole = blocks(shown), blocks(rendered(messages))
    kept = {number for number, one in enumerate(messages, 1) if one.role == "user"} | {1, len(messages)}
    assert kept <= {*found}
    if any(found[number] != whole[number] for number in kept):
        assert all(len(found[one]) < 50 for one in found if not isinstance(one, tuple) and one not in kept)


def test_shortening_takes_work_in_proportion_to_the_number_of_messages(count_calls):
    messages = [
        one
        for number in range(50)
        for one in (
            HumanMessage("hello"),
            AIMessage("ok " * 30, tool_calls=[ToolCall("f", {"a": "x" * 50})]),
            ToolMessage("of text\n" * (4 * number)),
            AIMessage("fine " * (2 * number)),
        )
    ]
    whole = tokens(rendered(messages))
    for share in (0.5, 0.1):
        assert whole * share * 0.97 < tokens(rendered(messages, int(whole * share))) <= whole * share
        one, two = (
            count_calls(lambda some=some, share=share: rendered(some, int(tokens(rendered(some)) * share)))
            for some in (messages, [*messages, *messages])
        )
        assert two < 2.3 * one
