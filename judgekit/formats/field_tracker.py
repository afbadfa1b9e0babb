"""An object of a recording: readers take its fields one by one, and the rest is kept."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import JsonValue, TypeAdapter
from pydantic.types import Strict

from judgekit.errors import TraceError, short_repr
from judgekit.formats.values import is_number, str_or_none
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import TraceWarning

Read = TypeVar("Read")
Unit: TypeAlias = Literal["s", "ms", "ns"]

_UNITS: dict[Unit, int] = {"s": 1, "ms": 10**3, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = TypeAdapter[datetime](Annotated[datetime, Strict()])


class FieldTracker:
    """An object of a recording, from which a reader takes the fields that it knows.

    A field that is taken is removed, so `leftover` returns what the reader does not know, in the shape of the source;
    this belongs into an ``extra``. A field of an unexpected type is not taken: a warning says so, or the reader refuses
    the record with `type_error`, as lists of objects do if they are none. So nothing is lost because a reader forgets
    it. A ``null`` field counts as missing.

    The path is that in the source, empty for the record itself; or the parent object, the name of the field in it, and
    the index if the field is a list. All objects of a record share its warnings.
    """

    __slots__ = ("_children", "_fields", "_place", "warnings")

    def __init__(
        self,
        fields: JsonObject,
        path: "str | tuple[FieldTracker, str, int | None]" = "",
        warnings: list[TraceWarning] | None = None,
    ) -> None:
        self._fields: JsonObject = {name: value for name, value in fields.items() if value is not None}
        self._children: dict[str, FieldTracker | list[FieldTracker]] = {}
        self._place = path
        self.warnings: list[TraceWarning] = [] if warnings is None else warnings

    @classmethod
    def of(cls, value: JsonValue, path: str = "") -> "FieldTracker":
        """Return a record."""
        if not isinstance(value, dict):
            raise TraceError(f"{path or 'the record'}: expected an object, found {short_repr(value)}")
        return cls(value, path)

    @property
    def path(self) -> str:
        """The path in the source, such as ``messages[2].tool_calls[0]``."""
        if isinstance(self._place, str):
            return self._place
        whole, name, index = self._place
        return _joined(whole.path, name if index is None else f"{name}[{index}]")

    def __contains__(self, name: str) -> bool:
        """Return whether there is such a field that was not taken."""
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the fields that were not taken."""
        return iter(list(self._fields))

    def peek(self, name: str) -> JsonValue:
        """Return a field without taking it."""
        return self._fields.get(name)

    def first(self, *names: str) -> str | None:
        """Return the first of these names that is that of a field which was not taken."""
        for name in names:
            if name in self._fields:
                return name
        return None

    def take(self, *names: str) -> JsonValue:
        """Take the first of these fields that exists, of any type."""
        name = self.first(*names)
        return None if name is None else self._fields.pop(name)

    def take_if(self, name: str, *values: JsonValue) -> bool:
        """Take a field if it has one of these values. Return whether it did."""
        if name not in self._fields or self._fields[name] not in values:
            return False
        del self._fields[name]
        return True

    def text(self, *names: str) -> str | None:
        """Take a text."""
        return self._read(names, str_or_none, "a string")

    def id(self, *names: str) -> str | None:
        """Take an id, which some files write as a number."""
        return self._read(names, _id_or_none, "an id")

    def one_of(self, name: str, choices: Collection[str]) -> str:
        """Return a text, which must be one of the choices, without taking it."""
        value = self._fields.get(name)
        if not isinstance(value, str) or value not in choices:
            raise self.type_error(name, f"one of {', '.join(choices)}")
        return value

    def boolean(self, *names: str) -> bool | None:
        """Take a boolean."""
        return self._read(names, lambda value: value if isinstance(value, bool) else None, "true or false")

    def count(self, *names: str) -> int | None:
        """Take a whole number of at least 0."""
        return self._read(names, _count_or_none, "a whole number")

    def number(self, *names: str) -> float | None:
        """Take a finite number."""
        return self._read(names, lambda value: value if is_number(value) else None, "a finite number")

    def time(self, *names: str, unit: Unit = "s") -> datetime | None:
        """Take a time, as `parse_time` reads it."""
        return self._read(names, lambda value: parse_time(value, unit), "a timestamp")

    def object(self, *names: str) -> "FieldTracker | None":
        """Take an object. What is not taken from it becomes part of this object's leftover."""
        name = self.first(*names)
        if name is None:
            return None
        if not isinstance(fields := self._fields[name], dict):
            self._warn_type(name, "an object")
            return None
        del self._fields[name]
        self._children[name] = child = FieldTracker(fields, (self, name, None), self.warnings)
        return child

    def maybe_object(self, *names: str) -> "FieldTracker | None":
        """Take an object. Any other value stays, without a warning."""
        name = self.first(*names)
        return self.object(name) if name is not None and isinstance(self._fields[name], dict) else None

    def objects(self, *names: str) -> list["FieldTracker"]:
        """Take a list of objects. What is not taken from them becomes part of this object's leftover."""
        name = self.first(*names)
        return [] if name is None else self.objects_or(name, lambda _: None)

    def objects_or(self, name: str, read: Callable[[JsonValue], Read | None]) -> list["FieldTracker | Read"]:
        """Take a list of objects. Those for which ``read`` returns a value, which must hold all of it, are replaced."""
        if name not in self._fields:
            return []
        objects: list[FieldTracker | Read] = []
        self._children[name] = children = list[FieldTracker]()
        for index, element in enumerate(self._take_list(name)):
            if (complete := read(element)) is not None:
                objects.append(complete)
            elif isinstance(element, dict):
                children.append(child := FieldTracker(element, (self, name, index), self.warnings))
                objects.append(child)
            else:
                where = _joined(self.path, f"{name}[{index}]")
                raise TraceError(f"{where}: expected an object, found {short_repr(element)}")
        return objects

    def optional_objects(self, *names: str) -> list["FieldTracker"]:
        """Take a list of objects that no score depends on. Any other value stays, with a warning."""
        name = self.first(*names)
        if name is None:
            return []
        value = self._fields[name]
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return self.objects(name)
        self._warn_type(name, "a list of objects")
        return []

    def items(self, *names: str) -> list["FieldTracker | JsonValue"]:
        """Take a list of objects and other values. What is not taken from the objects becomes part of the leftover."""
        name = self.first(*names)
        if name is None:
            return []
        items: list[FieldTracker | JsonValue] = [
            FieldTracker(element, (self, name, index), self.warnings) if isinstance(element, dict) else element
            for index, element in enumerate(self._take_list(name))
        ]
        self._children[name] = [child for child in items if isinstance(child, FieldTracker)]
        return items

    def unpack(self, *names: str) -> None:
        """Replace texts that hold a JSON object or list, as many tracers write them, by the parsed value."""
        for name in names:
            value = self._fields.get(name)
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                try:
                    self._fields[name] = json.loads(value)
                except (ValueError, RecursionError):
                    self.warn("invalid JSON", name)

    def warn(self, message: str, name: str = "") -> None:
        """Add a warning about this object or one of its fields."""
        self.warnings.append(TraceWarning(message, path=_joined(self.path, name) or None))

    def take_into(self, facts: JsonObject, names: Iterable[str]) -> None:
        """Take these fields into other facts, unless they have another value there."""
        for name in names:
            if (value := self._fields.get(name)) is not None and facts.setdefault(name, value) == value:
                del self._fields[name]

    def extended(self, **fields: JsonValue) -> "FieldTracker":
        """Return an object with all fields that were not taken, which it takes, and with other fields."""
        return FieldTracker({**self.leftover(), **fields}, self.path, self.warnings)

    def discard(self, name: str, reason: str) -> None:
        """Discard a field on purpose, with a warning."""
        if self._fields.pop(name, None) is not None:
            self.warn(reason, name)

    def type_error(self, name: str, expected: str) -> TraceError:
        """Return the error for a field that is missing or of the wrong type."""
        value = self._fields.get(name)
        shown = "nothing" if value is None else short_repr(value)
        return TraceError(f"{_joined(self.path, name)}: expected {expected}, found {shown}")

    def leftover(self) -> JsonObject:
        """Return all fields that were not taken, in their own shape, and remove them from this object."""
        left, self._fields = self._fields, {}
        if self._children:
            children, self._children = self._children, {}
            for name, child in children.items():
                rest: JsonValue
                if isinstance(child, FieldTracker):
                    rest = child.leftover()
                else:
                    rests: list[JsonValue] = [item.leftover() for item in child]
                    rest = rests if any(rests) else None
                if rest:
                    left[name] = rest
        return left

    def _take_list(self, name: str) -> list[JsonValue]:
        if not isinstance(elements := self._fields[name], list):
            raise self.type_error(name, "a list")
        del self._fields[name]
        return elements

    def _read(self, names: Sequence[str], parse: Callable[[JsonValue], Read | None], expected: str) -> Read | None:
        for name in names:
            if name in self._fields:
                parsed = parse(self._fields[name])
                if parsed is None:
                    self._warn_type(name, expected)
                else:
                    del self._fields[name]
                return parsed
        return None

    def _warn_type(self, name: str, expected: str) -> None:
        self.warn(f"expected {expected}, found {short_repr(self._fields[name])}; kept as is", name)


def parse_time(value: JsonValue, unit: Unit = "s") -> datetime | None:
    """Return a time: ISO 8601, or a number (also as text) of seconds, milliseconds or nanoseconds since 1970.

    Anything else is ``None``.
    """
    try:
        if isinstance(value, str) and not value.strip().lstrip("-").isdigit():
            return _ISO.validate_strings(value)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            passed = int(value) if isinstance(value, str) else value
            return _EPOCH + timedelta(microseconds=round(passed * 1_000_000 / _UNITS[unit]))
    except (ValueError, OverflowError):  # pydantic's is a ValueError
        return None
    return None


def _id_or_none(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return value
    whole = _whole(value)  # tables turn whole numbers into fractions if one is missing
    return None if whole is None else str(whole)


def _count_or_none(value: JsonValue) -> int | None:
    whole = _whole(value)
    return None if whole is None or whole < 0 else whole


def _whole(value: JsonValue) -> int | None:
    return int(value) if is_number(value) and value == int(value) else None


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key
