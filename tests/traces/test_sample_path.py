"""Paths to values of a sample, and texts with such paths in braces."""

import pytest

from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample
from judgekit.traces.sample_path import TextTemplate, ValuePath, sample_template, sample_value

SAMPLE = Sample.of(
    [
        AIMessage("first", tool_calls=[ToolCall("early")]),
        HumanMessage("Go on"),
        AIMessage('{"a": {"b": [1, null]}, "1": 2}', tool_calls=[ToolCall("f", {"x": 1})]),
    ],
    id="one",
    reference="r",
    fields={"a.b": 1, "n": 0, "no": False, "text": ""},
)


@pytest.mark.parametrize(
    ("text", "root", "steps", "written"),
    [
        ("response", "response", (), "response"),
        ("fields.a.b", "fields", ("a", "b"), "fields.a.b"),
        ("fields['a b'][0]", "fields", ("a b", 0), 'fields["a b"][0]'),
        ('fields["a\\"b"]', "fields", ('a"b',), 'fields["a\\"b"]'),
        ("fields.1", "fields", ("1",), 'fields["1"]'),
    ],
)
def test_a_path_is_read_and_written(text, root, steps, written):
    path = ValuePath.parse(text)
    assert (path.root, path.steps, str(path)) == (root, steps, written)
    assert ValuePath.parse(written) == path


def test_what_is_no_path_is_refused():
    cases = ["", "1", ".a", "a.", "a b", "a[b]", "a[-1]", "a[0", "a..b", "a|b", "a()"]
    for text in cases:
        with pytest.raises(ValueError, match="expected"):
            ValuePath.parse(text)


def test_a_path_leads_to_a_value():
    cases = [
        ("response.a.b[0]", 1),
        ("response.a.b[9]", None),
        ('fields["a.b"]', 1),
        ("fields.a.b", None),
        ("fields.n", 0),
        ("tool_calls", [{"name": "f", "args": {"x": 1}}]),
        ("tool_calls[0].args.x", 1),
    ]
    for path, value in cases:
        assert sample_value(SAMPLE, ValuePath.parse(path)) == value


def test_a_response_that_is_not_json_has_no_values_in_it():
    plain = Sample.of([AIMessage("no JSON")], id="one")
    assert sample_value(plain, ValuePath.parse("response")) == "no JSON"
    assert sample_value(plain, ValuePath.parse("response.a")) is None
    assert sample_value(Sample(id="none"), ValuePath.parse("tool_calls[0].name")) is None


def test_a_template_is_filled_and_says_what_is_missing():
    template = TextTemplate("{{a}} and {{ b.c }}{ {{a}}")
    values = {"a": "x", "b": {"c": [True, "é"]}}
    assert template.fill(lambda path: path.follow(values.get(path.root))) == 'x and [true, "é"]{ x'
    assert [str(path) for path in template.missing(lambda path: path.follow({"a": 1}.get(path.root)))] == ["b.c"]
    assert TextTemplate("plain").fill(lambda path: None) == "plain"


def test_a_filled_value_is_not_filled_again():
    assert TextTemplate("{{ a }}").fill(lambda path: "{{ b }}") == "{{ b }}"


def test_a_template_of_a_sample_knows_its_values():
    assert [path.root for path in sample_template("{{ response }} {{ fields.x }}").paths] == ["response", "fields"]
    with pytest.raises(ValueError, match="fields is not a value of a sample"):
        sample_template("{{ fields }}")
    with pytest.raises(ValueError, match="labels is not a value of a sample"):
        sample_template("{{ labels }}")
