"""The data model of recordings: messages, traces and samples."""
