"""Names are found as the vault has them now, whoever changed it."""

from __future__ import annotations

from simplemem.store import EnhancedStore


def paths_of(store: EnhancedStore, typed: str) -> list[str]:
    return [match.path for match in store.find_names(typed)]


def test_a_new_moved_and_deleted_note_is_found_by_the_name_that_it_has(
    plain_store: EnhancedStore,
) -> None:
    assert paths_of(plain_store, "heron") == []
    plain_store.create("birds/heron", "It stands in the pond.")
    assert paths_of(plain_store, "heorn") == ["birds/heron.md"]

    plain_store.move("birds/heron", "birds/egret")
    assert paths_of(plain_store, "heron") == []
    assert paths_of(plain_store, "egrt") == ["birds/egret.md"]

    plain_store.delete("birds/egret")
    assert paths_of(plain_store, "egret") == []


def test_a_note_is_found_by_a_new_title_and_a_new_alias(plain_store: EnhancedStore) -> None:
    path = plain_store.root / "a.md"
    path.write_text("---\ntitle: Old title\n---\nText")
    plain_store.sync()
    assert paths_of(plain_store, "old ti") == ["a.md"]

    path.write_text("---\ntitle: New title\naliases: [Second name]\n---\nText")
    plain_store.sync()
    assert paths_of(plain_store, "old ti") == []
    assert paths_of(plain_store, "new ti") == ["a.md"]
    assert [match.name for match in plain_store.find_names("secnd name")] == ["Second name"]
