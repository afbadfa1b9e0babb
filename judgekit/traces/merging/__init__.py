"""One conversation out of many spans: model calls repeat their history, tools and agents have spans of their own."""

from judgekit.traces.merging.conversation import merged
from judgekit.traces.merging.folding import folded
from judgekit.traces.merging.step import Step

__all__ = ["Step", "folded", "merged"]
