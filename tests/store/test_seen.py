"""What a room above the store has read: it is told what it lacks, until it has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simplemem.store import EnhancedStore
from simplemem.store.seen import Seen

Write = Callable[[str, str], Path]


def test_what_changed_is_noticed_until_it_was_taken_in(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    write("b.md", "---\nkind: fruit\n---\npear")
    plain_store.sync()
    seen = Seen(plain_store.bench, "kind")
    for _ in range(2):  # a failure between noticing and taking in loses nothing
        noticed = seen.noticed()
        assert noticed is not None and noticed.whole
        assert {each.path for each in noticed.notes} == {"a.md", "b.md"} and noticed.having == {"b.md"}
    seen.take_in(noticed)
    assert seen.noticed() is None
    plain_store.update("a", append="and quince")
    later = seen.noticed()
    assert later is not None and not later.whole
    assert [each.path for each in later.notes] == ["a.md"]


def test_a_file_that_is_another_or_gone_differs_from_what_was_read(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    for name in ("same.md", "changed.md", "gone.md", "let-go.md"):
        write(name, "plum")
    seen = Seen(plain_store.bench, "kind")
    for read in plain_store.bench.read(["same.md", "changed.md", "gone.md", "let-go.md"]):
        seen.keep(read)
    seen.forget("let-go.md")
    write("changed.md", "plum and quince")
    (vault / "gone.md").unlink()
    assert seen.differing({"same.md", "changed.md", "gone.md", "let-go.md"}) == {"changed.md", "gone.md", "let-go.md"}
