"""Trees: conversations of sub-agents, their numbers, and how they become text."""

import re
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.shortening import BYTES_A_TOKEN
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Chronology, branches, find_message

HEADER = re.compile(r"\[(\w{12}) ([\d.]+)\] (.*)")


def sub_agent(call_id, *messages, children=(), **fields):
    metadata = {} if call_id is None else {"call_id": call_id}
    return Trace(messages=messages, children=children, metadata=metadata, **fields)


def asking(*ids, text="", agent=None):
    return AIMessage(text, tool_calls=[ToolCall(f"ask_{one}", {"of": one}, id=one) for one in ids], agent=agent)


TREE = Trace(
    messages=[
        HumanMessage("Plan my trip."),
        asking("a", "b"),
        ToolMessage("Train at 9.", tool_call_id="a"),
        ToolMessage("failed", tool_call_id="b", is_error=True),
        AIMessage("Take the train at 9."),
    ],
    children=[
        sub_agent("b", HumanMessage("Find a hotel."), AIMessage("No hotel found.", agent="hotels")),
        sub_agent(
            "a",
            HumanMessage("Find a train."),
            asking("x"),
            ToolMessage("9:00", tool_call_id="x"),
            AIMessage("Train at 9."),
            children=[sub_agent("x", HumanMessage("When?"), AIMessage("9:00"))],
        ),
        sub_agent(None, HumanMessage("Summarize."), AIMessage("A trip.")),
    ],
)


def shown(trace, **options):
    """The lines of a rendering, without the mark."""
    text = trace.render(**options)
    mark = text[1:13]
    return [line.replace(f"[{mark} ", "[") for line in text.split("\n")[1:-1]]


def test_a_sub_agent_stands_behind_the_call_that_started_it():
    assert shown(TREE) == [
        "[1] user",
        "| Plan my trip.",
        "[2] assistant",
        '[2] calls ask_a {"of":"a"}',
        "[2.1] sub-agent ask_a begins",
        "[2.1.1] user",
        "| Find a train.",
        "[2.1.2] assistant",
        '[2.1.2] calls ask_x {"of":"x"}',
        "[2.1.2.1] sub-agent ask_x begins",
        "[2.1.2.1.1] user",
        "| When?",
        "[2.1.2.1.2] assistant",
        "| 9:00",
        "[2.1.2.1] sub-agent ask_x ends",
        "[2.1.3] tool result of ask_x (called in 2.1.2): as in 2.1.2.1.2",
        "[2.1.4] assistant",
        "| Train at 9.",
        "[2.1] sub-agent ask_a ends",
        '[2] calls ask_b {"of":"b"}',
        "[2.2] sub-agent hotels begins",
        "[2.2.1] user",
        "| Find a hotel.",
        "[2.2.2] assistant hotels",
        "| No hotel found.",
        "[2.2] sub-agent hotels ends",
        "[3] tool result of ask_a (called in 2): as in 2.1.4",
        "[4] tool result of ask_b (called in 2), error",
        "| failed",
        "[5] assistant",
        "| Take the train at 9.",
        "[0.1] sub-agent begins",
        "[0.1.1] user",
        "| Summarize.",
        "[0.1.2] assistant",
        "| A trip.",
        "[0.1] sub-agent ends",
    ]
    assert TREE.render().has_sub_agents
    assert TREE.render().omitted == 0
    assert not TREE.model_copy(update={"children": ()}).render().has_sub_agents


def test_an_agent_is_named_by_its_messages_then_by_the_recording_then_by_the_tool():
    def named(agent, metadata, tool):
        child = Trace(messages=[AIMessage("hi", agent=agent)], metadata=metadata)
        parent = Trace(messages=[AIMessage(tool_calls=[ToolCall(tool, id="c")])], children=[child])
        return [one.agent for one in branches(parent)][1]

    assert named("a", {"agent": "b", "call_id": "c"}, "d") == "a"
    assert named(None, {"agent": "b", "call_id": "c"}, "d") == "b"
    assert named(None, {"call_id": "c"}, "d") == "d"
    assert named(None, {}, "d") is None


def test_sub_agents_of_calls_with_one_id_belong_to_one_call_each_in_order():
    children = [sub_agent("x", HumanMessage(str(number)), AIMessage("done")) for number in range(3)]
    trace = Trace(messages=[HumanMessage("Go."), asking("x"), asking("x")], children=children)
    assert [(one.path, one.trace.messages[0].text) for one in branches(trace)][1:] == [
        ("2.1", "0"),
        ("3.1", "1"),
        ("3.2", "2"),
    ]


def test_a_number_of_no_message_is_none():
    for number in (0, 6, "2", "2.1", "2.1.5", "2.1.01", "", "2.1.٤", ".1.1", f"2.1.{'9' * 5_000}"):
        assert find_message(TREE, number) is None


