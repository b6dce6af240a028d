"""The profile hmlr."""
