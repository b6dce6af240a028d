"""The profile chatgpt."""
