"""What is hidden has no past: not in the log, not by the hash of a text, not in git; and undoing many changes keeps to
the rules that undoing one does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import NotFound, ReadOnly, SimplememError
from simplemem.store import EnhancedStore

CANARY = "quetzalcoatl"
Open = Callable[..., EnhancedStore]
Write = Callable[[str, str | bytes], Path]


def answer_of(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except SimplememError as error:
        return error.as_dict()


def past_of(store: EnhancedStore, names: tuple[str, ...]) -> str:
    """All that can be asked about what was, in one text."""
    said: list[Any] = [store.history(limit=200, diff=True)]
    for version in (f"v{number}" for number in range(1, 12)):
        asked: tuple[Callable[[], Any], ...] = (
            lambda version=version: store.read("x", version=version),
            lambda version=version: store.diff(version),
            lambda version=version: store.diff(version, "v1"),
            lambda: store.search("oolong", authors=True),
            lambda version=version: store.undo_all("eve", version, preview=True),
        )
        said += [answer_of(ask) for ask in asked]
        for name in names:
            said.append(answer_of(lambda name=name, version=version: store.read(name, at=version)))
            said.append(
                answer_of(lambda name=name, version=version: store.diff(name, since=version))
            )
    for name in names:
        said.append(answer_of(lambda name=name: store.history(name, diff=True)))
        said.append(answer_of(lambda name=name: store.restore(name)))
        said.append(answer_of(lambda name=name: store.undo(name)))
    said += [store.doctor(), store.plan_fixes(), store.conflict_merges()]
    return repr(said)


def test_no_question_about_the_past_tells_of_a_hidden_note(opened: Open, write: Write) -> None:
    write("tea.md", "Oolong.\n")
    write("Private/diary.md", f"{CANARY} drinks oolong.\n")
    with opened() as person:
        person.sync()
        person.update("Private/diary", append="A line.", who="eve")
        person.update("tea", append="Milk.", who="eve")
        person.delete("Private/diary", who="eve")
    with opened() as person:
        assert CANARY in past_of(person, ("Private/diary", "tea"))
    with opened(hidden=["Private/"]) as store:
        store.sync()
        said = past_of(store, ("diary", "tea"))
    assert "Milk." in said
    assert CANARY not in said
    assert "Private" not in said


def test_a_note_that_another_program_moved_to_a_hidden_place_took_its_past_there(
    opened: Open, write: Write, vault: Path
) -> None:
    write("tea.md", "Oolong.\n")
    diary = write("diary.md", f"{CANARY} drinks oolong.\n")
    with opened() as person:
        person.sync()
        before = person.update("diary", append="A line.", who="eve").previous_sha256
        person.update("tea", append="Milk.", who="eve")
    with opened(hidden=["Private/"]) as store:
        store.sync()
        assert CANARY in past_of(store, ("diary", "tea"))
        (vault / "Private").mkdir()
        diary.rename(vault / "Private" / "diary.md")
        store.sync()
        said = past_of(store, ("diary", "tea"))
        assert "Milk." in said and CANARY not in said and "A line." not in said
        with pytest.raises(NotFound):
            store.read("tea", version=before)
    with opened() as person:
        assert CANARY in past_of(person, ("diary",)), "the person still has all of it"


def test_the_text_of_a_hidden_note_is_not_given_by_its_hash(opened: Open, write: Write) -> None:
    write("tea.md", "Oolong.\n")
    write("Private/diary.md", f"{CANARY}.\n")
    with opened() as person:
        person.sync()
        hidden = person.update("Private/diary", append="A line.", who="eve").previous_sha256
        seen = person.update("tea", append="Milk.").previous_sha256
        assert hidden is not None
        assert person.read("tea", version=hidden).text == f"{CANARY}.\n"
    with opened(hidden=["Private/"]) as store:
        store.sync()
        assert store.read("tea", version=seen).text == "Oolong.\n"
        now = store.read("tea").sha256
        for hash_ in (hidden, f"{hidden[:12]}+{now[:12]}"):
            told = [
                answer_of(lambda hash_=hash_: store.update("tea", content="x", if_sha256=hash_))
            ]
            told.append(answer_of(lambda hash_=hash_: store.read("tea", version=hash_)))
            assert CANARY not in repr(told)
        with pytest.raises(NotFound):
            store.read("tea", version=hidden)


def test_a_note_that_was_deleted_in_a_hidden_place_leaves_no_past_outside_of_it(
    opened: Open, write: Write
) -> None:
    write("tea.md", "Oolong.\n")
    write("plan.md", f"{CANARY} one.\n")
    with opened() as person:
        person.sync()
        person.update("tea", append="Milk.")
        old = person.update("plan", append="two")
        person.move("plan", "Private/plan")
        gone = person.delete("Private/plan")
    with opened(hidden=["Private/"]) as store:
        store.sync()
        said = past_of(store, ("plan", "tea"))
        assert "Milk." in said and CANARY not in said
        with pytest.raises(NotFound):
            store.read("tea", version=old.previous_sha256)
        store.create("plan", "Another plan.", who="eve")
        assert [entry.op for entry in store.history("plan")] == ["create"]
        with opened() as person:
            person.undo(gone.version)
            assert [entry.op for entry in store.history("plan")] == ["create"]
            person.move("Private/plan", "out")
        assert [entry.op for entry in store.history("out")] == ["update"]


# -- undoing many


def test_undoing_many_leaves_what_may_not_be_changed_and_says_so(
    opened: Open, write: Write, vault: Path
) -> None:
    write("tea.md", "Oolong.\n")
    write("a/pu-erh.md", "Dark.\n")
    write("Archive/old.md", "Old.\n")
    write("Private/diary.md", "See [[a/pu-erh]].\n")
    with opened() as person:
        person.sync()
        person.update("tea", append="Milk.", who="eve")
        person.update("Archive/old", append="Older.", who="eve")
        moved = person.move("a/pu-erh", "b/pu-erh", who="eve")  # writes the link in the diary again
        person.create("new", "New.", who="eve")
        assert moved.rewritten == ("Private/diary",)
    with opened(no_delete=True, read_only=["Archive/"], hidden=["Private/"]) as store:
        store.sync()
        with pytest.raises(ReadOnly):
            store.undo(moved.version)
        preview = store.undo_all("eve", "v1", preview=True)
        done = store.undo_all("eve", "v1", expected=preview.plan)
        assert (
            [note.name for note in preview.notes] == [note.name for note in done.notes] == ["tea"]
        )
        why = {left.name: left.why for left in done.left}
        assert why["Archive/old"] == "it is read-only here"
        assert why["new"] == "deleting is not allowed here"
        assert why["b/pu-erh"] == "it was changed together with a hidden note"
        assert "Private" not in repr(done)
    assert (vault / "tea.md").read_text() == "Oolong.\n"
    assert (vault / "b" / "pu-erh.md").exists()
    assert (vault / "Private" / "diary.md").read_text() == "See [[b/pu-erh]].\n"


# -- doctor


def test_doctor_does_not_lead_a_link_elsewhere_that_may_lead_to_what_is_hidden(
    opened: Open, write: Write
) -> None:
    write("tea.md", "[[deep/plan]]\n")
    write("Private/deep/plan.md", "Hidden.\n")
    write("other/plan.md", "Seen.\n")
    with opened() as person:
        person.sync()
        assert person.read("tea").links[0].target == "Private/deep/plan"
    with opened(hidden=["Private/"]) as store:
        store.sync()
        (found,) = store.doctor(only=("links",))
        assert found.candidates == ("other/plan",)
        assert store.plan_fixes(only=("links",)).changes == ()
    with opened() as person:
        write("tea.md", "[[deeper/plan x]]\n")
        write("other/plan x.md", "Seen.\n")
        person.sync()
        assert [change.path for change in person.plan_fixes(only=("links",)).changes] == ["tea.md"]


def test_a_change_does_not_name_sources_that_are_hidden_or_that_were_moved_to_a_hidden_place(
    opened: Open, write: Write, vault: Path
) -> None:
    write("tea.md", "Oolong.\n")
    write("mint.md", "Fresh.\n")
    write("Private/diary.md", f"{CANARY} drinks oolong.\n")
    quetzal = write(f"{CANARY}.md", "A bird.\n")
    sources = ["mint", "Private/diary", CANARY, "gone"]
    with opened() as person:
        person.sync()
        person.create("gone", "Deleted later.")
        person.delete("gone")
        person.update("tea", append="Milk.", who="eve", session="s1", sources=sources)
        assert person.history("tea")[0].sources == tuple(sources)

    quetzal.rename(vault / "Private/bird.md")
    with opened(hidden=["Private/"]) as store:
        store.sync()
        change = store.history("tea")[0]
    assert change.session == "s1"
    assert change.sources == ("mint", "gone")
