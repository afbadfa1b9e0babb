"""Audits: how far a judge can be trusted, by the labels of people and by its own repeated verdicts."""
