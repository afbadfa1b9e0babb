"""What was recorded: messages, traces and samples, and how they are read from files."""
