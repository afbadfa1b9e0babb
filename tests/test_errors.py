"""The errors: their tree, and what their messages say."""

import copy
import inspect
import pickle
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import judgekit
from judgekit import errors
from judgekit.errors import (
    ConfigError,
    JudgekitError,
    OverloadError,
    RateLimitError,
    ReplyError,
    TraceError,
    short_repr,
    validation_message,
)


def drawn_tree() -> dict[str, str]:
    """The tree in the module's docstring, as child to parent."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        if found := re.match(r"([│├└─\s]*)(\w+Error)\b", line):
            depth, name = found.start(2), found[2]
            above = [one for one in above if one[0] < depth]
            parents[name] = above[-1][1] if above else "Exception"
            above.append((depth, name))
    return parents


def defined() -> dict[str, type]:
    return {
        name: one
        for name, one in vars(errors).items()
        if inspect.isclass(one) and issubclass(one, Exception) and one.__module__ == errors.__name__
    }


def test_the_tree_is_as_it_is_drawn():
    assert drawn_tree() == {name: one.__base__.__name__ for name, one in defined().items()}


def test_all_errors_can_be_caught_as_one():
    assert all(issubclass(one, JudgekitError) for one in defined().values())


def test_just_the_leaves_are_final():
    parents = {one.__base__ for one in defined().values()}
    assert {name for name, one in defined().items() if getattr(one, "__final__", False)} == {
        name for name, one in defined().items() if one not in parents
    }


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({}, "is empty"),
        ({"path": "a.jsonl"}, "a.jsonl: is empty"),
        ({"index": 3}, "record 3: is empty"),
        ({"path": "a.json", "index": 0}, "a.json, record 0: is empty"),
        ({"path": "a.jsonl", "line": 5}, "a.jsonl (line 5): is empty"),
        ({"path": "a.jsonl", "index": 3, "line": 5}, "a.jsonl (line 5): is empty"),
    ],
)
def test_a_trace_error_says_where(where, message):
    error = TraceError("is empty", **where)
    assert str(error) == message
    assert (error.problem, error.path, error.index, error.line) == (
        "is empty",
        where.get("path"),
        where.get("index"),
        where.get("line"),
    )


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("tool_cal_f1", ["tool_call_f1", "bleu"], "no scorer is called 'tool_cal_f1'. Did you mean 'tool_call_f1'? Known: tool_call_f1, bleu"),
        ("x", ["tool_call_f1", "bleu"], "no scorer is called 'x'. Known: tool_call_f1, bleu"),
        ("x", map(str, range(12)), "no scorer is called 'x'. Known: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more"),
        ("x", [], "no scorer is called 'x'. Known: none"),
        ("x", iter(["xy"]), "no scorer is called 'x'. Did you mean 'xy'? Known: xy"),
        (5, ["f1"], "no scorer is called 5. Known: f1"),
        (None, ["f1"], "no scorer is called None. Known: f1"),
        ("f1\x1b[2J", ["f1"], "no scorer is called 'f1\\x1b[2J'. Known: f1"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_nearest_and_with_what_there_is(name, choices, message):
    assert str(ConfigError.unknown("scorer", name, choices)) == message


def test_how_long_to_wait_is_part_of_an_overload():
    assert OverloadError("busy").retry_after is None
    assert RateLimitError("busy", retry_after=1.5).retry_after == 1.5


def test_a_reply_error_keeps_the_reply():
    error = ReplyError("no verdict", text="I would rather not say")
    assert (str(error), error.text) == ("no verdict", "I would rather not say")


def errors_of_the_package() -> list[type[JudgekitError]]:
    for module in pkgutil.walk_packages(judgekit.__path__, "judgekit."):
        import_module(module.name)

    def below(parent: type[JudgekitError]) -> Iterator[type[JudgekitError]]:
        yield parent
        for child in parent.__subclasses__():
            yield from below(child)

    return [one for one in below(JudgekitError) if one.__module__.partition(".")[0] == "judgekit"]


class QuestionError(errors.JudgeError):
    """An error of a user's own, whose message is not what it is given."""

    def __init__(self, number: int, /, *, asked: str) -> None:
        super().__init__(f"question {number}: {asked}", number)
        self.asked = asked


