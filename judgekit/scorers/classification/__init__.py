"""Scorers of answers that are right or wrong, without a judge: texts with the same meaning, and equal labels."""
