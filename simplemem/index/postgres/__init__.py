"""The index in PostgreSQL, for a vault that several servers share. Imported when a setting names it."""
