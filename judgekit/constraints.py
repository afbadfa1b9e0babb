"""Constraints on tool calls, which `judgekit.ToolConstraints` checks: a tool is required, forbidden, or comes first."""

from judgekit.scorers.tool_calls.constraints import (
    Before,
    Count,
    Forbid,
    MaxSteps,
    NoRepeat,
    Require,
    SchemaValid,
    Status,
)

__all__ = ["Before", "Count", "Forbid", "MaxSteps", "NoRepeat", "Require", "SchemaValid", "Status"]
