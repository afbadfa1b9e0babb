"""One conversation out of many spans: model calls repeat their history, tools and agents have spans of their own."""

from judgekit.formats.merging.conversation import merged
from judgekit.formats.merging.folding import folded
from judgekit.formats.merging.step import Step
from judgekit.formats.merging.tools import by_content

__all__ = ["Step", "by_content", "folded", "merged"]
