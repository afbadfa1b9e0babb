"""Merging of spans into one conversation: model calls repeat their history, tools and agents have their own spans."""

from judgekit.formats.merging.conversation import join_calls, merge_steps
from judgekit.formats.merging.step import SpanStep
from judgekit.formats.merging.tools import distinct_tools

__all__ = ["SpanStep", "distinct_tools", "join_calls", "merge_steps"]
