"""The index in PostgreSQL, for a vault that many servers share. Imported when a setting names it, and by nothing else."""
