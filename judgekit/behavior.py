"""Scorers of what an agent does, without a judge: limits on cost, time and calls, and flaws that code finds."""

from judgekit.scorers.behavior import (
    MaxCost,
    MaxMessages,
    MaxRepeatedCalls,
    MaxSeconds,
    MaxTokens,
    MaxToolCalls,
    MaxToolErrorRate,
)
from judgekit.scorers.flaws import ClaimsWithoutCall, ErrorsIgnored, InventedArguments, NeverSays, Unfinished

__all__ = [
    "ClaimsWithoutCall",
    "ErrorsIgnored",
    "InventedArguments",
    "MaxCost",
    "MaxMessages",
    "MaxRepeatedCalls",
    "MaxSeconds",
    "MaxTokens",
    "MaxToolCalls",
    "MaxToolErrorRate",
    "NeverSays",
    "Unfinished",
]
