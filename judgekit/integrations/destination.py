"""Systems that scores are exported to, and the counts of an export."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import Field

from judgekit.integrations.exported import ExportedScore
from judgekit.traces.message import FrozenModel


class ExportResult(FrozenModel):
    """The counts of an export of a run to another system.

    Attributes:
        system: The system, such as ``Langfuse``, and its address.
        exported: The number of scores that were sent, including those that replaced an earlier export of themselves.
        unscored: The number of skipped, failed and abstained scores that were not sent, since the system only holds
            scores with a value.
        left_out: The number of other scores that were not sent, by reason.
    """

    system: str
    exported: int = 0
    unscored: int = 0
    left_out: dict[str, int] = Field(default_factory=dict[str, int])


@dataclass
class ExportTally:
    """The counts of an export, while it goes on; see `ExportResult`."""

    exported: int = 0
    unscored: int = 0
    left_out: Counter[str] = field(default_factory=Counter[str])


class Destination(Protocol):
    """A system that scores are exported to.

    Attributes:
        system: Its name and address.
    """

    system: str

    async def send(self, scores: Sequence[ExportedScore], tally: ExportTally, /) -> None:
        """Send scores, and count what became of them.

        Raises:
            ExportError: The system refuses them or cannot be reached.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
