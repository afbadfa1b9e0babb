"""How recordings are read from files of any format, and samples written."""
