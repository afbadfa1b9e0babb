"""The cache of judges' replies."""
