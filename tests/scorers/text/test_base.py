"""What text scorers compare."""

import pytest

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.classification.answers import AnswerMatch
from judgekit.scorers.classification.labels import Classification
from judgekit.scorers.text.base import TextPair, texts_to_compare
from judgekit.scorers.text.matches import ExactMatch, Regex, Similarity, StringPresence
from judgekit.scorers.text.ngrams import NgramPrecision
from judgekit.scorers.text.rouge import ROUGE
from judgekit.scorers.text.structure import JSONDiff, JSONMatch
from judgekit.scorers.text.translation import BLEU, CHRF, TER
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

HI = HumanMessage("Hi")


def test_the_last_message_of_the_agent_is_compared():
    messages = [HI, AIMessage("First"), HumanMessage("Go on"), AIMessage("Last"), HumanMessage("Thanks")]
    assert texts_to_compare(Sample.of(messages, reference="a")) == TextPair("Last", ("a",))


def test_a_last_message_that_only_calls_tools_is_an_empty_response():
    messages = [HI, AIMessage("First"), AIMessage(tool_calls=[ToolCall("search")])]
    assert texts_to_compare(Sample.of(messages, reference="a")) == TextPair("", ("a",))


def test_references_are_all_that_are_known_each_once_and_none_blank():
    cases = [
        ({"reference": "a"}, ("a",)),
        ({"reference": "a", "references": ["b", "c"]}, ("a", "b", "c")),
        ({"reference": "a", "references": ["b", "a", "b"]}, ("a", "b")),
        ({"reference": " ", "references": ["", "b", "\n\t\u3000"]}, ("b",)),
        ({"reference": "a ", "references": ["a"]}, ("a ", "a")),
    ]
    for known, references in cases:
        assert texts_to_compare(Sample.of([HI, AIMessage("Yes")], **known)) == TextPair("Yes", references)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, "the sample has no reference"),
        ({"references": []}, "the sample has no reference"),
        ({"reference": ""}, "the reference is empty"),
        ({"reference": " ", "references": ["", "\n"]}, "the reference is empty"),
    ],
)
def test_without_a_reference_it_says_why_nothing_is_compared(known, reason):
    assert texts_to_compare(Sample.of([HI, AIMessage("Yes")], **known)) == reason


@pytest.mark.parametrize("messages", [[], [HI]])
def test_without_a_message_of_the_agent_it_says_so(messages):
    reason = "the sample has no response: there is no agent message"
    assert texts_to_compare(Sample.of(messages, id="one", reference="a")) == reason


def test_text_that_no_file_can_hold_is_given_with_its_escapes():
    sample = Sample.of([HI, AIMessage("a\ud800")], id="one", reference="\udfff", references=["😀", r"\udfff"])
    assert texts_to_compare(sample) == TextPair(r"a\ud800", (r"\udfff", "😀"))


SCORERS = [
    ExactMatch(),
    ExactMatch(normalize=True),
    StringPresence(ignore_case=True),
    Regex("a."),
    Regex("\ud800"),
    *map(Similarity, ("levenshtein", "jaro_winkler", "indel", "token_sort")),
    JSONMatch(),
    JSONDiff(),
    BLEU(),
    BLEU(tokenize="zh"),
    CHRF(word_order=2),
    TER(normalized=True, asian_support=True),
    *map(ROUGE, ("rouge1", "rougeL", "rougeLsum")),
    NgramPrecision(1),
    AnswerMatch(),
    AnswerMatch(recipe="published"),
    Classification(),
]


def test_a_score_of_any_text_can_be_written():
    cases_1 = [
        ("a \ud800", {"reference": '"b"', "label": "b"}),
        ("a \ud800", {"reference": '"a \ud800"', "label": "a \ud800"}),
        ("\ud800", {"references": ['"\udfff"', "1"], "label": "\udfff"}),
        ("b", {"label": "\ud800", "prediction": "\ud800", "reference": "2"}),
        ("b", {"fields": {"expected_output": "a \ud800"}, "reference": "2"}),
        ("b", {"fields": {"expected_output": ["a", "b \ud800"]}, "reference": "2"}),
        ("b", {"fields": {"expected_output": {"\ud800": ["\udfff"]}}, "reference": "2"}),
    ]
    for scorer in SCORERS:
        for response, known in cases_1:
            try:
                found = scorer.score(Sample.of([HI, AIMessage(response)], id="one", **known))
            except ValueError as error:  # a reference that is no JSON
                found = Score.failed(scorer.name, str(error))
                assert scorer.name.startswith("json_")
            assert Score.model_validate_json(found.model_dump_json()) == found
            assert found.reason


