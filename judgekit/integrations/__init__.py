"""Scores in other tools: Inspect, MLflow, OpenTelemetry."""
