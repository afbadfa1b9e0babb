"""Scorers that compare the agent's last message with references, without a judge."""