CALLED = ToolCall("search", {"city": "Bonn"})
JSON = Sample.of(
    [HI, AIMessage('{"answer": "Bonn", "n": [1, 2]}', tool_calls=[CALLED])],
    id="one",
    reference="Berlin",
    fields={"city": "Bonn", "my city": "Rome", "items": ["a"], "empty": "", "none": None},
)


def test_options_say_which_values_of_the_sample_are_compared():
    cases = [
        ({"response": "{{ response.answer }}", "reference": "{{ fields.city }}"}, 1),
        ({"response": "{{response.answer}}", "reference": "{{fields['city']}}"}, 1),
        ({"response": "{{ response.n }}", "reference": "[1, 2]"}, 1),
        ({"response": "{{ fields.items[0] }}", "reference": "a"}, 1),
        ({"response": "{{ tool_calls[0].name }}", "reference": "search"}, 1),
        ({"response": "{{ tool_calls[0].args.city }}", "reference": "{{ fields.city }}"}, 1),
        ({"response": "{{ fields.city }}"}, 0),
        ({"response": "{{ reference }}"}, 1),
        ({"reference": "{{ response }}"}, 1),
        ({"reference": "no braces"}, 0),
    ]
    for options, value in cases:
        scorer = ExactMatch(**options)
        assert scorer.compute(JSON).value == value
        assert scorer.score(JSON) == scorer.compute(JSON)


@pytest.mark.parametrize(
    "path", ["fields.nothing", "fields.none", "response.nothing", "response.n[2]", "tool_calls[1].name"]
)
def test_a_sample_without_the_value_is_skipped(path):
    score = ExactMatch(reference=f"{{{{ {path} }}}}").compute(JSON)
    assert (score.status, score.reason) == ("skipped", f"the sample has no {path}")


def test_without_an_agent_message_a_field_can_still_be_compared():
    sample = Sample.of([HI], id="one", fields={"draft": "Bonn"}, reference="Bonn")
    assert ExactMatch(response="{{ fields.draft }}").compute(sample).value == 1
    assert ExactMatch(reference="Bonn").compute(sample).status == "failed"
    alone = Sample.of([HI], id="one", fields={"draft": "Bonn"})
    assert ExactMatch(response="{{ fields.draft }}").compute(alone).reason == "the sample has no reference"


def test_a_blank_reference_is_compared_only_if_whitespace_counts():
    option = {"reference": "{{ fields.empty }}"}
    for scorer in (ExactMatch(**option), StringPresence(**option), Similarity(**option), BLEU(**option)):
        assert scorer.compute(JSON).reason == "the reference is empty"
    assert ExactMatch(strip=False, **option).compute(JSON).value == 0
    assert StringPresence(strip=False, **option).compute(JSON).value == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{{ item.city }}",
            r"item\.city is not a value of a sample; these are response, reference, tool_calls, fields",
        ),
        ("{{ fields }}", r"fields is not a value of a sample"),
        (
            "{{ fields.city | upper }}",
            r"expected \.name, \[0\] or \[\"name\"\] behind 'fields\.city', found ' \| upper'",
        ),
        ("{{ 1 }}", "expected a path such as fields.name, found '1'"),
    ],
)
def test_a_text_with_an_unknown_value_is_refused_at_once(text, reason):
    for kind in (ExactMatch, StringPresence, Similarity, BLEU, CHRF, TER, ROUGE, NgramPrecision, JSONMatch, JSONDiff):
        with pytest.raises(ConfigError, match=reason):
            kind(reference=text)
