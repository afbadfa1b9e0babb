"""Checks of samples passed from Python code, with errors that say what was found and what to write instead."""

from collections.abc import Iterable, Iterator, Mapping
from io import IOBase
from typing import cast

from judgekit.errors import ConfigError, short_repr
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_MESSAGES = (SystemMessage, HumanMessage, AIMessage, ToolMessage)
_VOWELS = tuple("AEIOaeio")
_MADE = "Sample.of([HumanMessage(...), AIMessage(...)])"


def check_samples(found: object) -> Iterator[Sample]:
    """Return the samples in a collection. Those in a list or tuple are checked at once, others as they are consumed.

    Raises:
        ConfigError: The value is no collection, or an item in it is no sample.
    """
    if isinstance(found, Sample):
        raise ConfigError("samples is one Sample: pass a list, [sample]")
    if _is_single_object(found) or not isinstance(found, Iterable):
        raise _no_sample(found, "samples")
    given = cast("Iterable[object]", found)
    samples = (check_sample(one, f"samples[{place}]") for place, one in enumerate(given))
    return iter([*samples]) if isinstance(found, list | tuple) else samples


def check_sample(found: object, name: str) -> Sample:
    """Return the sample unchanged.

    Raises:
        ConfigError: The value is not a sample. The error refers to it as ``name``.
    """
    if isinstance(found, Sample):
        return found
    raise _no_sample(found, name)


def _no_sample(found: object, called: str) -> ConfigError:
    name = type(found).__name__
    kind = f"an {name}" if name.startswith(_VOWELS) else f"a {name}"
    if isinstance(found, Trace):
        advice = 'wrap it in a sample, Sample(id="...", trace=trace)'
    elif isinstance(found, _MESSAGES):
        advice = f"a sample is a whole conversation, {_MADE}"
    elif isinstance(found, Mapping):
        advice = f"build a sample from it, {_MADE}, or write such rows to a .jsonl file and pass its path"
    elif isinstance(found, list | tuple):
        advice = "if it is the messages of a conversation, build a sample from them, Sample.of(messages)"
    elif isinstance(found, IOBase):
        advice = "pass the path of the file"
    elif _is_table(found):
        advice = "write it to a .csv or .parquet file and pass its path"
    elif hasattr(found, "ascore"):
        advice = "the scorers come after the samples, run(samples, scorers)"
    elif isinstance(found, str):
        kind, advice = short_repr(found), "pass a path on its own; a folder or a pattern reads many files"
    else:
        kind, advice = short_repr(found), f"read samples from a file, or build them with {_MADE}"
    return ConfigError(f"{called} is {kind}: {advice}")


def _is_single_object(found: object) -> bool:
    """Return whether a value can be iterated over but is a single thing and not a collection of samples."""
    return isinstance(found, (Trace, Mapping, IOBase, *_MESSAGES)) or _is_table(found)


def _is_table(found: object) -> bool:
    return type(found).__name__ == "DataFrame"
