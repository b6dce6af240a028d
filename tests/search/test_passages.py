"""What a context pack quotes of one note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def test_a_short_note_goes_in_whole(plain_store: EnhancedStore, write: Write) -> None:
    write("crane.md", f"# Crane\n\n{'Bees. ' * 150}\n\n## Rust\n\nThe quetzal.\n\n{'Sea. ' * 150}")
    plain_store.sync()
    [item] = plain_store.context("quetzal", budget_tokens=3000).items
    assert item["line"] == 1
    text = plain_store.context("quetzal", budget_tokens=3000).text
    assert text.count("Bees.") == 150
    assert text.count("Sea.") == 150
    assert plain_store.context("quetzal", budget_tokens=400).text.count("Bees.") < 150


def test_a_section_that_the_query_names_goes_in_whole(
    plain_store: EnhancedStore, write: Write
) -> None:
    steps = "\n".join(
        f"{k}. Do the thing with number {k} until it is done well." for k in range(40)
    )
    other = "\n\n".join(f"## Part {k}\n\n{'The cylinder is filled. ' * 20}" for k in range(9))
    write(
        "Runbook.md", f"# Runbook\n\n{other}\n\n## Fill the cylinder\n\n{steps}\n\n## End\n\nBees."
    )
    plain_store.sync()
    packed = plain_store.context("how do I fill the cylinder in the runbook", budget_tokens=2000)
    assert steps in packed.text
    assert "Fill the cylinder" in packed.items[0]["heading"]


def test_of_two_sections_with_the_same_heading_the_first_is_the_named_one(
    plain_store: EnhancedStore, write: Write
) -> None:
    steps = "\n".join(f"{k}. Do the thing with number {k} until it is done." for k in range(40))
    other = "\n\n".join(f"## Part {k}\n\n{'The lid is cleaned. ' * 25}" for k in range(9))
    bees = "Bees hum around the hive. " * 30
    write(
        "Runbook.md",
        f"# Runbook\n\n{other}\n\n## Fill the cylinder\n\n{steps}\n\n## Hive\n\n{bees}\n\n"
        f"## Fill the cylinder\n\n{'Once more, with air. ' * 30}",
    )
    plain_store.sync()
    packed = plain_store.context("how do I fill the cylinder in the runbook", budget_tokens=2000)
    assert steps in packed.text
    assert "Bees" not in packed.text


def test_text_that_many_notes_have_is_not_quoted_at_the_ends_of_a_passage(
    plain_store: EnhancedStore, write: Write
) -> None:
    footer = "Written by the harbour committee. Please print this page on both sides."
    for k in range(12):
        write(
            f"n{k:02}.md",
            f"The harbour has crane number {k}, which is {k} metres tall.\n\n{footer}\n",
        )
    plain_store.sync()
    packed = plain_store.context("harbour crane", budget_tokens=5000)
    assert len(packed.items) == 12
    assert "committee" not in packed.text
