"""Specs of scorers: their names and options, read from a config table or from the text after ``--scorer``."""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import Field, JsonValue, ValidationError

from judgekit.errors import ConfigError, closest_name, validation_message
from judgekit.registry import entry_point_references, is_reference
from judgekit.scorers import SCORERS
from judgekit.traces.message import FrozenModel, JsonObject, is_unicode

JUDGE_VARIABLE = "JUDGEKIT_JUDGE"
"""The environment variable that names the judge of scorers that name none."""


class ScorerSpec(FrozenModel):
    """The specification of a scorer.

    Attributes:
        name: Its name in `judgekit scorers`.
        argument: Its first option, given without a name.
        alias: The name of this instance.
        options: Its other options.
        judge: The judge of the scorer and its members, unless the options name one; that of the `Config` if not given.
    """

    name: str
    argument: JsonValue = None
    alias: str | None = Field(default=None, alias="as")
    options: JsonObject
    judge: str | None = None

    def with_judge(self, judge: str | None) -> "ScorerSpec":
        """Return the spec with another judge."""
        return self.model_copy(update={"judge": judge})

    @classmethod
    def from_table(cls, table: Mapping[str, JsonValue]) -> "ScorerSpec":
        """Return the spec in a ``[[scorers]]`` table."""
        options = dict(table)
        if "name" not in table:
            near = closest_name("name", table)
            hint = f". Is it the key {near!r}?" if near else f", found {', '.join(table) or 'nothing'}"
            raise ConfigError(f"a [[scorers]] table has no key name{hint}")
        try:
            return cls.model_validate(
                {"name": options.pop("name", None), "as": options.pop("as", None), "options": options}
            )
        except ValidationError as error:
            raise ConfigError(f"a [[scorers]] table: {validation_message(error)}") from error

    @classmethod
    def parse(cls, text: str) -> "ScorerSpec":
        """Return the spec in a text such as ``name:option=value,option=value``.

        Values are JSON, or else text up to a comma. A scorer of your own is ``package.module:object`` or
        ``file.py:object``, and its options follow a second colon.

        The option that a scorer requires, or else its first option, may come first without its name: ``prompt:tone``,
        ``rouge:rouge1``.
        """
        if not is_unicode(text):
            raise ConfigError(f"--scorer {text!a}: expected UTF-8 text")
        name, _, rest = text.partition(":")
        if is_reference(text, (*SCORERS, *entry_point_references("scorers"))):
            part, _, rest = rest.partition(":")
            name = f"{name}:{part}" if part else name
        table: dict[str, JsonValue] = {"name": name}
        try:
            for position, (key, value) in enumerate(_items(rest)):
                if not key and position:
                    raise ValueError(f"expected option=value, found {value!r}; quote texts that contain commas")
                if key in table:
                    raise ValueError(f"{key!r} is given twice; as=... names the scorer")
                table[key] = value
        except ValueError as error:
            raise ConfigError(f"--scorer {text}: {error}") from error
        argument = table.pop("", None)
        return cls.from_table(table).model_copy(update={"argument": argument})


_JSON = ("{", "[", '"')


def _items(text: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the options in a text with their values. An option without a name has an empty one."""
    while text:
        option, equals, value = text.partition("=")
        is_bare = text.startswith(_JSON) or not equals or "," in option
        name = "" if is_bare else option.strip()
        try:
            parsed, text = _value(text if is_bare else value.strip())
        except ValueError as error:
            raise ValueError(
                f"{name or 'the text after the colon'} begins like JSON but is invalid: {error}"
            ) from error
        if name == "escalate" and text and isinstance(parsed, str) and not value.lstrip().startswith(_JSON):
            raise ValueError(
                f"what follows escalate={parsed} may belong to either scorer: quote escalate, as in "
                f'escalate="{parsed},{text}", or put it last'
            )
        if name or parsed != "":
            yield name, parsed


def _value(text: str) -> tuple[JsonValue, str]:
    """Return the value at the start of a text, and the rest after the comma that ends it."""
    if text.startswith(_JSON):
        value, end = cast("tuple[JsonValue, int]", json.JSONDecoder().raw_decode(text))
        behind = text[end:].lstrip()
        if behind and not behind.startswith(","):
            raise ValueError(f"expected a comma after it, found {behind!r}")
        return value, behind[1:]
    word, _, behind = text.partition(",")
    try:
        return cast("JsonValue", json.loads(f"0{word}" if word.startswith(".") else word)), behind
    except ValueError:
        return word.strip(), behind
