"""Checks of what a judge cites."""

from collections.abc import Iterable

from judgekit.traces.sample import Sample


def must_exist(cited: Iterable[int], sample: Sample) -> None:
    """Checks message numbers that a judge cited.

    Raises:
        ValueError: A message of that number is not there.
    """
    last = len(sample.trace.messages)
    if absent := [number for number in cited if not 1 <= number <= last]:
        raise ValueError(f"cites the messages {absent}; the conversation has messages 1 to {last}")
