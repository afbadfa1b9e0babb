"""Aggregates: functions that turn the scores of a run into its numbers."""
