"""The JSON Schema of a reply."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from judgekit.judges.schema import strict_schema


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


@given(st.permutations(["reason", "verdict", "title", "default", "evidence"]))
def test_properties_are_sent_in_the_order_of_the_model(names):
    schema = strict_schema(create_model("Any", **dict.fromkeys(names, (str, "")), __base__=BaseModel))
    assert list(schema["properties"]) == schema["required"] == names


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_models_within_models_are_strict_at_every_depth(depth):
    model = create_model("Level0", title=(str, "x"))
    for level in range(1, depth + 1):
        model = create_model(f"Level{level}", inner=(list[model] | None, None))
    definitions = strict_schema(model)["$defs"].values()
    assert len(definitions) == depth
    for definition in definitions:
        assert definition["additionalProperties"] is False
        assert definition["required"] == list(definition["properties"])
        assert not definition.keys() & {"title", "default"}
