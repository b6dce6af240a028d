"""The SQLite engine of the index."""
