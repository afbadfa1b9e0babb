"""Message formats of providers, which many recording formats contain. What cannot be read raises a `TraceError` that names the place."""
