"""The profile supermemento."""
