"""Candidates that are refused before a judge is asked: copies, and changes of more than the wording."""

from dataclasses import replace

import pytest

from judgekit import AIMessage, HumanMessage, Sample, SystemMessage, ToolCall, load_prompt
from judgekit.alignment.refusals import RecordedPhrases, changed_scale, refusal, words
from judgekit.judges.prompt import Prompt

TONE, CORRECT = load_prompt("tone"), load_prompt("answer_correctness")
SAMPLES = [
    Sample.of(
        [
            SystemMessage("Always greet the customer by the first name."),
            HumanMessage("My parcel for Mrs Okonkwo went to the wrong harbour town."),
            AIMessage("I am sorry.", tool_calls=[ToolCall("find", {"code": "ZX-4711"})]),
        ],
        id="a",
        references=["it was left at the lighthouse keeper's old shed"],
    ),
    Sample.of([HumanMessage("Where is my parcel, please?"), AIMessage("On its way.")], id="b"),
]
PHRASES = RecordedPhrases.of(SAMPLES)


def told(rule: str, base: Prompt = TONE) -> str:
    """Why a rule after the question is refused."""
    return refusal(base, replace(base, question=f"{base.question}\n\n- {rule}"), rule, PHRASES)


def test_a_general_rule_is_not_refused() -> None:
    assert told("Call it lacking if the agent never says when the parcel will come.") == ""


@pytest.mark.parametrize(
    ("rule", "copied"),
    [
        ("If it went to the wrong harbour town, it is lacking.", "went to the wrong harbour"),
        ("If it WENT to the, wrong; harbour town: lacking.", "went to the wrong harbour"),
        ("If it w\u200bent to the wrong harbour: lacking.", "went to the wrong harbour"),
        ("Went to the wrong\u00a0harbour is lacking.", "went to the wrong harbour"),
        ("Left at the lighthouse keeper's shed.", "left at the lighthouse keeper's"),
        ("Be kind to okonkwo.", "okonkwo"),
        ("Codes like 4711 are fine.", "4711"),
    ],
)
def test_a_phrase_a_name_or_a_number_of_a_recording_is_refused(rule: str, copied: str) -> None:
    assert told(rule) == f"it copies {copied!r} from a labeled recording"


def test_the_words_of_the_question_and_of_system_messages_may_be_used() -> None:
    phrases = RecordedPhrases.of([Sample.of([HumanMessage(TONE.question)], id="a"), *SAMPLES])
    rule = "Always greet the customer by the first name."
    assert refusal(TONE, replace(TONE, question=f"{TONE.question}\n{rule}"), f"{TONE.question} {rule}", phrases) == ""


def test_a_name_that_several_recordings_have_is_none_of_one_alone() -> None:
    both = [Sample.of([HumanMessage(f"I asked Acme {text}.")], id=text) for text in ("first", "then")]
    assert RecordedPhrases.of(both).copied("What Acme says counts.", "") == ""
    assert RecordedPhrases.of(both[:1]).copied("What Acme says counts.", "") == "acme"


def test_a_much_longer_question_is_refused() -> None:
    assert "characters longer than the question; at most 1,500 are allowed" in told("so " * 600)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{{ references }}", "the reference", "its placeholders changed: ['references'] missing, none new"),
        ("The right answer is:", "{{ documents }}", "its placeholders changed: none missing, ['documents'] new"),
        ("The right answer is:", "{{ references }}", "its placeholders or template commands changed"),
        ("The right answer is:", "{% if references %}x{% endif %}", "its placeholders or template commands changed"),
        ("The right answer is:", "{{ references", "it is no template"),
        ("The right answer is:", "{{ 7 * 7 }}", "it is no template"),
        ("partly_correct", "half", "the candidate no longer names the label 'partly_correct'"),
        ("key_points", "points", "it no longer asks for key_points"),
        ("The right answer is:", 'Say "half" if unsure. It is:', "it quotes 'half', which is no label of the scale"),
        ("The right answer is:", "Say \u201chalf\u201d if unsure.", "it quotes 'half', which is no label of the scale"),
        ("The right answer is:", "Grade it 1-5. It is:", "it names another scale, '1-5'"),
    ],
)
def test_a_changed_placeholder_label_field_or_scale_is_refused(old: str, new: str, reason: str) -> None:
    assert old in CORRECT.question
    assert reason in changed_scale(CORRECT, replace(CORRECT, question=CORRECT.question.replace(old, new)))


def test_the_question_itself_is_not_refused() -> None:
    for prompt in (TONE, CORRECT):
        assert changed_scale(prompt, prompt) == ""


def test_words_are_those_that_a_reader_sees() -> None:
    assert words("W\uff41it\u200bing, Don't_stop") == ["waiting", "don't", "stop"]
