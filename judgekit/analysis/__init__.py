"""What runs prove: gates, comparisons, and judges held against the labels of people."""
