"""judgekit scores recorded agent conversations, with deterministic scorers and LLM judges, and explains every score."""
