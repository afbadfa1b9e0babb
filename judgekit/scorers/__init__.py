"""What is measured: one file for each family of scorers."""
