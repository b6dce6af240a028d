"""What a benchmark consists of: documents in haystacks, and questions with their evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

_NOT_IN_NAMES: Final = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]')


@dataclass(frozen=True)
class Document:
    """A Markdown note: its name, without folder and suffix, and the text of its file."""

    name: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Return the lines of the text below the frontmatter that are not blank."""
        body = self.text
        if body.startswith("---\n"):
            body = body.split("\n---\n", 1)[1]
        return [line for line in body.split("\n") if line.strip()]


@dataclass(frozen=True)
class Question:
    """A question about a haystack. Without evidence, nothing in the haystack answers it."""

    text: str
    kind: str
    haystack: str
    evidence: frozenset[str]  # names of documents


@dataclass(frozen=True)
class Benchmark:
    """Questions and the haystacks that they are about.

    A document may have another date in another haystack, so its text belongs to the haystack.
    """

    name: str
    haystacks: dict[str, tuple[Document, ...]]
    questions: tuple[Question, ...]

    @cached_property
    def corpus(self) -> tuple[Document, ...]:
        """Return the documents of all haystacks, each name once, with the text that came first."""
        documents: dict[str, Document] = {}
        for haystack in self.haystacks.values():
            for document in haystack:
                documents.setdefault(document.name, document)
        return tuple(documents.values())

    def first(self, count: int) -> Benchmark:
        """Return the benchmark with its first questions only, and the haystacks of these."""
        questions = self.questions[:count]
        asked = {question.haystack for question in questions}
        haystacks = {key: notes for key, notes in self.haystacks.items() if key in asked}
        return Benchmark(self.name, haystacks, questions)


def valid_name(text: str) -> str:
    """Return a text without the characters that the name of a note cannot contain."""
    return _NOT_IN_NAMES.sub("-", text)


def write_notes(documents: Sequence[Document], folder: Path) -> None:
    """Write each document as a Markdown file of the folder, which is created if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents:
        file = folder / f"{document.name}.md"
        file.write_text(document.text, encoding="utf-8", newline="\n")
