"""An object of a recording: its fields are taken one by one, and what nobody took is kept."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.types import Strict

from judgekit.errors import TraceError, shortened
from judgekit.formats.values import is_number
from judgekit.traces.message import JsonObject
from judgekit.traces.trace import TraceWarning

Unit: TypeAlias = Literal["s", "ms", "ns"]

_UNITS: dict[Unit, int] = {"s": 1, "ms": 10**3, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = TypeAdapter[datetime](Annotated[datetime, Strict()])


class Found:
    """An object of a recording, from which a reader takes the fields that it knows.

    A field that is taken is gone from the object, so that `leftover` is what the reader did not know, in the shape that
    it has in the source: it belongs into an ``extra``. A field that is not of the kind that was asked for is not taken;
    a warning says so, or the reader refuses the record with `unfit`. In this way nothing is lost by being forgotten.
    A field that is ``null`` is as good as none.

    Args:
        fields: The object. It is not changed.
        where: Its path in the source, empty for the record itself; or the whole that it is a part of, under which name,
            and at which index if that is a list.
        warnings: What was noticed, shared by all objects of one record.
    """

    __slots__ = ("_children", "_fields", "_place", "warnings")

    def __init__(
        self,
        fields: JsonObject,
        where: "str | tuple[Found, str, int | None]" = "",
        warnings: list[TraceWarning] | None = None,
    ) -> None:
        self._fields: JsonObject = {name: value for name, value in fields.items() if value is not None}
        self._children: dict[str, Found | list[Found]] = {}
        self._place = where
        self.warnings: list[TraceWarning] = [] if warnings is None else warnings

    @classmethod
    def of(cls, value: JsonValue, where: str = "") -> "Found":
        """A record.

        Raises:
            TraceError: It is no object.
        """
        if not isinstance(value, dict):
            found = f"{where or 'the record'}: expected an object, found {shortened(value)}"
            raise TraceError(found)
        return cls(value, where)

    @property
    def where(self) -> str:
        """The path in the source: ``messages[2].tool_calls[0]``."""
        if isinstance(self._place, str):
            return self._place
        whole, name, index = self._place
        return _joined(whole.where, name if index is None else f"{name}[{index}]")

    def __contains__(self, name: str) -> bool:
        """Whether there is such a field that nobody took."""
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        """The names of the fields that nobody took."""
        return iter(list(self._fields))

    def has_any(self, names: frozenset[str]) -> bool:
        """Whether there is one of these fields that nobody took."""
        return not self._fields.keys().isdisjoint(names)

    def peek(self, name: str) -> JsonValue:
        """A field that stays where it is."""
        return self._fields.get(name)

    def take(self, *names: str) -> JsonValue:
        """A field of any kind: the first that is there, of the names that it may have."""
        for name in names:
            if name in self._fields:
                return self._fields.pop(name)
        return None

    def take_if(self, name: str, *values: str) -> bool:
        """Take a field if it has one of these values, and return whether it had."""
        if self._fields.get(name) not in values:
            return False
        del self._fields[name]
        return True

    def text(self, *names: str) -> str | None:
        """A text."""
        return cast("str | None", self._fitting(names, _is_text, "a text"))

    def identity(self, *names: str) -> str | None:
        """An id, which some files write as a number."""
        value = self._fitting(names, _is_identity, "an id")
        # Tables turn whole numbers into fractions where one is missing.
        return None if value is None else str(int(value) if isinstance(value, float) else value)

    def flag(self, *names: str) -> bool | None:
        """Whether something is so."""
        return cast("bool | None", self._fitting(names, _is_flag, "true or false"))

    def count(self, *names: str) -> int | None:
        """A whole number, 0 or above."""
        value = cast("float | None", self._fitting(names, _is_count, "a whole number"))
        return None if value is None else int(value)

    def number(self, *names: str) -> float | None:
        """A finite number."""
        return cast("float | None", self._fitting(names, is_number, "a finite number"))

    def moment(self, *names: str, unit: Unit = "s") -> datetime | None:
        """A point in time: ISO 8601, or a number (also as text) of seconds, milliseconds or nanoseconds since 1970."""
        name = self._name(names)
        if name is None:
            return None
        value = self._fields[name]
        try:
            if isinstance(value, str) and not value.strip().lstrip("-").isdigit():
                moment = _ISO.validate_json(json.dumps(value))
            elif isinstance(value, int | float | str) and not isinstance(value, bool):
                passed = int(value) if isinstance(value, str) else value
                moment = _EPOCH + timedelta(microseconds=round(passed * 1_000_000 / _UNITS[unit]))
            else:
                raise TypeError
        except (ValidationError, ValueError, OverflowError, TypeError):
            self._odd(name, "a point in time")
            return None
        del self._fields[name]
        return moment

    def object(self, *names: str) -> "Found | None":
        """An object; what nobody takes of it is left over here."""
        name = self._name(names)
        if name is None:
            return None
        value = self._fields[name]
        if isinstance(value, dict):
            del self._fields[name]
            child = Found(value, (self, name, None), self.warnings)
            self._children[name] = child
            return child
        self._odd(name, "an object")
        return None

    def maybe_object(self, *names: str) -> "Found | None":
        """Take an object; anything else stays where it is, without a warning."""
        name = self._name(names)
        return self.object(name) if name is not None and isinstance(self._fields[name], dict) else None

    def objects(self, *names: str) -> list["Found"]:
        """A list of objects; what nobody takes of them is left over here.

        Raises:
            TraceError: It is no list, or something in it is no object.
        """
        name = self._name(names)
        if name is None:
            return []
        objects: list[Found] = []
        for index, item in enumerate(self.items(name)):
            if not isinstance(item, Found):
                where = _joined(self.where, f"{name}[{index}]")
                raise TraceError(f"{where}: expected an object, found {shortened(item)}")
            objects.append(item)
        return objects

    def details(self, *names: str) -> list["Found"]:
        """A list of objects that no score depends on; one of another kind is not taken, and a warning says so."""
        name = self._name(names)
        if name is None:
            return []
        value = self._fields[name]
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return self.objects(name)
        self._odd(name, "a list of objects")
        return []

    def items(self, *names: str) -> list["Found | JsonValue"]:
        """A list of objects and other values. What nobody takes of the objects is left over here; the others are taken.

        Raises:
            TraceError: It is no list.
        """
        name = self._name(names)
        if name is None:
            return []
        value = self._fields[name]
        if not isinstance(value, list):
            raise self.unfit(name, "a list")
        del self._fields[name]
        items: list[Found | JsonValue] = [
            Found(item, (self, name, index), self.warnings) if isinstance(item, dict) else item
            for index, item in enumerate(value)
        ]
        self._children[name] = [item for item in items if isinstance(item, Found)]
        return items

    def unpack(self, *names: str) -> None:
        """Replaces texts that hold a JSON object or list by what they hold, which many tracers write so."""
        for name in names:
            value = self._fields.get(name)
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                try:
                    self._fields[name] = json.loads(value)
                except (ValueError, RecursionError):
                    self.warn("JSON that cannot be parsed", name)

    def warn(self, found: str, name: str = "") -> None:
        """Notes something about this object, or about one of its fields."""
        self.warnings.append(TraceWarning(found, where=_joined(self.where, name) or None))

    def drop(self, name: str, reason: str) -> None:
        """Leaves a field out on purpose, which is told."""
        if self._fields.pop(name, None) is not None:
            self.warn(reason, name)

    def unfit(self, name: str, wanted: str) -> TraceError:
        """The error of a record whose field is missing or of another kind than a reader must have."""
        value = self._fields.get(name)
        found = "nothing" if value is None else shortened(value)
        return TraceError(f"{_joined(self.where, name)}: expected {wanted}, found {found}")

    def leftover(self) -> JsonObject:
        """What nobody took, in its own shape. It is then the caller's, and no more left over here."""
        left, self._fields = self._fields, {}
        if self._children:
            children, self._children = self._children, {}
            for name, child in children.items():
                rest: JsonValue
                if isinstance(child, Found):
                    rest = child.leftover()
                else:
                    rests: list[JsonValue] = [one.leftover() for one in child]
                    rest = rests if any(rests) else None
                if rest:
                    left[name] = rest
        return left

    def _name(self, names: Sequence[str]) -> str | None:
        for name in names:
            if name in self._fields:
                return name
        return None

    def _fitting(self, names: Sequence[str], fits: Callable[[JsonValue], bool], wanted: str) -> JsonValue:
        for name in names:
            if name in self._fields:
                if fits(self._fields[name]):
                    return self._fields.pop(name)
                self._odd(name, wanted)
                break
        return None

    def _odd(self, name: str, wanted: str) -> None:
        self.warn(f"expected {wanted}, found {shortened(self._fields[name])}; kept as it stands", name)


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _is_flag(value: JsonValue) -> bool:
    return isinstance(value, bool)


def _is_identity(value: JsonValue) -> bool:
    return isinstance(value, str) or (is_number(value) and isinstance(value, int | float) and value == int(value))


def _is_count(value: JsonValue) -> bool:
    return is_number(value) and isinstance(value, int | float) and value >= 0 and value == int(value)


def _joined(where: str, key: str) -> str:
    return f"{where}.{key}" if where and key else where or key
