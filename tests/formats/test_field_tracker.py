"""Objects of a recording, from which fields are taken."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.traces.recording import TraceWarning

KINDS = {
    "text": ({"": "", "a": "a"}, [5, True, [], {}]),
    "id": ({"a": "a", "": "", 7: "7", 0: "0", 8.0: "8"}, [True, 0.5, float("nan"), float("inf"), 10**400, []]),
    "boolean": ({True: True, False: False}, [0, "true", []]),
    "count": ({0: 0, 7: 7, 8.0: 8}, [True, -1, 0.5, "7", float("inf"), 10**400]),
    "number": ({0: 0, -0.5: -0.5}, [True, "7", float("nan"), float("inf"), 10**400]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_the_kind_that_is_asked_for_is_taken_and_another_stays_with_a_warning(kind):
    good, bad = KINDS[kind]
    for value, wanted in good.items():
        found = FieldTracker({"a": value})
        taken = getattr(found, kind)("a")
        assert (taken, type(taken)) == (wanted, type(wanted))
        assert (found.leftover(), found.warnings) == ({}, [])
    for value in bad:
        found = FieldTracker({"a": value}, "row")
        assert getattr(found, kind)("a") is None
        assert repr(found.leftover()) == repr({"a": value})
        [warning] = found.warnings
        assert warning.path == "row.a"
        assert warning.message.startswith("expected ")


def test_what_is_not_there_and_null_are_nothing():
    for take in ["take", "text", "id", "boolean", "count", "number", "time", "object"]:
        found = FieldTracker({"a": None})
        assert getattr(found, take)("a", "b") is None
        assert "a" not in found
        assert (found.leftover(), found.warnings) == ({}, [])


@pytest.mark.parametrize("take", ["objects", "items", "optional_objects"])
def test_no_list_is_an_empty_one(take):
    found = FieldTracker({"a": None})
    assert getattr(found, take)("a", "b") == []
    assert (found.leftover(), found.warnings) == ({}, [])


def test_the_first_name_that_is_there_is_taken():
    found = FieldTracker({"a": None, "b": "b", "c": "c"})
    assert found.text("a", "b", "c") == "b"
    assert found.leftover() == {"c": "c"}


MOMENT = datetime(2025, 8, 1, 16, 16, 37, 123456, UTC)


def test_a_point_in_time_is_a_text_or_a_number():
    cases = [
        ("2025-08-01T16:16:37.123456Z", "s", MOMENT),
        ("2025-08-01 18:16:37.123456+02:00", "s", MOMENT.astimezone(timezone(timedelta(hours=2)))),
        ("2025-08-01T16:16:37.123456", "s", MOMENT.replace(tzinfo=None)),
        (1754064997, "s", MOMENT.replace(microsecond=0)),
        (1754064997.123456, "s", MOMENT),
        ("1754064997", "s", MOMENT.replace(microsecond=0)),
        (1754064997123, "ms", MOMENT.replace(microsecond=123000)),
        ("1754064997123456789", "ns", MOMENT + timedelta(microseconds=1)),
        (-1, "s", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ]
    for value, unit, moment in cases:
        found = FieldTracker({"at": value})
        assert found.time("at", unit=unit) == moment
        assert (found.leftover(), found.warnings) == ({}, [])


def test_what_is_no_point_in_time_stays():
    cases = [
        "",
        "soon",
        "2025-13-01",
        True,
        [],
        {},
        1e300,
        float("nan"),
        float("inf"),
        10**400,
        "9" * 5000,
        "²",
        "\ud800",
    ]
    for value in cases:
        found = FieldTracker({"at": value})
        assert found.time("at") is None
        assert repr(found.leftover()) == repr({"at": value})
        assert [warning.path for warning in found.warnings] == ["at"]


def test_what_a_part_has_given_away_is_not_left_over_in_the_whole():
    found = FieldTracker({"a": {"x": 1, "b": {"y": 2}}})
    inner = found.object("a")
    inner.object("b")
    assert inner.leftover() == {"x": 1, "b": {"y": 2}}
    assert found.leftover() == {}


def test_the_recording_itself_is_not_changed():
    row = {"a": {"x": 1}, "b": [{"y": 2}]}
    found = FieldTracker.of(row)
    found.object("a").take("x")
    found.objects("b")[0].take("y")
    assert row == {"a": {"x": 1}, "b": [{"y": 2}]}


def test_warnings_and_errors_say_where():
    found = FieldTracker.of({"a": [{}, {"b": {"c": 5, "d": "x"}}]})
    inner = found.objects("a")[1].object("b")
    assert inner.path == "a[1].b"
    inner.warn("odd", "c")
    inner.warn("odd")
    inner.discard("d", "a repetition")
    inner.discard("e", "is not there")
    assert found.warnings == [
        TraceWarning("odd", path="a[1].b.c"),
        TraceWarning("odd", path="a[1].b"),
        TraceWarning("a repetition", path="a[1].b.d"),
    ]
    assert str(inner.type_error("c", "a string")) == "a[1].b.c: expected a string, found 5"
    assert str(inner.type_error("d", "a string")) == "a[1].b.d: expected a string, found nothing"


@pytest.mark.parametrize("value", [5, {}, [{"x": 1}, 5]])
def test_a_list_of_details_that_is_none_stays(value):
    found = FieldTracker({"a": value})
    assert found.optional_objects("a") == []
    assert found.leftover() == {"a": value}
    assert [warning.path for warning in found.warnings] == ["a"]


def test_a_record_is_an_object():
    with pytest.raises(TraceError, match=r"^the record: expected an object, found \[1\]$"):
        FieldTracker.of([1])


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abc"), values), st.lists(st.sampled_from("abc"), max_size=4), st.data())
def test_each_value_is_taken_or_left_over(fields, names, data):
    """At any depth, everything that was not taken is there."""
    found, taken = FieldTracker(fields), 0
    for name in names:
        value = found.peek(name)
        if isinstance(value, dict) and data.draw(st.booleans()):
            taken += visited(found.object(name), data)
        elif isinstance(value, list) and data.draw(st.booleans()):
            for item in found.items(name):
                taken += visited(item, data) if isinstance(item, FieldTracker) else leaves(item)
        else:
            taken += leaves(found.take(name))
    assert taken + leaves(found.leftover()) == leaves(fields)


def visited(found: FieldTracker, data: st.DataObject) -> int:
    """Take some fields of an object at random, and return the number of taken values."""
    return sum(leaves(found.take(name)) for name in found if data.draw(st.booleans()))


def leaves(value: object) -> int:
    if isinstance(value, dict | list):
        return sum(map(leaves, value.values() if isinstance(value, dict) else value))
    return value is not None


def test_a_field_is_taken_if_it_has_one_of_some_values():
    found = FieldTracker({"a": "x", "b": "y", "c": {}})
    assert [found.take_if(name, "x", "z") for name in ("a", "b", "c", "d")] == [True, False, False, False]
    assert (found.leftover(), found.warnings) == ({"b": "y", "c": {}}, [])


def test_an_object_that_may_be_something_else_is_taken_without_a_warning():
    found = FieldTracker({"a": "x", "b": {"c": 1}})
    assert found.maybe_object("a") is None
    assert found.maybe_object("d") is None
    assert found.maybe_object("b").take("c") == 1
    assert (found.leftover(), found.warnings) == ({"a": "x"}, [])


@pytest.mark.parametrize("value", [None, 7, ["x"], "z"])
def test_a_text_that_is_none_of_those_known_is_refused(value):
    assert FieldTracker({"a": "x"}).one_of("a", ("x", "y")) == "x"
    with pytest.raises(TraceError, match=r"row\.a: expected one of x, y, found "):
        FieldTracker({"a": value}, "row").one_of("a", ("x", "y"))


def test_an_object_is_extended_by_other_fields():
    found = FieldTracker({"a": 1, "b": 2}, "row")
    more = found.extended(b=3, c=4)
    assert (more.path, more.warnings is found.warnings, found.leftover()) == ("row", True, {})
    assert more.leftover() == {"a": 1, "b": 3, "c": 4}
