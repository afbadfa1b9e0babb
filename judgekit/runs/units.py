"""The independent units of a run: groups of samples, and recordings that several samples share."""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

Name = TypeVar("Name", bound=Hashable)


class CopiedRecording(NamedTuple):
    """The number of samples of a group, or of no group, that have a recording with this hash, and the first of them."""

    hash: int
    group: str | None
    samples: int
    first: int


class RunUnits:
    """The units of samples with copies: those with the same recording, which every interval counts once.

    Groups that have a recording in common are joined, since copies of a task under another name tell nothing new.
    """

    def __init__(self, copied: Iterable[CopiedRecording]) -> None:
        self._names: dict[int, str] = {}
        names = [(self._names.setdefault(key, f"recording of #{first}"), group) for key, group, _, first in copied]
        self._joined = joined((name, name if group is None else group) for name, group in names)

    def of(self, group: str | None, recording: int | None) -> str | None:
        """Return the name of the unit that a sample or its group shares with copies; ``None`` if there are none."""
        name = group if group is not None else None if recording is None else self._names.get(recording)
        return None if name is None else self._joined.get(name)


def count_copies(recordings: Iterable[CopiedRecording]) -> int:
    """Return the number of samples with the recording of another one; equal trials of one group are no copies."""
    copies = 0
    largest: dict[int, int] = {}
    for recording, group, samples, _ in recordings:
        copies += samples
        largest[recording] = max(largest.get(recording, 1), 1 if group is None else samples)
    return copies - sum(largest.values())


def joined(links: Iterable[tuple[Name, Name]]) -> Mapping[Name, Name]:
    """Return one name for all names that are linked, directly or by others."""
    members: dict[Name, list[Name]] = {}
    for pair in links:
        less, more = sorted((members.setdefault(name, [name]) for name in pair), key=len)
        if less is not more:
            more += less
            members |= dict.fromkeys(less, more)
    return {name: names[0] for name, names in members.items()}
