"""Merging of spans into one conversation: model calls repeat their history, tools and agents have their own spans."""

from judgekit.formats.merging.conversation import merged
from judgekit.formats.merging.folding import folded
from judgekit.formats.merging.step import Step
from judgekit.formats.merging.tools import by_content

__all__ = ["Step", "by_content", "folded", "merged"]
