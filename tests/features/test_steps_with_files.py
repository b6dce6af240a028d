"""A step of notes may hold a file that is none, such as the original beside a document: all or nothing, one undo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import Conflict, TooLong
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.note_type import NoteType
from simplemem.store import EnhancedStore, open_store

PDF, NOTE = "papers/files/Plan.pdf", "papers/Plan.md"
DATA = b"%PDF-1.7\r\n\x00\xff\xfe rest\n"


@dataclass(frozen=True)
class Paper:
    path: str
    sha256: str
    is_own: bool = True


KIND = NoteType(
    "papers", "paper", lambda read: Paper(read.path, read.sha256), lambda paper: paper.path
)


def papers(store: EnhancedStore) -> NoteCollection[Paper]:
    return store.extension.services.setdefault("papers", NoteCollection(store.extension, KIND))


def keep(
    store: EnhancedStore, data: bytes = DATA, text: str = "The plan, from [[Plan.pdf]].\n"
) -> Any:
    def draft(step: ChangeSet) -> None:
        if NOTE in papers(store).items:
            step.text(NOTE)
        step.put(PDF, data)
        step.put(NOTE, text)

    return papers(store).change(draft, {"who": "ida"})[1]


def test_the_file_is_written_to_the_byte_beside_the_note_that_links_to_it(
    plain_store: EnhancedStore,
) -> None:
    carried = keep(plain_store)
    assert (plain_store.root / PDF).read_bytes() == DATA and carried.texts.keys() == {NOTE}
    assert papers(plain_store).items.keys() == {NOTE} and not carried.warnings
    assert plain_store.extension.resolve_links([("Plan.pdf", NOTE)]) == [PDF]
    assert [note.path for note in plain_store.extension.list_all()] == [NOTE]  # a file is no note
    with papers(plain_store).reading():
        assert papers(plain_store).items.keys() == {NOTE}


def test_one_undo_takes_back_both_and_another_brings_them_back(plain_store: EnhancedStore) -> None:
    version = keep(plain_store).written[0].version
    undone = plain_store.undo(version)
    assert not (plain_store.root / PDF).exists() and not (plain_store.root / NOTE).exists()
    with papers(plain_store).reading():
        assert not papers(plain_store).items
    plain_store.undo(undone.version)
    assert (plain_store.root / PDF).read_bytes() == DATA and (plain_store.root / NOTE).exists()


def test_a_file_that_is_there_is_replaced_and_comes_back(plain_store: EnhancedStore) -> None:
    keep(plain_store)
    version = keep(plain_store, b"\x00new", "Another plan.\n").written[0].version
    assert plain_store.extension.bytes_of(PDF) == b"\x00new"
    plain_store.undo(version)
    assert (
        plain_store.extension.bytes_of(PDF) == DATA
        and "Plan.pdf" in (plain_store.root / NOTE).read_text()
    )
    assert plain_store.extension.bytes_of("papers/none.pdf") is None


def test_the_same_file_again_is_no_change(plain_store: EnhancedStore) -> None:
    keep(plain_store)
    assert keep(plain_store).written == () and len(plain_store.history()) == 2


def test_what_cannot_be_written_leaves_nothing_behind(
    plain_store: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.vault.folder.disk.MAX_FILE_BYTES", 100)
    with pytest.raises(TooLong):
        keep(plain_store, b"\x00" * 101)
    assert not list(plain_store.root.rglob("Plan*"))


def test_a_file_that_another_program_changes_meanwhile_is_looked_at_again(
    plain_store: EnhancedStore,
) -> None:
    keep(plain_store)
    contents: list[bytes | None] = []

    def draft(step: ChangeSet) -> None:
        step.put(PDF, b"ours")
        contents.append(plain_store.extension.bytes_of(PDF))
        if len(contents) == 1:
            (plain_store.root / PDF).write_bytes(b"theirs")

    papers(plain_store).change(draft, {})
    assert contents == [DATA, b"theirs"] and plain_store.extension.bytes_of(PDF) == b"ours"


def test_a_step_of_notes_that_another_program_changes_meanwhile_is_made_of_their_new_texts(
    plain_store: EnhancedStore,
) -> None:
    paths = [f"papers/{name}.md" for name in "abc"]
    papers(plain_store).change(lambda step: [step.put(path, "old\n") for path in paths], {})
    calls = 0

    def draft(step: ChangeSet) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            for path in paths:
                (plain_store.root / path).write_text("changed by hand\n")
        for path in paths:
            step.put(path, f"{step.text(path)}and by us\n")

    papers(plain_store).change(draft, {})
    texts = [(plain_store.root / path).read_text() for path in paths]
    assert texts == ["changed by hand\nand by us\n"] * 3


def test_a_step_is_made_again_as_often_as_another_program_changes_its_note(
    plain_store: EnhancedStore,
) -> None:
    keep(plain_store)
    texts: list[str] = []

    def draft(step: ChangeSet) -> None:
        text = step.text(NOTE)
        texts.append(text)
        if len(texts) <= 5:
            (plain_store.root / NOTE).write_text(f"theirs, {'longer ' * len(texts)}\n")
        step.put(NOTE, f"{text}ours\n")

    papers(plain_store).change(draft, {})
    assert len(texts) == 6
    assert (plain_store.root / NOTE).read_text() == f"{texts[-1]}ours\n"


def test_a_step_that_is_refused_twice_in_the_same_way_is_given_up(
    plain_store: EnhancedStore,
) -> None:
    calls = 0

    def draft(step: ChangeSet) -> None:
        nonlocal calls
        calls += 1
        raise Conflict("it has changed", current_sha256="0" * 64)

    with pytest.raises(Conflict, match="it has changed"):
        papers(plain_store).change(draft, {})
    assert calls == 2


def test_a_step_that_is_refused_in_ever_new_ways_is_given_up(plain_store: EnhancedStore) -> None:
    calls = 0

    def draft(step: ChangeSet) -> None:
        nonlocal calls
        calls += 1
        raise Conflict("it has changed", current_sha256=str(calls))

    with pytest.raises(Conflict):
        papers(plain_store).change(draft, {})
    assert 10 < calls < 1000


def test_another_store_holds_the_same_after_the_step(
    vault: Path, plain_store: EnhancedStore
) -> None:
    keep(plain_store)
    with open_store(vault, settings=plain_store.settings) as other, papers(other).reading():
        assert papers(other).items.keys() == {NOTE}
