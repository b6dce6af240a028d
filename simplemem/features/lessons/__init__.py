"""What an agent has learned, kept as notes. It stands above the store and the graph; nothing here speaks MCP."""

from typing import Final

TYPES: Final = ("decision", "error", "solution", "pattern", "insight")
