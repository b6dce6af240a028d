"""Texts for models: instructions from files, and hints with the tools that a client has."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from simplemem.tools.tool import Tool


_PROMPTS: Final = Path(__file__).with_name("prompts")


def read_prompt(name: str) -> str:
    """Return the text of a prompt that simplemem offers, one line per paragraph."""
    return read_for_models(_PROMPTS / f"{name}.md")


def read_for_models(file: Path) -> str:
    """Return a text with one line per paragraph. The file has shorter lines, for people."""
    text = file.read_text(encoding="utf-8")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")) + "\n"


_TOOL_TERMS: Final = {
    "Update the note to change it": "Use update_memory to change it",
    "Read the note, and update it": "Read the note, and change it with update_memory",
    "the history lists the latest": "memory_history lists the latest",
}
"""What the store says in a hint, and how to say it to a model that has the default tools."""

_SENTENCE_END: Final = re.compile(r"(?<=[.;])(?=\s)")


def in_tool_terms(hint: str) -> str:
    """Return a hint of the store with the names of the default tools."""
    for neutral, term in _TOOL_TERMS.items():
        hint = hint.replace(neutral, term)
    return hint


def without_missing_tools(text: str, tools: Collection[Tool]) -> str:
    """Return a text without the sentences about default tools that are not among `tools`.

    A sentence about an argument of such a tool is left out too.
    """
    from simplemem.tools.core import TOOLS  # not needed to start a server

    missing = _names_in(TOOLS) - _names_in(tools)
    sentences = [
        sentence
        for sentence in _SENTENCE_END.split(text)
        if not any(name in sentence for name in missing)
    ]
    remaining = "".join(sentences)
    if remaining.endswith(";"):
        return remaining.removesuffix(";") + "."
    return remaining


def _names_in(tools: Collection[Tool]) -> set[str]:
    """Return the names of tools, and those of their arguments as a call writes them: `name=`."""
    names = {tool.name for tool in tools}
    for tool in tools:
        names.update(f"{argument}=" for argument in tool.arguments)
    return names
