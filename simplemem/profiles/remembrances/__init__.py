"""The profile remembrances."""
