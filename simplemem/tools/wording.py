"""Texts for models: instructions from files, and hints with the names of the tools that a client has."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simplemem.tools.tool import Tool


_PROMPTS = Path(__file__).with_name("prompts")


def read_prompt(name: str) -> str:
    """Return the text of a prompt that simplemem offers, one line per paragraph."""
    return read_for_models(_PROMPTS / f"{name}.md")


def read_for_models(file: Path) -> str:
    """Return a text with one line per paragraph. The file has shorter lines, for people."""
    text = file.read_text(encoding="utf-8")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")) + "\n"


_TOOL_TERMS = {  # what the store says in a hint, and what it means for a model
    "Update the note to change it": "Use update_memory to change it",
    "Read the note, and update it": "Read the note, and change it with update_memory",
    "the history lists the latest": "memory_history lists the latest",
}


def in_tool_terms(hint: str) -> str:
    """Return a hint of the store with the names of the default tools."""
    for neutral, term in _TOOL_TERMS.items():
        hint = hint.replace(neutral, term)
    return hint


def of_what_is_there(text: str, tools: Collection[Tool]) -> str:
    """A text for models without the sentences about default tools, and arguments of theirs, that are not among these."""
    from simplemem.tools.core import TOOLS

    words = [
        {w for t in some for w in (t.name, *(f"{a}=" for a in t.arguments))}
        for some in (TOOLS, tools)
    ]
    kept = (
        part
        for part in re.split(r"(?<=[.;])(?=\s)", text)
        if not any(w in part for w in words[0] - words[1])
    )
    return re.sub(r";\Z", ".", "".join(kept))
