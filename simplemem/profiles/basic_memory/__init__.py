"""The profile basic-memory."""
