"""Statistics: arrays in, numbers out. Undefined results are ``None``, never NaN."""
