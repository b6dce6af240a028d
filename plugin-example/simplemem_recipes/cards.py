"""An importer for simplemem: recipe cards, text files whose first line is the name of the dish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simplemem.importers import Source
from simplemem.importers.export import ExportedFile, Item, Skipped, make_note


def read(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Make a note of each card. A card without a name is skipped."""
    for path, file in files.items():
        name, _, text = file.read().decode().partition("\n")
        if not name.strip():
            yield Skipped(path, "its first line is empty")
            continue
        properties = {"tags": ["recipe"]}
        yield make_note(path, f"{name.strip()}.md", text, f"recipe-cards:{path}", properties)


SOURCE = Source(
    name="recipe-cards",
    about="Import recipe cards.\n\nEach card becomes a note.",
    example="simplemem import recipe-cards ~/cards",
    file="A folder of text files.",
    folder="recipes",
    reader="simplemem_recipes.cards:read",
    patterns=["*.txt"],
)