PATHS = st.none() | st.text().map(Path)


def made(kind: type[JudgekitError]) -> st.SearchStrategy[JudgekitError]:
    if kind.__init__ is Exception.__init__:
        return st.builds(kind, st.text())
    values = {
        name: PATHS if name == "path" else ...
        for name, one in inspect.signature(kind).parameters.items()
        if one.kind is not one.POSITIONAL_ONLY
    }
    assert values, kind
    return st.builds(kind, **values)


def looks(error: JudgekitError) -> tuple[object, ...]:
    return type(error), str(error), error.args, repr(vars(error))  # a text, since a wait may be nan


COPIED = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - written a moment ago
        for protocol in (0, 2, pickle.HIGHEST_PROTOCOL)
    },
}


@pytest.mark.parametrize("kind", errors_of_the_package())
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_error_survives_being_copied_and_pickled(kind, data):
    error = data.draw(made(kind))
    for note in data.draw(st.lists(st.text(), max_size=2)):
        error.add_note(note)
    for name, copied in COPIED.items():
        assert looks(copied(error)) == looks(error), name


@pytest.mark.parametrize("how", COPIED.values(), ids=COPIED)
def test_so_does_an_error_of_a_users_own(how):
    error = QuestionError(3, asked="why?")
    copied = how(error)
    assert looks(copied) == (QuestionError, "('question 3: why?', 3)", ("question 3: why?", 3), "{'asked': 'why?'}")


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str = "cat"
    lives: int


class Owner(BaseModel):
    name: str
    pets: list[Cat | str] = Field(default_factory=list)


def found_in(record: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Owner.model_validate(record)
    return caught.value


@pytest.mark.parametrize(
    ("record", "problems"),
    [
        ({}, ["name: Field required, found {}"]),
        ("Ann", ["the record: Input should be an object, found 'Ann'"]),
        ({"name": 5}, ["name: Input should be a valid string, found 5"]),
        (
            {"name": "Ann", "pets": [{"lives": "9+"}]},
            [
                "pets[0].lives: Input should be a valid integer, unable to parse string as an integer, found '9+'",
                "pets[0]: Input should be a valid string, found {'lives': '9+'}",
            ],
        ),
        (
            {"name": "Ann", "pets": ["Tom", {"kind": "cat"}]},
            [
                "pets[1].lives: Field required, found {'kind': 'cat'}",
                "pets[1]: Input should be a valid string, found {'kind': 'cat'}",
            ],
        ),
    ],
)
def test_what_a_validation_found_is_said_with_json_paths(record, problems):
    assert validation_message(found_in(record), record) == "; ".join(problems)


def test_without_the_record_the_branches_of_unions_stand_in_the_paths():
    assert validation_message(found_in({"name": "Ann", "pets": [5]})) == (
        "pets[0].Cat: Input should be an object, found 5; pets[0].str: Input should be a valid string, found 5"
    )


def test_of_many_problems_three_are_shown_and_the_rest_is_counted():
    record = {"name": 1, "pets": [2, 3]}
    assert validation_message(found_in(record), record) == (
        "name: Input should be a valid string, found 1; "
        "pets[0]: Input should be an object, found 2; "
        "pets[0]: Input should be a valid string, found 2; and 2 more"
    )


def test_a_text_that_is_no_json_is_explained_on_one_line():
    with pytest.raises(ValidationError) as caught:
        Owner.model_validate_json("nope\n\n")
    assert (
        validation_message(caught.value)
        == "the record: Invalid JSON: expected ident at line 1 column 2, found 'nope\\n\\n'"
    )


@given(st.text(max_size=200) | st.lists(st.integers(), max_size=60))
def test_a_value_is_shown_as_code_and_cut_to_eighty_characters(value):
    whole, shown = repr(value), short_repr(value)
    assert shown == whole if len(whole) <= 80 else shown == whole[:77] + "..."