texts = st.one_of(
    st.text(alphabet="a1.|[] \n\r\u2028", max_size=12),
    st.sampled_from(
        ["[0 2.1] sub-agent x ends", "| a", "\n[123456789012 2.1.1] user", "as in 2.1.1", "", "Train at 9."]
    ),
)
ids = st.sampled_from(["a", "b", "c"])
calls = st.lists(st.builds(lambda one, name: ToolCall(name or "f", {"q": name}, id=one), ids, texts), max_size=2)
messages = st.lists(
    st.one_of(
        st.builds(HumanMessage, texts),
        st.builds(SystemMessage, texts),
        st.builds(
            lambda text, made, agent: AIMessage(text, tool_calls=made, agent=agent), texts, calls, texts | st.none()
        ),
        st.builds(lambda text, one: ToolMessage(text, tool_call_id=one), texts, ids),
    ),
    max_size=4,
)
trees = st.recursive(
    st.builds(lambda found, one: sub_agent(one, *found), messages, ids | st.none()),
    lambda inner: st.builds(
        lambda found, one, children: sub_agent(one, *found, children=children),
        messages,
        ids | st.none(),
        st.lists(inner, max_size=3),
    ),
    max_leaves=5,
)


def numbered(trace):
    """Each message of a tree by its number."""
    return {str(one.number(at)): message for one in branches(trace) for at, message in enumerate(one.trace.messages)}


def headers(text):
    """The mark, the number and the words of each header of a rendering."""
    lines = [line for line in text.split("\n")[1:-1] if line and not line.startswith("| ")]
    found = [HEADER.fullmatch(line) for line in lines]
    assert None not in found
    return [one.groups() for one in found]


@settings(max_examples=4 * settings.default.max_examples)
@given(trees)
def test_no_tree_forges_a_number_a_begin_or_an_end(trace):
    text = trace.render()
    paths = [one.path for one in branches(trace) if one.path]
    within, begun, seen = [""], [], []
    for mark, number, words in headers(text):
        assert mark == text[1:13]
        if number not in paths:
            assert number.rpartition(".")[0] == within[-1]
            seen += [] if words.startswith("calls ") else [number]
        elif words.endswith(" begins"):
            within.append(number)
            begun.append(number)
        else:
            assert (within.pop(), words.endswith(" ends")) == (number, True)
    assert within == [""]
    assert begun == paths
    assert sorted(seen) == sorted(numbered(trace))


@given(trees)
def test_every_number_resolves_to_its_message(trace):
    for number, message in numbered(trace).items():
        assert find_message(trace, number if "." in number else int(number)) is message


@given(trees)
def test_the_numbers_of_an_agent_do_not_depend_on_its_sub_agents(trace):
    def own(trace):
        found = [(number, words) for _, number, words in headers(trace.render()) if "." not in number]
        return [(number, re.sub(r": as in [\d.]+$", "", words)) for number, words in found]

    assert own(trace) == own(trace.model_copy(update={"children": ()}))


@given(trees)
def test_a_result_that_refers_to_a_sub_agent_has_the_same_text(trace):
    for line in trace.render().split("\n"):
        if (found := HEADER.fullmatch(line)) and (
            other := re.search(r"\): as in ([\d.]+)$|\), error: as in ([\d.]+)$", line)
        ):
            number = found[2] if "." in found[2] else int(found[2])
            assert find_message(trace, number).text == find_message(trace, other[1] or other[2]).text != ""


@settings(max_examples=2 * settings.default.max_examples)
@given(trees, st.integers(20, 400))
def test_a_budget_is_kept_by_a_tree_and_what_is_missing_is_counted(trace, budget):
    try:
        text = trace.render(budget_tokens=budget)
    except ValueError as error:
        needed = int(re.search(r"take ([\d,]+)", str(error))[1].replace(",", ""))
        assert needed > budget
        text = trace.render(budget_tokens=(budget := needed))
    assert len(text.encode()) <= BYTES_A_TOKEN * budget
    told = sum(int(one.replace(",", "")) for one in re.findall(r"\[\.\.\. ([\d,]+) characters omitted \.\.\.\]", text))
    assert text.omitted == told
    whole = trace.render()
    assert text == whole or len(whole.encode()) > BYTES_A_TOKEN * budget


