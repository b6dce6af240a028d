"""The profile anthropic-memory."""
