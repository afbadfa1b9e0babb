"""Several processes or machines work on one run: worker processes, Ray, shards, and merging shards."""
