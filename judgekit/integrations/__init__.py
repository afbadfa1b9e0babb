"""Other tools: judgekit's scorers in Inspect, and the scores of runs in Langfuse, Phoenix, MLflow and OpenTelemetry."""