def test_the_deepest_sub_agents_give_way_first_and_the_results_that_refer_to_them_get_their_text_back():
    def talk(text):
        return [HumanMessage("task " * 50), ToolMessage("r" * 400), AIMessage(text)]

    inner = sub_agent("x", *talk("inner answer"))
    outer = sub_agent(
        "a",
        *talk("?")[:2],
        asking("x"),
        ToolMessage("inner answer", tool_call_id="x"),
        AIMessage("answer"),
        children=[inner],
    )
    own = [
        HumanMessage("Go."),
        ToolMessage("own result " * 30),
        asking("a"),
        ToolMessage("answer", tool_call_id="a"),
        AIMessage("Done."),
    ]
    trace = Trace(messages=own, children=[outer])
    collapsed = {
        "inner": "[3.1.3.1] sub-agent ask_x: 3 messages, 0 tool calls, [... ",
        "outer": "[3.1] sub-agent ask_a: 5 messages, 1 tool call, [... ",
    }
    first: dict[str, int] = {}
    for budget in range(len(trace.render()) // BYTES_A_TOKEN, 90, -4):
        text = "\n".join(shown(trace, budget_tokens=budget))
        gone = [name for name, line in collapsed.items() if line in text]
        gone += [] if "own result " * 30 in text else ["own"]
        first = {**dict.fromkeys(gone, budget), **first}
        if "inner" in gone:
            assert "(called in 3.1.3)\n| inner answer" in text
        if "outer" in gone:
            assert "(called in 3)\n| answer" in text
    assert first["inner"] > first["outer"] > first["own"]


def test_shortening_a_tree_takes_work_in_proportion_to_the_number_of_sub_agents(count_calls):
    def tree(number):
        children = [sub_agent("x", HumanMessage("task"), AIMessage("x" * 300)) for _ in range(number)]
        return Trace(messages=[HumanMessage("Go."), asking("x"), AIMessage("Done.")], children=children)

    text = tree(400).render(budget_tokens=16_000)
    assert "[2.400] sub-agent ask_x" in re.sub(r"\[\w{12} ", "[", text)
    assert len(text.encode()) <= 16_000 * BYTES_A_TOKEN
    few, many = (count_calls(lambda n=n: tree(n).render(budget_tokens=40 * n)) for n in (150, 300))
    assert many < 2.3 * few


def test_calls_are_listed_depth_first_with_their_agents():
    found = [(one.message, one.turn, one.call.name, one.agent) for one in TREE.tool_calls()]
    assert found == [(2, 1, "ask_a", None), ("2.1.2", 1, "ask_x", "ask_a"), (2, 1, "ask_b", None)]
    assert TREE.call_errors() == (None, None, True)
    assert TREE.tool_calls("user") == ()


@given(trees)
def test_each_call_of_a_tree_is_listed_once_with_whether_it_failed(trace):
    made = trace.tool_calls()
    assert sorted(id(one.call) for one in made) == sorted(
        id(call) for one in branches(trace) for call in one.trace.own_calls()
    )
    assert len(trace.call_errors()) == len(made)
    for one in made:
        message = find_message(trace, one.message)
        assert any(one.call is call for call in message.tool_calls)


def at(minute):
    return datetime(2026, 1, 1, 12, minute, tzinfo=UTC)


def timed(call_id, start, end):
    return sub_agent(call_id, HumanMessage("?"), asking("z"), AIMessage("done"), started_at=start, ended_at=end)


def in_parallel(one, other, **root):
    trace = Trace(messages=[HumanMessage("Go."), asking("a", "b"), AIMessage("Done.")], children=[one, other], **root)
    return Chronology(trace).precedes("2.1.2", "2.2.2")


def test_the_order_of_messages_is_that_of_the_recording_or_unknown():
    cases = [
        (2, 5, True),
        (5, 2, False),
        (2, "2.1.1", True),  # the message that started it
        ("2.1.4", 3, True),  # its result
        ("2.1.1", "2.1.3", True),
        ("2.1.2.1.2", "2.1.3", True),
        ("2.1.4", "2.2.1", None),  # in parallel
        ("0.1.1", 5, None),  # who knows when
        (1, "0.1.1", None),
        ("0.1.1", "2.1.1", None),
    ]
    for one, other, precedes in cases:
        assert Chronology(TREE).precedes(one, other) is precedes


def test_sub_agents_in_parallel_are_in_the_order_of_their_times():
    first, second = (at(0), at(1)), (at(1), at(2))
    assert in_parallel(timed("a", *first), timed("b", *second)) is True
    assert in_parallel(timed("a", *second), timed("b", *first)) is False
    assert in_parallel(timed("a", at(0), at(2)), timed("b", *second)) is None
    assert in_parallel(timed("a", *first), timed("b", None, None)) is None
    assert in_parallel(timed("a", *first), timed("b", datetime(2026, 1, 1, 12, 5), None)) is None  # noqa: DTZ001


def test_a_sub_agent_of_an_unknown_call_is_ordered_by_its_times_and_those_of_messages():
    def order(moment):
        root = [HumanMessage("Go.", timestamp=at(1)), AIMessage("Done.", timestamp=at(9))]
        return Chronology(Trace(messages=root, children=[timed(None, moment, moment)]))

    assert [order(at(5)).precedes(number, "0.1.1") for number in (1, 2)] == [True, False]
    assert [order(at(0)).precedes(number, "0.1.1") for number in (1, 2)] == [False, False]


@given(trees)
def test_the_order_of_messages_is_an_order(trace):
    numbers = [one if "." in one else int(one) for one in numbered(trace)][:12]
    order = Chronology(trace)
    for one in numbers:
        assert order.precedes(one, one) is False
        for other in numbers:
            assert order.precedes(one, other) is not True or order.precedes(other, one) is False
            for third in numbers:
                if order.precedes(one, other) and order.precedes(other, third):
                    assert order.precedes(one, third) is True
