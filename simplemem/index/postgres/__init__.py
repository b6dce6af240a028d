"""The index in PostgreSQL, for a vault that several servers share. Imported only if it is set."""
