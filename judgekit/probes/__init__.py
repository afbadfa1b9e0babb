"""Probes of a judge's resistance to prompt injection: pairs of clean and attacked conversations, and their outcomes."""
