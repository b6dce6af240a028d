"""A vault that is a branch of a git repository."""
