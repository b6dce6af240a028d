"""What Claude Code keeps of projects: `memory/*.md` below its folder of projects, and CLAUDE.md files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simplemem.imports.markdown import files, text_of
from simplemem.imports.take import SOURCE, Item, Left
from simplemem.note.header import read_header
from simplemem.note.properties import set_property


def read(folder: Path) -> Iterator[Item | Left]:
    """Each memory as it is, with where it comes from; a note for each, in a folder for each project."""
    for each in files(folder):
        if isinstance(each, Left):
            continue
        path, file = each
        parts = file.absolute().parts
        is_memory = len(parts) > 2 and parts[-2] == "memory"
        if file.suffix != ".md" or not (is_memory or file.name.startswith("CLAUDE.")):
            continue
        project = parts[-3] if is_memory else parts[-2]
        text = text_of(file, path)
        if isinstance(text, Left):
            yield text
        elif read_header(text).problem is not None:
            yield Left(path, "its front matter cannot be read")
        else:
            source = f"claude-code:{project}/{file.name}"
            yield Item(
                path,
                f"{project.strip('-')}/{file.name}",
                set_property(text, SOURCE, source),
                source,
                file.stat().st_mtime,
            )
