"""Tool-call scorers: the calls that the agent made, held against those that it should have made."""
