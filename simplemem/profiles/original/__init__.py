"""The profile original."""
