"""What a judge cites is looked up."""

import pytest
from pydantic import BaseModel

from judgekit.judges.answer import read_answer
from judgekit.judges.evidence import (
    Quotation,
    StrictNumber,
    check_message_numbers,
    quotation_found,
    quotation_suffices,
)
from judgekit.traces.message import AIMessage, HumanMessage, TextPart, ToolCall, ToolMessage
from judgekit.traces.sample import Sample

SAMPLE = Sample.of(
    [
        HumanMessage("Refund order 17,\n  please.\u00a0Today."),
        AIMessage("One moment.", tool_calls=[ToolCall("refund", {"order": 17, "amount": 30.5})]),
        ToolMessage('{"status": "done"}\n\n| raw'),
        AIMessage([TextPart("Done, "), TextPart("as \ud800 asked.")]),
        ToolMessage("| a | b |\n| 1 | 2 |"),
    ],
    id="one",
)


def test_a_quote_is_there_if_the_message_says_it_in_these_words():
    cases = [
        (1, "Refund order 17, please."),
        (1, "order 17,\n| please."),
        (1, "| Refund order 17,"),
        (1, "please. Today."),
        (2, "One moment."),
        (2, 'refund {"amount":30.5,"order":17}'),
        (2, 'calls refund {"amount":30.5,"order":17}'),
        (2, '"amount":30.5'),
        (3, '{"status": "done"}'),
        (3, '{"status": "done"} | raw'),
        (3, "| raw"),
        (4, "Done,"),
        (5, "| a | b |\n| 1 | 2 |"),
        (5, "| | a | b |\n| | 1 | 2 |"),
        (4, "as \\ud800 asked."),
    ]
    for message, quote in cases:
        assert quotation_found(Quotation(message=message, quote=quote), SAMPLE)
        others = {1, 2, 3, 4, 5} - {message}
        assert not any(quotation_found(Quotation(message=other, quote=quote), SAMPLE) for other in others)


def test_what_is_not_said_so_is_not_there():
    cases = ["", " \n", "| ", "Refund order 18", "refund order 17", "order 17 ... Today", "user"]
    for quote in cases:
        assert not quotation_found(Quotation(message=1, quote=quote), SAMPLE)


def test_a_quote_suffices_with_three_words_or_as_a_whole_line():
    enough = [(1, "Refund order 17"), (1, "please. Today."), (2, "One moment."), (3, "| raw"), (4, "as \\ud800 asked.")]
    short = [(1, "R"), (1, "order 17,"), (1, ""), (1, "."), (2, "calls refund"), (3, '"status": "done"'), (4, "asked.")]
    for message, quote in enough:
        assert quotation_suffices(Quotation(message=message, quote=quote), SAMPLE)
    for message, quote in short:
        assert not quotation_suffices(Quotation(message=message, quote=quote), SAMPLE)


def test_words_count_once_and_whole_and_a_line_of_signs_is_no_quote():
    sample = Sample.of([HumanMessage("The fee is 5 euros, a a a.\n---\n\U0001f44d"), AIMessage("?")], id="signs")
    for message, quote in ((1, "fee is 5"), (1, "\U0001f44d"), (2, "?")):
        assert quotation_suffices(Quotation(message=message, quote=quote), sample)
    for message, quote in ((1, "he fee is"), (1, "e fee i"), (1, "a a a"), (1, "---")):
        assert not quotation_suffices(Quotation(message=message, quote=quote), sample)


def test_in_a_script_without_spaces_a_character_counts_as_a_word():
    sample = Sample.of([HumanMessage("\u9000\u6b3e\u5df2\u7ecf\u5904\u7406\u3002")], id="zh")
    assert quotation_suffices(Quotation(message=1, quote="\u9000\u6b3e\u5df2\u7ecf"), sample)
    assert not quotation_suffices(Quotation(message=1, quote="\u9000\u6b3e"), sample)


def test_messages_that_are_cited_must_be_there():
    check_message_numbers([], SAMPLE)
    check_message_numbers([1, 5, 5], SAMPLE)
    with pytest.raises(ValueError, match=r"cites the messages \[0, 6\]; the conversation has messages 1 to 5"):
        check_message_numbers([0, 2, 6], SAMPLE)


class Cited(BaseModel):
    evidence: list[StrictNumber]


def test_what_is_no_whole_number_is_no_number_of_a_message():
    cases = ["true", "false", "1.5", "NaN", "1e400", "null", "[1]", '"one"', "1" * 5_000]
    for number in cases:
        with pytest.raises(ValueError, match=r"number|integer"):
            read_answer(f'{{"evidence": [1, {number}]}}', Cited)


def test_truth_values_are_no_numbers_in_quotations_either():
    with pytest.raises(ValueError, match="expected a whole number, found true"):
        read_answer('{"message": true, "quote": "x"}', Quotation)


def test_a_number_that_is_far_too_large_is_no_message():
    with pytest.raises(ValueError, match="the conversation has messages 1 to 5"):
        check_message_numbers(read_answer(f'{{"evidence": [{10**30}]}}', Cited).evidence, SAMPLE)
