"""LLM judges: prompts, settings, providers, and the layers around them."""
