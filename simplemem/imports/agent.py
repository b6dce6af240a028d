"""What Claude Code keeps of projects: `memory/*.md` below its folder of projects, and CLAUDE.md files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from simplemem.imports.markdown import contents, marked
from simplemem.imports.take import Item, Left


def read(folder: Path) -> Iterator[Item | Left]:
    """Each memory as it is, with where it comes from; a note for each, in a folder for each project."""
    return contents(folder, _note, lambda file: file.suffix == ".md" and (_is_memory(file) or _is_told(file)))


def _note(where: str, file: Path, data: bytes) -> Item | Left:
    above = file.absolute().parent
    project = above.parent.name if _is_memory(file) else re.sub(r"[^A-Za-z0-9]", "-", str(above))  # as Claude Code does
    return marked(where, f"{project.strip('-')}/{file.name}", file, data, f"claude-code:{project}/{file.name}")


def _is_memory(file: Path) -> bool:
    return file.absolute().parent.name == "memory"


def _is_told(file: Path) -> bool:
    return file.name.startswith("CLAUDE.")
