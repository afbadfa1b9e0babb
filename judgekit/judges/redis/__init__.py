"""Redis servers, which caches and limits share."""
