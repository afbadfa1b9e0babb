"""Scorers of texts: the agent's last message beside references, without a judge."""
