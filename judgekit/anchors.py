"""Anchors, by which a change of a judge is noticed: verdicts that are frozen, and asked for again later."""

from judgekit.analysis.drift import AnchorsCheck
from judgekit.jobs.anchors import FrozenAnchors, check_anchors, freeze_anchors

__all__ = ["AnchorsCheck", "FrozenAnchors", "check_anchors", "freeze_anchors"]
