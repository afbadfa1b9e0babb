"""The labels of failures: a file of groups, in which each label has a definition."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError

from judgekit.errors import ConfigError, validation_message
from judgekit.resources import resource_folder

NONE_VISIBLE = "none_visible"  # the label of a recording that shows no failure, whatever the file says
_MOST_BYTES, _MOST_LABELS = 100_000, 100
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Line = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_file = TypeAdapter(dict[_Name, dict[_Name, _Line]])


def read_failure_labels(path: Path | None) -> Mapping[str, tuple[str, str]]:
    """Return the group and the definition of each label in a file, or in that of judgekit.

    Raises:
        ConfigError: It cannot be read, or is no file of labels.
    """
    path = path or resource_folder("prompts") / "failure_labels.toml"
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError(f"has more than {_MOST_BYTES:,} bytes")
        groups = _file.validate_python(tomllib.loads(text.decode("utf-8-sig")))
        pairs = [(name, (group, line)) for group, lines in groups.items() for name, line in lines.items()]
        labels, is_printable = dict(pairs), all(line.isprintable() for _, (_, line) in pairs)
        if NONE_VISIBLE in labels or not (is_printable and 0 < len(labels) == len(pairs) <= _MOST_LABELS):
            raise ValueError(
                f"expected 1 to {_MOST_LABELS} labels, each once, in a line; {NONE_VISIBLE} is always there"
            )
    except (OSError, ValueError, RecursionError) as error:
        problem = validation_message(error) if isinstance(error, ValidationError) else error
        raise ConfigError(f"labels: {path}: {problem}") from error
    return labels
