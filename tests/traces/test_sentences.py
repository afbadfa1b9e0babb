"""Sentences of the agent, each with its place in its message."""
# ruff: noqa: RUF001 - marks of many scripts are what is tested

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.traces.message import AIMessage, HumanMessage, ReasoningPart, RefusalPart, TextPart, ToolCall, ToolMessage
from judgekit.traces.sentences import Sentence, agent_sentences, sentence_spans
from judgekit.traces.trace import Trace


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n\t\n", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("What?! Yes... Or no.", ["What?!", "Yes...", "Or no."]),
        ('He said "Yes." Then he left. (Really.) **Done.** _So._ End', None),
        ("It costs $3.50, or 1.000,50 EUR in v1.2.3.", ["It costs $3.50, or 1.000,50 EUR in v1.2.3."]),
        ("See https://x.org/a.b?c=1. Or mail a.b@x.org!", ["See https://x.org/a.b?c=1.", "Or mail a.b@x.org!"]),
        (
            "Dr. J. Smith, e.g. Paris, is No. 5. No. I can't.",
            ["Dr. J. Smith, e.g. Paris, is No. 5.", "No.", "I can't."],
        ),
        ("Go at 5 p.m. or 6. it is open.", ["Go at 5 p.m. or 6. it is open."]),
        ("A wrapped\nline goes on.\nAnother\nLine", ["A wrapped\nline goes on.", "Another", "Line"]),
        ("Flights:\neconomy\n\nlower", ["Flights:", "economy", "lower"]),
        ("para\r\ngraph\r\n\r\nNext\u2028Last", ["para\r\ngraph", "Next", "Last"]),
        ("你好。价格是3.5元!好的。“是吗？”他说。", ["你好。", "价格是3.5元!好的。", "“是吗？”", "他说。"]),
        ("はい。「そう！」次", ["はい。", "「そう！」", "次"]),
        ("मैं हूँ। तुम हो। هل؟ نعم۔", ["मैं हूँ।", "तुम हो।", "هل؟", "نعم۔"]),
        ("Здравствуйте. Цена 5,50 руб. Да?", ["Здравствуйте.", "Цена 5,50 руб.", "Да?"]),
        ("👍", ["👍"]),
        ("Done! 🎉\n---\n***\nNext", ["Done! 🎉\n---\n***", "Next"]),
        ("---\nFirst", ["---\nFirst"]),
    ],
)
def test_texts_are_cut_where_a_sentence_ends(text, sentences):
    expected = ['He said "Yes."', "Then he left.", "(Really.)", "**Done.**", "_So._", "End"]
    assert cut(text) == (expected if sentences is None else sentences)


def test_items_of_lists_are_single_and_their_markers_are_no_sentences():
    text = "Here:\n1. First.\n2) Second. It is red.\n- third\n  goes on\n* fourth\n(5) fifth\na. sixth\n1.\nSeventh\n# Title\n> quoted"
    assert cut(text) == [
        *("Here:", "1. First.", "2) Second.", "It is red.", "- third\n  goes on", "* fourth", "(5) fifth", "a. sixth"),
        *("1.\nSeventh", "# Title", "> quoted"),
    ]


def test_a_table_and_a_block_of_code_are_one_each():
    table, code = "| a | b. C |\n|---|---|\n| 1 | 2 |", "```py\nx = 1. Foo\n\ny | z\n```"
    assert cut(f"Look:\n{table}\nAnd\n{code}\nDone. Bye") == ["Look:", table, "And", code, "Done.", "Bye"]
    assert cut("a | b\n--- | ---\n1 | 2") == ["a | b\n--- | ---\n1 | 2"]
    assert cut("Yes | no. Or so.") == ["Yes | no.", "Or so."]
    assert cut("~~~\nunclosed. Yes\nno") == ["~~~\nunclosed. Yes\nno"]


BREAKS = [". ", "! ", "?", "。", "…", "\n", "\n\n", "\r\n", " ", "|", "\n|", "```", "\n```\n", "- ", "\n1. ", "\n# "]
WORDS = ["Word", "word", "e.g. ", "No. 5", "3.50", "价格", *"\u2028\x85\u00a0_*🎉\ud800", '."', "---"]
PIECES = st.sampled_from([*BREAKS, *WORDS])


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_every_character_but_white_space_is_in_exactly_one_sentence(text):
    spans = sentence_spans(text)
    inside = [index for start, end in spans for index in range(start, end)]
    assert len(inside) == len({*inside})
    assert spans == sorted(spans)
    assert {index for index, char in enumerate(text) if not char.isspace()} <= {*inside}
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)


def test_a_long_text_is_cut_in_linear_time():
    for piece in ("!\n", "a. ", "1. ", "| ", "|\n", "`", "- ", "*", "e.g."):
        assert sentence_spans(piece * 20_000)[-1][1] == len((piece * 20_000).rstrip())


def test_those_of_sub_agents_stand_behind_the_message_that_started_them():
    child = Trace(messages=[HumanMessage("Ask. Now."), AIMessage("Sub. Agent.")], metadata={"call_id": "a"})
    trace = Trace(
        messages=[
            HumanMessage("Hi. You."),
            AIMessage("Let me see.", tool_calls=[ToolCall("ask", id="a")]),
            ToolMessage("It. Is.", tool_call_id="a"),
            AIMessage([ReasoningPart("Hm. So."), TextPart("One. "), RefusalPart("Two.")]),
        ],
        children=[child],
    )
    assert agent_sentences(trace) == [
        Sentence(2, 0, 11, "Let me see."),
        Sentence("2.1.2", 0, 4, "Sub."),
        Sentence("2.1.2", 5, 11, "Agent."),
        Sentence(4, 0, 4, "One."),
        Sentence(4, 6, 10, "Two."),
    ]
    assert trace.messages[3].text[6:10] == "Two."
