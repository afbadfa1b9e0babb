"""The base of scorers that compare tool calls with expected ones."""

from dataclasses import dataclass
from typing import get_args

from judgekit.errors import ConfigError, check_choice
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.message import Requestor
from judgekit.traces.sample import Sample


@dataclass(frozen=True, kw_only=True)
class ToolCallScorer(ScopedScorer):
    """The common options of scorers that compare tool calls with expected ones.

    With ``scope="tree"``, the calls of sub-agents count too, depth first: those of a sub-agent follow the call that
    started it. An expected call with an ``agent`` only matches a call of that agent. Where the recording does not tell
    the order of sub-agents that worked in parallel, the order of their calls is not compared, with a warning.

    Attributes:
        requestor: The side whose calls are compared.
        include_failed: Whether calls that resulted in an error count.
        include_delegations: Whether calls that started a sub-agent count; otherwise ``scope`` must be ``tree``.

    Raises:
        ConfigError: An option is unknown, or the options contradict each other.
    """

    requestor: Requestor = "assistant"
    include_failed: bool = True
    include_delegations: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("requestor", self.requestor, get_args(Requestor))
        if not self.include_delegations and self.scope == "own":
            raise ConfigError('include_delegations=False needs scope="tree", which shows what calls started sub-agents')

    async def _match(self, rules: ToolMatch, sample: Sample) -> Match | str:
        """Return the match of a sample's calls, or the reason why they cannot be matched."""
        return await Match.of(
            rules,
            sample,
            self.requestor,
            include_failed=self.include_failed,
            include_delegations=self.include_delegations,
        )
