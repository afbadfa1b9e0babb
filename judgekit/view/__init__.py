"""The page over all runs, which a server on this machine shows in a browser."""
