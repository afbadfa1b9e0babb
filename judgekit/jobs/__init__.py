"""Runs as jobs: their options, planning, resuming, adding scorers, and execution in one process or several."""
