"""What an agent has learned, kept as notes: errors, solutions, decisions, patterns and insights, and what can be said
of all of them together. It stands above the store and the graph; nothing here speaks MCP."""

from typing import Final

TYPES: Final = ("decision", "error", "solution", "pattern", "insight")
