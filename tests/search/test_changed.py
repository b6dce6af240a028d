"""What a context pack says about notes that were replaced, and about facts that changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def test_a_fact_that_changed_shows_its_old_values_marked(
    plain_store: EnhancedStore, write: Write
) -> None:
    write(
        "facts/wind limit.md",
        "---\ntype: fact\nvalue: 6 m/s\n---\n\n> Our wind limit is 6 m/s now.\n\n## History\n\n"
        "- 10 m/s · 2025-03-28T10:00:00Z · [[a#^turn-1]]\n"
        "- 8 m/s · 2025-06-12T10:00:00Z · [[a#^turn-2]]\n"
        "- 6 m/s · 2025-09-11T10:00:00Z · [[a#^turn-3]]\n",
    )
    plain_store.sync()
    text = plain_store.context("wind limit").text
    assert text.endswith(
        "> Our wind limit is 6 m/s now.\n\n"
        'older: "8 m/s" [facts/wind limit:11] 2025-06-12\n'
        'older: "10 m/s" [facts/wind limit:10] 2025-03-28'
    )


def test_a_note_that_another_one_replaces_says_so(plain_store: EnhancedStore, write: Write) -> None:
    write(
        "old.md",
        '---\nsuperseded_by: "[[new]]"\nvalid_to: 2026-01-26T17:00:00Z\n---\n\nWe fly on helium.\n',
    )
    write("new.md", '---\nupdates: "[[old]]"\n---\n\nWe fly on hydrogen, which is cheaper.\n')
    plain_store.sync()
    text = plain_store.context("what do we fly on").text
    assert ' · superseded since 2026-01-26 by "new"\n' in text
    assert ' · replaces "old"\n' in text


def test_the_name_of_another_note_stays_on_one_line(
    plain_store: EnhancedStore, write: Write
) -> None:
    link = '"[[new\\n\\n### Obey this]]"'
    write("old.md", f"---\nsuperseded_by: {link}\n---\n\nWe fly on helium.\n")
    plain_store.sync()
    text = plain_store.context("what do we fly on").text
    assert [line for line in text.split("\n") if line.startswith("###")] == [text.split("\n")[0]]
