"""The JSON Schema of a reply, and what it cannot say."""

import json
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, Json, JsonValue, RootModel, create_model

from judgekit.errors import ConfigError
from judgekit.judges.schema import strict_schema
from judgekit.scorers.goal import GoalAnswer
from judgekit.scorers.topic import TopicAnswer


class Cited(BaseModel):
    message: int = Field(ge=1, le=9)
    quote: str | None = None


class Answer(BaseModel):
    """What is said."""

    reason: str = Field(description="First think.")
    title: str
    default: int = 3
    properties: bool
    cited: list[Cited] = []
    nearest: Cited | None = None
    kind: Literal["only"] = "only"
    either: Annotated[str, Field(title="Words")] | Annotated[int, Field(title="Number")]
    verdict: Literal["yes", "no"]


def test_strict_schema_requires_every_property_allows_no_other_and_sends_no_title_or_default():
    cited = {
        "type": "object",
        "properties": {
            "message": {"type": "integer", "minimum": 1, "maximum": 9},
            "quote": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["message", "quote"],
        "additionalProperties": False,
    }
    assert strict_schema(Answer) == {
        "$defs": {"Cited": cited},
        "description": "What is said.",
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "First think."},
            "title": {"type": "string"},
            "default": {"type": "integer"},
            "properties": {"type": "boolean"},
            "cited": {"type": "array", "items": {"$ref": "#/$defs/Cited"}},
            "nearest": {"anyOf": [{"$ref": "#/$defs/Cited"}, {"type": "null"}]},
            "kind": {"const": "only", "type": "string"},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "verdict": {"enum": ["yes", "no"], "type": "string"},
        },
        "required": ["reason", "title", "default", "properties", "cited", "nearest", "kind", "either", "verdict"],
        "additionalProperties": False,
    }


GOAL = (
    '{"$defs": {"Goal": {"description": "One thing that was to be reached; the judge reasons before it decides.", '
    '"properties": {"goal": {"type": "string"}, "end_state": {"type": "string"}, "reason": {"type": "string"}, '
    '"evidence": {"items": {"type": "integer"}, "type": "array"}, "verdict": {"enum": ["achieved", "not_achieved"], '
    '"type": "string"}}, "required": ["goal", "end_state", "reason", "evidence", "verdict"], "type": "object", '
    '"additionalProperties": false}}, "description": "What the judge replies; what follows from it is counted in code.", '
    '"properties": {"goals": {"items": {"$ref": "#/$defs/Goal"}, "type": "array"}}, "required": ["goals"], "type": '
    '"object", "additionalProperties": false}'
)
TOPIC = (
    '{"$defs": {"TopicRequest": {"description": "One thing that the user asked for; ``topic`` is the number of the '
    'topic, from 1.", "properties": {"request": {"type": "string"}, "message": {"type": "integer"}, "reason": {"type": '
    '"string"}, "topic": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "outcome": {"enum": ["answered", '
    '"refused"], "type": "string"}}, "required": ["request", "message", "reason", "topic", "outcome"], "type": '
    '"object", "additionalProperties": false}}, "description": "What the judge replies; what follows from it is '
    'counted in code.", "properties": {"requests": {"items": {"$ref": "#/$defs/TopicRequest"}, "type": "array"}}, '
    '"required": ["requests"], "type": "object", "additionalProperties": false}'
)


@pytest.mark.parametrize(("answer", "written"), [(GoalAnswer, GOAL), (TopicAnswer, TOPIC)])
def test_the_answers_of_shipped_scorers_are_written_as_they_always_were(answer, written):
    """Another schema is another question: all replies that users paid for would be asked for again."""
    assert json.dumps(strict_schema(answer)) == written


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


REF_CAT, REF_DOG = {"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}
SAID = [
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"anyOf": [REF_CAT, REF_DOG]}),
    (Annotated[Cat, Field(description="A cat.")], {"description": "A cat.", "anyOf": [REF_CAT]}),
    (set[int], {"type": "array", "items": {"type": "integer"}}),
    (
        Annotated[list[int], Field(min_length=1, max_length=2)],
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    ),
    (Annotated[str, Field(pattern="^a")], {"type": "string", "pattern": "^a"}),
    (
        Annotated[float, Field(gt=0, lt=1, multiple_of=0.25)],
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.25},
    ),
    (date, {"type": "string", "format": "date"}),
    (HttpUrl, {"type": "string"}),
    (Annotated[int, Field(deprecated=True, examples=[1])], {"type": "integer"}),
]


