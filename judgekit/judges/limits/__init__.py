"""Limits of judges: budgets and rates."""
