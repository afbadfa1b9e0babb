"""Checks of samples passed from Python code, with errors that say what was found and what to write instead."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from pydantic import BaseModel

from judgekit.errors import ConfigError, short_repr
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_MADE = "Sample.of([HumanMessage(...), AIMessage(...)])"


def check_samples(collection: object) -> Iterator[Sample]:
    """Return the samples in a collection. Those in a list or tuple are checked at once, others as they are consumed.

    Raises:
        ConfigError: The value is no collection, or an item in it is no sample.
    """
    if isinstance(collection, Sample):
        raise ConfigError("samples is one Sample: pass a list, [sample]")
    is_single = issubclass(type(collection), (BaseModel, Mapping))
    if is_single or not isinstance(collection, Iterable):
        raise _no_sample(collection, "samples")
    given = cast("Iterable[object]", collection)
    samples = (check_sample(candidate, f"samples[{index}]") for index, candidate in enumerate(given))
    return iter([*samples]) if isinstance(collection, list | tuple) else samples


def check_sample(candidate: object, name: str) -> Sample:
    """Return the sample unchanged."""
    if isinstance(candidate, Sample):
        return candidate
    raise _no_sample(candidate, name)


def _no_sample(wrong: object, called: str) -> ConfigError:
    kind = f"of type {type(wrong).__name__}"
    if isinstance(wrong, Trace):
        advice = 'wrap it in a sample, Sample(id="...", trace=trace)'
    elif isinstance(wrong, Mapping):
        advice = f"build a sample from it, {_MADE}, or write such rows to a .jsonl file and pass its path"
    elif hasattr(wrong, "ascore"):
        advice = "the scorers come after the samples, run(samples, scorers)"
    else:
        kind, advice = short_repr(wrong), f"read samples from a file, or build them with {_MADE}"
    return ConfigError(f"{called} is {kind}: {advice}")
