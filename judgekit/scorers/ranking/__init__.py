"""Scorers of rankings, which compare retrieved documents with grades of relevance, without a judge."""
