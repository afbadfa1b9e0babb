"""Config files, in TOML: docs/reference/config.md lists their keys."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, field_validator

from judgekit.errors import ConfigError, validation_message
from judgekit.judges.judge import Judge
from judgekit.judges.settings import unknown_setting_error
from judgekit.traces.ending import NoAnswer
from judgekit.traces.message import FrozenModel, JsonObject, Many

_OWN_FILE = re.compile(r"[^:]+\.py:[A-Za-z_]")
_PROMPT_FILE = re.compile(r"prompt:[^,=]*\.md(,|\Z)")


class ConfigFile(FrozenModel):
    """The settings in a config file, whose judges have no fallbacks yet.

    Attributes:
        store_text: Whether text of conversations is stored. If not, no file that judgekit writes has any of it.
        gate: The gates that every run has to meet, such as ``"tool_call_f1 >= 0.9"``.
        min_coverage: The share of the samples, from 0 to 1, that a number must cover to meet a gate. By default, half, unless
            a gate limits ``n``, ``coverage``, ``skipped`` or ``abstained`` of the scorer.
        no_answer: How recordings that stop after the user's message are scored: ``failed``, the default, or ``zero``.
        judges: The judges, by name.
        scorers: The scorers of a run that names none: tables, or texts as after ``--scorer``.
    """

    store_text: bool = True
    gate: Many[str] = ()
    min_coverage: float | None = Field(default=None, ge=0, le=1)
    no_answer: NoAnswer | None = None
    judges: dict[str, Judge] = Field(default_factory=dict[str, Judge])
    scorers: Many[JsonObject | str] = ()

    @field_validator("scorers", mode="before")
    @classmethod
    def _must_be_list(cls, scorers: object) -> object:
        if isinstance(scorers, dict):
            raise ValueError("write [[scorers]], in two brackets, above each scorer")
        return scorers


_Fallbacks = TypeAdapter(dict[str, list[str]])


def load_file(path: Path) -> tuple[ConfigFile, Mapping[str, Sequence[str]]]:
    """Return the settings in a file, and the names of the fallbacks of each judge."""
    try:
        tables = cast("JsonObject", _with_resolved_paths(path.parent, tomllib.loads(path.read_text(encoding="utf-8"))))
        judges = tables.get("judges")
        named = judges.items() if isinstance(judges, dict) else ()
        names = {name: table.pop("fallback", []) for name, table in named if isinstance(table, dict)}
        fallbacks = _Fallbacks.validate_python(names)
        return ConfigFile.model_validate(tables), fallbacks
    except RecursionError:
        raise ConfigError(f"{path}: cannot be read: nested too deeply") from None
    except FileNotFoundError:
        advice = "to resume a run that it made, put it back, or an empty file"
        raise ConfigError(f"{path}: cannot be read: No such file or directory; {advice}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except ValidationError as error:
        for problem in error.errors():
            if problem["type"] == "extra_forbidden":
                raise ConfigError(
                    f"{path}: {_unknown_key(*map(str, problem['loc']), value=problem['input'])}"
                ) from error
        raise ConfigError(f"{path}: {validation_message(error)}") from error


def _with_resolved_paths(folder: Path, value: JsonValue) -> JsonValue:
    """Return a value of a config, with its paths relative to the folder of the config."""
    if isinstance(value, list):
        return [_with_resolved_paths(folder, part) for part in value]
    if isinstance(value, str):  # may be a scorer as a text
        if _PROMPT_FILE.match(value):
            return f"prompt:{folder / value.removeprefix('prompt:')}"
        return str(folder / value) if _OWN_FILE.match(value) else value
    if not isinstance(value, dict):
        return value
    return {
        key: str(folder / part) if isinstance(part, str) and _is_path(key, part) else _with_resolved_paths(folder, part)
        for key, part in value.items()
    }


def _is_path(key: str, value: str) -> bool:
    return (key == "cache" and "://" not in value) or (key == "prompt" and value.endswith(".md"))


def _unknown_key(*path: str, value: object) -> ConfigError:
    """Return the error of an unknown table of config files, or of an unknown key in a judge's table."""
    *tables, key = path
    if not tables:
        return ConfigError.unknown("table", key, ConfigFile.model_fields)
    shown = json.dumps(value) if isinstance(value, int | float) else "..."
    _, _, *within = tables  # judges, the judge's name, and perhaps a table of its own
    return unknown_setting_error(f"key of [{'.'.join(tables)}]", "".join(within), key, f"params = {{{key} = {shown}}}")
