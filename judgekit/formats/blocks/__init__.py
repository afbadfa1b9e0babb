"""Message formats of providers, which many recording formats contain."""
