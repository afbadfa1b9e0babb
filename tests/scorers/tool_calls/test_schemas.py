"""Whether arguments fit the JSON Schema of their tool."""

import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.scorers.tool_calls import schemas
from judgekit.scorers.tool_calls.schemas import schema_problems
from judgekit.traces.message import ToolCall
from judgekit.traces.recording import ToolDefinition

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BACKTRACKS = "^(a+)+$"
AS = "a" * 60 + "!"
"""A text for which `re` would not find the end of the pattern before the sun burns out."""


def problems(parameters: object, args: dict) -> tuple[str, ...]:
    return schema_problems(ToolCall("f", args), [ToolDefinition("f", parameters=parameters)])


CASES = {
    "fits": (CITY, {"city": "Rome"}, ()),
    "another type": (CITY, {"city": 5}, ("args.city: 5 is not of type 'string'",)),
    "missing": (CITY, {}, ("args: 'city' is a required property",)),
    "more is not free": (
        {**CITY, "additionalProperties": False},
        {"city": "Rome", "days": 2},
        ("args: 'days' is not one of the properties",),
    ),
    "more must fit": (
        {**CITY, "additionalProperties": {"type": "integer"}},
        {"city": "Rome", "days": 2, "to": "x"},
        ("args.to: 'x' is not of type 'integer'",),
    ),
    "deep": (
        {"properties": {"items": {"items": {"properties": {"id": {"type": "integer"}}}}}},
        {"items": [{"id": 1}, {"id": "2"}]},
        ("args.items[1].id: '2' is not of type 'integer'",),
    ),
    "a format says nothing": ({"properties": {"d": {"format": "date"}}}, {"d": "tomorrow"}, ()),
    "a pattern is not found": (
        {"properties": {"d": {"pattern": "^[0-9]+$"}}},
        {"d": "1\n"},
        (r"args.d: '1\n' does not match '^[0-9]+$'",),
    ),
    "a pattern says nothing of numbers": ({"properties": {"d": {"pattern": "x"}}}, {"d": 5}, ()),
    "names with a pattern": (
        {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False},
        {"n_a": 1, "n_b": "2", "c": 3},
        ("args.n_b: '2' is not of type 'integer'", "args: 'c' is not one of the properties"),
    ),
    "a reference within": (
        {"$defs": {"id": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/id"}}},
        {"a": "1"},
        ("args.a: '1' is not of type 'integer'",),
    ),
    "a schema within itself": (
        {"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["id"]}}, "$ref": "#/$defs/n"},
        {"id": 1, "next": {"id": 2, "next": {}}},
        ("args.next.next: 'id' is a required property",),
    ),
    "false": (False, {}, ("args: False schema does not allow {}",)),
    "no parameters": (None, {"any": "thing"}, ()),
}


def test_what_does_not_fit_is_told_with_its_path():
    for parameters, args, expected in CASES.values():
        assert problems(parameters, args) == expected


def test_what_is_not_defined_and_what_cannot_be_read_fit_nothing():
    tools = [ToolDefinition("f"), ToolDefinition("g", parameters=CITY)]
    assert schema_problems(ToolCall("h"), tools) == ("tool 'h' is not defined",)
    unread = schema_problems(ToolCall("f", "{"), tools)
    assert len(unread) == 1
    assert unread[0].startswith("args: not JSON: ")


def test_of_two_definitions_the_first_counts():
    assert schema_problems(ToolCall("f"), [ToolDefinition("f", parameters=one) for one in (True, False)]) == ()
    assert schema_problems(ToolCall("f"), [ToolDefinition("f", parameters=one) for one in (False, True)]) != ()


def test_without_definitions_nothing_can_be_said():
    with pytest.raises(ValueError, match="defines no tools"):
        schema_problems(ToolCall("f"), [])


def test_the_draft_is_the_one_that_the_schema_names_and_else_2020_12():
    """In a draft up to 7 nothing counts beside a reference, and a list of items gives them one by one."""
    beside = {"$ref": "#/definitions/any", "required": ["a"], "definitions": {"any": {}}}
    missing = ("args: 'a' is a required property",)
    assert problems(beside, {}) == missing
    assert problems({"$schema": "https://json-schema.org/draft/2020-12/schema", **beside}, {}) == missing
    assert problems({"$schema": "https://example.com/mine", **beside}, {}) == missing
    assert problems({"$schema": "http://json-schema.org/draft-07/schema#", **beside}, {}) == ()
    each = {"properties": {"a": {"items": [{"type": "integer"}]}}}
    assert problems({"$schema": "http://json-schema.org/draft-04/schema#", **each}, {"a": ["x"]}) == (
        "args.a[0]: 'x' is not of type 'integer'",
    )
    with pytest.raises(ValueError, match="is unusable"):
        problems(each, {"a": ["x"]})


def test_a_schema_of_no_use_is_an_error_that_names_the_tool():
    cases = [
        [],
        5,
        {"type": "text"},
        {"$schema": 5},
        {"properties": {"a": {"pattern": "["}}},
        {"properties": {"a": {"pattern": "(?=x)"}}},
        {"$ref": "#/$defs/none"},
        {"$ref": "#/default", "default": 5},
        {"$ref": "#/default", "default": {"required": 5}},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"unevaluatedProperties": False, "patternProperties": {"a": True}},
    ]
    for parameters in cases:
        with pytest.raises(ValueError, match=r"the JSON Schema of the tool 'f' is unusable: ."):
            problems(parameters, {"a": "x"})


def test_nothing_is_fetched():
    asked = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/schema.json"
            with pytest.raises(ValueError, match="Unresolvable"):
                problems({"$ref": address}, {})
            with pytest.raises(ValueError, match="Unresolvable"):
                problems({"$id": address, "$ref": "other.json"}, {})
            assert problems({"$schema": address}, {}) == ()
        finally:
            server.shutdown()
    assert asked == []


def doubled(levels: int) -> dict:
    """A schema of a few lines that looks at its value 2 ** levels times."""
    steps = {str(level): {"allOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(levels)}
    return {"$defs": {**steps, str(levels): {}}, "$ref": "#/$defs/0"}


@pytest.mark.parametrize(
    "parameters",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$dynamicRef": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        doubled(60),
        {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"$ref": "#"}]},
    ],
    ids=["itself", "itself within", "itself, dynamically", "each other", "doubled", "itself, in draft 7"],
)
def test_a_schema_without_an_end_is_given_up(parameters, monkeypatch):
    assert schemas._MOST_STEPS == 100_000
    monkeypatch.setattr(schemas, "_MOST_STEPS", 10_000)
    with pytest.raises(ValueError, match=r"recursion depth|more than 10,000 steps"):
        problems(parameters, {})
    assert problems(CITY, {"city": "Rome"}) == ()


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", "none"])
def test_a_pattern_takes_linear_time_wherever_it_stands(draft):
    """Also where a draft is named within, at which jsonschema changes to its own keywords."""
    named = {"$schema": draft, "properties": {"a": {"$schema": draft, "pattern": BACKTRACKS}}}
    assert problems(named, {"a": AS}) == (f"args.a: {AS!r} does not match {BACKTRACKS!r}",)
    names = {"$schema": draft, "patternProperties": {BACKTRACKS: False}}
    assert problems(names, {AS: 1}) == ()
    assert problems({**names, "additionalProperties": False}, {AS: 1}) == (
        f"args: {AS!r} is not one of the properties",
    )


def test_at_most_twenty_problems_are_told_each_on_a_short_line():
    parameters = {"items": {"type": "integer"}}
    found = problems({"properties": {"a": parameters}}, {"a": ["x\n" * 1_000] * 50})
    assert len(found) == 20
    assert all(len(one) < 250 and "\n" not in one for one in found)


patterns = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "^a", "b$", r"\d", "a*", "b+", "(?:ab)?"]),
    lambda inner: (
        st.tuples(inner, inner).map("".join) | st.tuples(inner, inner).map(lambda two: f"(?:{'|'.join(two)})")
    ),
    max_leaves=4,
)
texts = st.text("ab1", max_size=5)


