"""Conclusions from runs: gates, comparisons, and audits of judges by human labels."""
