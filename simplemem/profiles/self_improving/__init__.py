"""The profile self-improving."""
