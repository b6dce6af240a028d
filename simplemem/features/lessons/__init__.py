"""Lessons: what an agent has learned, kept as notes.

`lesson.py` is the model and `service.py` the service, which changes one lesson at a time;
`relations.py` relates lessons, and `verdicts.py` writes which of them contradict each other, as an
agent, the language model (`reviewing.py`) or the rules decide. `analysis.py` compares
and counts lessons with the help of the other modules. Nothing here knows MCP or the command line.
"""

from typing import Final

TYPES: Final = ("decision", "error", "solution", "pattern", "insight")

VAULT_FOLDER: Final = ".claude-memory"
"""The folder in the current one that has the lessons if no vault is named."""

VAULT_VARIABLE: Final = "MEMORY_STORAGE_PATH"
"""The environment variable that names another folder for lessons."""
