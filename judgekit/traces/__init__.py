"""The model of what was recorded: messages, traces and samples."""
