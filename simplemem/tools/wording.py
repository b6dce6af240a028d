"""Texts for models: instructions from files, and hints with the tools that a client has."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simplemem.errors import Hint, HintSentence

if TYPE_CHECKING:
    from simplemem.tools.tool import Tool

_PROMPTS: Final = Path(__file__).with_name("prompts")


def read_prompt(name: str) -> str:
    """Return the text of a prompt that simplemem offers, one line per paragraph.

    `name` is that of its file in `tools/prompts`, without `.md`. Raises FileNotFoundError if there
    is none.
    """
    return read_for_models(_PROMPTS / f"{name}.md")


def read_for_models(file: Path) -> str:
    """Return a text with one line per paragraph. The file has shorter lines, for people."""
    text = file.read_text(encoding="utf-8")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")) + "\n"


def hint_for_tools(hint: str, tools: Collection[Tool]) -> str:
    """Return the hint of an error for a client that has these tools.

    A sentence about a tool or an argument that the client lacks is left out. A plain text, which
    has no such sentences, is returned unchanged.
    """
    if not isinstance(hint, Hint):
        return hint
    return hint.worded(lambda sentence: _words_for_tools(sentence, tools))


def _words_for_tools(sentence: HintSentence, tools: Collection[Tool]) -> str | None:
    """Return the words of a sentence for a client with these tools.

    The first tool that has a phrase for it says it. Otherwise the words are those for Python, or
    None if the sentence is about a default tool or an argument that the client lacks.
    """
    for tool in tools:
        if sentence.key in tool.phrases:
            return tool.say(sentence.key, sentence.values)

    from simplemem.tools.core import TOOLS  # not needed to start a server

    is_missing = any(sentence.key in tool.phrases for tool in TOOLS)
    if sentence.argument:
        is_missing = not any(sentence.argument in tool.arguments for tool in tools)
    if is_missing:
        return None
    return sentence.text
