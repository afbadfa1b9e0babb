"""Scorers of answers that are right or wrong: texts that say the same, and labels that are equal, without a judge."""
