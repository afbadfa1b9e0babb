"""Statistics: arrays in, numbers out. What cannot be said is ``None``, and never a NaN."""
