"""Reading recordings from files of any format, and writing samples."""
