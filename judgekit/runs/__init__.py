"""Runs: scoring of many samples, and the storage and summary of their scores."""