@settings(max_examples=2 * settings.default.max_examples)
@given(patterns, texts)
def test_a_pattern_is_found_where_re_finds_it(pattern, text):
    fits = problems({"properties": {"a": {"pattern": pattern}}}, {"a": text}) == ()
    assert fits == (re.search(pattern, text) is not None)


names = st.sampled_from(["a", "b", "ab", "ba", "1"])
kinds = st.sampled_from([True, False, {"type": "integer"}, {"type": "string"}, {"enum": [1, "x"]}])
objects = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(names, kinds, max_size=2),
        "patternProperties": st.dictionaries(patterns, kinds, max_size=2),
        "additionalProperties": kinds,
        "required": st.lists(names, unique=True, max_size=2),
        "propertyNames": st.builds(lambda pattern: {"pattern": pattern}, patterns),
    },
)
nested = objects | st.builds(lambda outer, inner: {**outer, "allOf": [inner]}, objects, objects)


@settings(max_examples=2 * settings.default.max_examples)
@given(nested, st.dictionaries(names, st.sampled_from([1, 2.0, True, "x", None]), max_size=4))
def test_a_call_has_problems_where_jsonschema_has_errors(schema, args):
    assert (problems(schema, args) == ()) == jsonschema.Draft202012Validator(schema).is_valid(args)
