"""Rules by folder: what is hidden is not there, what is read-only is not changed, and where nothing is deleted, nothing
goes by another way either."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError
from simplemem.models import Filter
from simplemem.store import EnhancedStore

CANARY = "quetzalcoatl"
Open = Callable[..., EnhancedStore]
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def house(write: Write) -> None:
    """Notes to be seen, and one that is not, which links and is linked."""
    write("tea.md", "# Tea\n\nOolong. See [[Private/diary]] and [[Archive/old]].\n")
    write("Archive/old.md", "Old leaves, see [[tea]].\n")
    write(
        "Private/diary.md",
        f"---\naliases: [Secret Plans]\ntags: [{CANARY}]\n---\n{CANARY} drinks [[tea]] oolong.\n",
    )
    write("Private/deep/more.md", f"More of {CANARY}.\n")
    write("Private/photo.png", b"\x89PNG")


# -- hidden


def everything_said(store: EnhancedStore) -> str:
    """All that a reader could ask for, in one text."""
    said: list[Any] = [
        store.search("oolong", explain=True, limit=50),
        store.search(CANARY, mode="text"),
        store.search("", limit=50),
        store.list(limit=100),
        store.backlinks("tea", limit=50),
        store.context("oolong", budget_tokens=4000).text,
        store.names(),
        store.names("Priv"),
        store.tags(),
        store.history(limit=200, diff=True),
        store.stats(),
        store.inspect(),
        store.state(),
        store.read("Archive/old"),
    ]

    def why(name: str) -> Any:
        return store.search("oolong", why=name)

    for name in (
        "Private/diary",
        "diary",
        "Secret Plans",
        "[[diary]]",
        "private/DIARY",
        "Private/deep/more",
    ):
        for ask in (
            store.read,
            store.backlinks,
            store.resolve,
            store.history,
            store.undo,
            store.delete,
            why,
        ):
            try:
                said.append(ask(name))
            except SimplememError as error:
                said.append(
                    {key: value for key, value in error.as_dict().items() if key != "message"}
                )
                assert error.code == "not_found", (ask, name)
    return repr(said)


def test_what_is_hidden_is_in_no_answer(opened: Open, house: None) -> None:
    with opened() as person:
        person.sync()
        assert "Private/diary" in person.names()
        person.update("Private/diary", append="A new line.")
        person.delete("Private/deep/more")
    with opened(hidden=["Private/"]) as store:
        store.sync()
        said = everything_said(store)
        assert store.list().total == 2
        assert store.stats()["notes"] == 2
    for own in (
        f"Found(query='{CANARY}'",
        f"absent=('{CANARY}',)",
        f"No memory holds: {CANARY}",
    ):  # it was asked for
        said = said.replace(own, "")
    assert CANARY not in said
    # What a note that is seen says itself is seen: its link, which leads nowhere here.
    own_words = ("[[Private/diary]]", "See Private/diary and", "'unresolved': ['Private/diary']")
    for words in own_words:
        said = said.replace(words, "")
    assert "diary" not in said
    assert "Secret Plans" not in said


def bytes_of_index(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def test_what_is_hidden_was_never_in_the_index(opened: Open, house: None, vault: Path) -> None:
    with opened(hidden=["Private/"]) as store:
        store.sync()
        path = store._parts.index.path
    assert CANARY.encode() not in bytes_of_index(path)
    with opened() as person:
        person.sync()
        assert person.search(CANARY, mode="text").hits
        assert person._parts.index.path != path
    assert CANARY.encode() in bytes_of_index(person._parts.index.path)
    assert CANARY.encode() not in bytes_of_index(path)
    with opened(hidden=["Private/"]) as store:
        assert not store.search(CANARY, mode="text").hits


def test_a_hidden_note_and_one_that_never_was_are_refused_alike(opened: Open, house: None) -> None:
    with opened(hidden=["Private/"]) as store:
        store.sync()
        for there, never in (
            ("Private/diary", "Private/dairy"),
            ("Private/deep/more", "Private/deep/mere"),
        ):
            for ask in (
                lambda name: store.read(name),
                lambda name: store.update(name, append="x"),
                lambda name: store.change_tags(name, {"a": True}),
                lambda name: store.create(name, "x"),
                lambda name: store.create(name, "x", overwrite=True),
                lambda name: store.move("tea", name),
                lambda name: store.move(name, "mine"),
                lambda name: store.delete(name),
                lambda name: store.history(name),
                lambda name: store.search("tea", filter=Filter.of(link_to=name)),
            ):
                told = []
                for name in (there, never):
                    with pytest.raises(SimplememError) as refused:
                        ask(name)
                    told.append(str(refused.value.as_dict()).replace(name, "NAME"))
                assert told[0] == told[1]


def test_a_version_of_a_hidden_note_is_no_version(opened: Open, house: None) -> None:
    with opened() as person:
        version = person.update("Private/diary", append="x").version
        moved = person.move(
            "tea", "drinks/oolong"
        ).version  # this rewrites the link in the hidden note too
    with opened(hidden=["Private/"]) as store:
        for ask in (lambda: store.read("x", version=version), lambda: store.undo(version)):
            with pytest.raises(NotFound):
                ask()
        with pytest.raises(ReadOnly) as refused:
            store.undo(moved)
        assert "Private" not in str(refused.value.as_dict())
        assert {entry.name for entry in store.history()} == {"tea", "Archive/old"}
    with opened() as person:
        assert person.undo(moved).name == "tea"


# -- read-only folders


def test_what_is_read_only_is_read_and_not_changed(opened: Open, house: None, vault: Path) -> None:
    before = (vault / "Archive" / "old.md").read_bytes()
    with opened(read_only=["Archive/"]) as store:
        store.sync()
        assert "Archive/old" in [hit.name for hit in store.search("leaves").hits]
        assert store.read("Archive/old").text
        for write in (
            lambda: store.create("Archive/new", "x"),
            lambda: store.create("Archive/old", "x", overwrite=True),
            lambda: store.update("Archive/old", append="x"),
            lambda: store.change_tags("old", {"todo": True}),
            lambda: store.write_text(
                "Archive/old", "x", if_sha256=store.read("Archive/old").sha256
            ),
            lambda: store.move("Archive/old", "new"),
            lambda: store.move("tea", "Archive/tea"),
            lambda: store.move("tea", "archive/tea"),
            lambda: store.delete("Archive/old"),
        ):
            with pytest.raises(ReadOnly, match="is read-only here"):
                write()
        assert store.history() == ()
        assert store.create("new", "x").changed
    assert (vault / "Archive" / "old.md").read_bytes() == before
    assert sorted(path.name for path in (vault / "Archive").iterdir()) == ["old.md"]


def test_a_move_that_would_rewrite_a_link_in_a_read_only_note_is_refused_whole(
    opened: Open, write: Write
) -> None:
    write("a/tea.md", "Oolong.\n")
    write("Archive/old.md", "See [[a/tea]].\n")
    with opened(read_only=["Archive/"]) as store:
        store.sync()
        with pytest.raises(ReadOnly, match="Archive/old"):
            store.move("a/tea", "b/tea")
        assert store.read("a/tea").text == "Oolong.\n"
        assert store.history() == ()


# -- no delete


def test_where_nothing_may_be_deleted_nothing_goes_by_any_way(
    opened: Open, house: None, vault: Path
) -> None:
    with opened(no_delete=True) as store:
        made = store.create("new", "Text.")
        for way in (
            lambda: store.delete("new"),
            lambda: store.delete("new", if_sha256=made.sha256),
            lambda: store.undo(made.version),
            lambda: store.undo("new"),
            lambda: store.create("new", "Other text.", overwrite=True),
        ):
            with pytest.raises(ReadOnly, match="deleting is not allowed here"):
                way()
        assert (vault / "new.md").read_text().endswith("Text.\n")
        changed = store.update("new", content="Other text.")
        assert store.undo(changed.version).sha256 == made.sha256
        assert store.move("new", "newer").name == "newer"
        assert store.undo("newer").name == "new"


# -- scopes


@pytest.mark.parametrize("folder", ["atoms", "documents"])
def test_no_note_is_written_or_moved_into_a_scope_whose_folder_is_hidden(
    opened: Open, folder: str
) -> None:
    with opened(hidden=[f"{folder}/bob/"]) as store:
        store.create("papers/x", "The account is 666.", metadata={"scope": "bob"})
        with pytest.raises(Invalid, match="names the scope 'bob'"):
            store.create(f"{folder}/x", "The account is 666.", metadata={"scope": "bob"})
        with pytest.raises(Invalid, match="names the scope 'bob'"):
            store.move("papers/x", f"{folder}/x")
        store.move("papers/x", "papers/y")
        store.move("papers/y", f"{folder}/ada/y")
    with opened() as store:
        store.move(f"{folder}/ada/y", f"{folder}/x")
