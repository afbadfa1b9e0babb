"""The failures of a run as issues: grouped, counted with an interval, and followed over runs."""
