"""Scorers of rankings: what was retrieved, in its order, held against grades of relevance, without a judge."""
