"""Reports for people: terminal output, files, and HTML pages."""
