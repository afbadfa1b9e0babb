"""Scorers that compare the agent's tool calls with expected ones."""
