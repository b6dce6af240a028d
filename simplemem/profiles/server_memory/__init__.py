"""The profile server-memory."""
