"""Redaction: removes personal data and secrets from samples."""
