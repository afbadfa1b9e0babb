"""How an LLM is asked: prompts, judges, the providers that answer and the layers around them."""
