"""Notes in a branch of a git repository."""
