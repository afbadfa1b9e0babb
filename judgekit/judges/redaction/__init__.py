"""What judges must not see."""
