"""The profile memento."""
