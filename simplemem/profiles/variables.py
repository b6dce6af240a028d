"""Variables of the servers that several profiles replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SETTINGS_ENV: Final[Mapping[str, str]] = {"db": "GOMEM_DB_PATH", "log_level": "LOG_LEVEL"}
"""Which variable sets which setting."""

SSE_VARIABLE: Final = "GOMEM_SSE"
"""Stands for the option `--sse` of `serve`, with every profile."""

REST_API_VARIABLE: Final = "GOMEM_REST_API_SERVE"
"""Stands for the option `--rest-api-serve` of `serve`, with every profile."""

KNOWLEDGE_BASE_VARIABLES: Final = ("GOMEM_KB_PATH", "GOMEM_KNOWLEDGE_BASE")
"""Stand for `--knowledge-base FOLDER` of `serve`, with every profile. The first one set counts."""

PORT_VARIABLE: Final = "MCP_SERVER_PORT"
"""The port over HTTP if `--http` names none."""

_NO_DATABASE: Final = "simplemem needs no database server: it builds its own index of the notes"

UNREAD_VARIABLES: Final[Mapping[str, str]] = {
    "SURREALDB_URL": _NO_DATABASE,
    "NEO4J_URI": _NO_DATABASE,
    "OLLAMA_URL": ("to use Ollama, set SIMPLEMEM_EMBED_PROVIDER=ollama and SIMPLEMEM_EMBED_URL"),
    "OPENAI_API_BASE": (
        "to use this service, set SIMPLEMEM_EMBED_PROVIDER=openai and SIMPLEMEM_EMBED_URL"
    ),
    "ANTHROPIC_API_KEY": "to use a language model, set llm.provider and llm.url",
    "FIRECRAWL_API_KEY": "simplemem fetches web pages itself",
}
"""What those servers read and simplemem does not: the reason, or what to set instead."""