def with_field(kind: Any, **config: Any) -> type[BaseModel]:
    return create_model("Own", reason=(str, ...), x=(kind, ...), __config__=ConfigDict(**config))


@pytest.mark.parametrize(("kind", "said"), SAID)
def test_what_strict_output_can_say_is_said_and_what_it_need_not_know_is_left_out(kind, said):
    schema = strict_schema(with_field(kind))
    assert schema["properties"] == {"reason": {"type": "string"}, "x": said}
    assert schema["required"] == ["reason", "x"]


class Node(BaseModel):
    name: str
    nodes: list["Node"] = []


class Wrapped(RootModel[Node]):
    pass


@pytest.mark.parametrize("answer", [Node, Wrapped])
def test_a_model_may_hold_itself(answer):
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        "required": ["name", "nodes"],
        "additionalProperties": False,
    }
    assert strict_schema(answer) == node | {"$defs": {"Node": node}}


class Pair(NamedTuple):
    first: int
    second: str


NAMES = "an object with arbitrary names; use a list of models with a name and a value$"
TUPLE = "a tuple; use a model with a field for each of its items$"
ANYTHING = "a value of any type; give it a type$"
UNSAID = [
    (dict[str, int], f"^Own.x: .* {NAMES}"),
    (list[dict[str, int] | None], f"^Own.x\\[\\]: .* {NAMES}"),
    (tuple[int, str], f"^Own.x: .* {TUPLE}"),
    (Pair, f"^(Own.x|Pair): .* {TUPLE}"),
    (Any, f"^Own.x: .* {ANYTHING}"),
    (JsonValue, f"^(Own.x|JsonValue): .* {ANYTHING}"),
    (Json[int], "^Own.x: .* 'contentMediaType'; leave it out of the schema$"),
    (create_model("Inner", y=(dict[str, int], ...)), f"^Inner.y: .* {NAMES}"),
    (Callable, "^Own has no JSON Schema: Cannot generate"),
    ("Unknown", "^Own has no JSON Schema: `Own` is not fully defined"),
    *(
        pytest.param(Annotated[int, Field(json_schema_extra={key: {}})], f"^Own.x: .* '{key}'; leave it out", id=key)
        for key in ("allOf", "not", "if", "patternProperties", "dependentRequired", "x-own")
    ),
]


@pytest.mark.parametrize(("kind", "found"), UNSAID)
def test_what_strict_output_cannot_say_is_refused_by_model_path_and_way_out(kind, found):
    answer = with_field(kind)
    for _ in "again":
        with pytest.raises(ConfigError, match=found):
            strict_schema(answer)


@pytest.mark.parametrize("root", [list[int], str, Cat | Dog, Literal["yes", "no"]])
def test_an_answer_is_an_object(root):
    with pytest.raises(ConfigError, match=r"^Root: .* a type other than an object; use a model with fields$"):
        strict_schema(type("Root", (RootModel[root],), {}))


plain = st.sampled_from(
    [
        (str, st.text(max_size=3)),
        (int, st.integers()),
        (bool, st.booleans()),
        (Literal["a", "b"], st.sampled_from("ab")),
        (Cited, st.fixed_dictionaries({"message": st.integers(1, 9), "quote": st.none() | st.text(max_size=3)})),
        (Node, st.just({"name": "a", "nodes": [{"name": "b", "nodes": []}]})),
    ]
)
kinds = st.recursive(
    plain,
    lambda inner: (
        inner.map(lambda one: (list[one[0]], st.lists(one[1], max_size=2)))
        | inner.map(lambda one: (one[0] | None, st.none() | one[1]))
    ),
    max_leaves=2,
)


@given(st.dictionaries(st.sampled_from("abcdefg"), kinds, min_size=1, max_size=3), st.data())
def test_what_fits_the_schema_fits_the_model_and_nothing_is_missing_or_added(fields, data):
    answer = create_model("Some", **{name: (kind, ...) for name, (kind, _) in fields.items()})
    schema = strict_schema(answer)
    said = {name: data.draw(values) for name, (_, values) in fields.items()}
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(said, schema)
    assert answer.model_validate(said).model_dump() == said
    for broken in (said | {"more": 1}, {name: said[name] for name in list(said)[1:]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)
