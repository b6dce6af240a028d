"""Everything somebody changed since a moment, taken back in one step: what was theirs goes, what others did stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, ReadOnly
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
AGENT = "claude-ai 1.2"


def files(vault: Path) -> dict[str, bytes]:
    """Every note and its bytes."""
    return {path.relative_to(vault).as_posix(): path.read_bytes() for path in sorted(vault.rglob("*.md"))
            if ".simplemem" not in path.parts}  # fmt: skip


def becomes(store: EnhancedStore, since: str) -> dict[str, str]:
    return {
        note.name: note.becomes for note in store.undo_all("claude-ai", since, preview=True).notes
    }


def left(store: EnhancedStore, since: str) -> dict[str, str]:
    return {note.name: note.why for note in store.undo_all("claude-ai", since, preview=True).left}


@pytest.fixture
def grown(vault: Path, plain_store: EnhancedStore) -> EnhancedStore:
    """Five notes of a person, versions 1 to 5."""
    for name in ("kept", "edited", "moved", "gone"):
        plain_store.create(name, f"The text of {name}.", who="me")
    plain_store.create("links", "To [[moved]].", who="me")
    return plain_store


def test_all_that_a_client_did_is_taken_back_as_one_and_can_be_done_again(
    grown: EnhancedStore, vault: Path
) -> None:
    before = files(vault)
    grown.update("edited", append="one", who=AGENT)
    grown.update("edited", append="two", who=AGENT)
    grown.move("moved", "deep/away", who=AGENT)
    grown.move("deep/away", "deeper/away", who=AGENT)
    grown.delete("gone", who=AGENT)
    grown.create("fresh", "made", who=AGENT)
    grown.change_tags("fresh", {"todo": True}, who="claude-ai 1.3")
    grown.update("kept", append="mine", who="me")
    after = files(vault)
    shown = grown.undo_all("claude-ai", "v6", preview=True)
    assert {note.name: note.becomes for note in shown.notes} == {
        "edited": "changed back",
        "deeper/away": "moved back",
        "gone": "brought back",
        "fresh": "deleted",
        "links": "changed back",
    }
    assert shown.left == () and shown.version == "" and files(vault) == after
    done = grown.undo_all("claude-ai", "v6", expected=shown.plan, who="me", reason="it was wrong")
    assert files(vault) == before | {"kept.md": after["kept.md"]}
    entries = grown.history(by="me", since=done.version)
    assert len(entries) == 5 and {entry.reason for entry in entries} == {"it was wrong"}
    again = grown.undo(done.version, who="me")
    assert files(vault) == after and "and 4 more changes" in again.what
    assert grown.backlinks("deeper/away", kinds=["link"])[0].name == "links", (
        "and the index has followed"
    )


def test_what_somebody_else_changed_since_is_left_and_named(
    grown: EnhancedStore, vault: Path, write: Write
) -> None:
    for name in ("edited", "kept", "gone"):
        grown.update(name, append="theirs", who=AGENT)
    grown.update("edited", append="mine", who="me")
    write("kept.md", "by hand")
    grown.sync()
    assert becomes(grown, "v6") == {"gone": "changed back"}
    assert left(grown, "v6") == {
        "edited": "me changed it later (v000009)",
        "kept": "it was changed later outside simplemem",
    }
    grown.undo_all("claude-ai", "v6")
    assert (vault / "kept.md").read_bytes() == b"by hand"
    assert "mine" in grown.read("edited").content and "theirs" not in grown.read("gone").content


def test_an_operation_is_taken_back_as_a_whole_or_not_at_all(
    grown: EnhancedStore, vault: Path
) -> None:
    grown.move("moved", "there", who=AGENT)  # writes the link in `links` as well
    grown.update("links", append="mine", who="me")
    grown.update("there", append="theirs", who=AGENT)
    grown.update("edited", append="theirs", who=AGENT)
    before = files(vault)
    assert becomes(grown, "v6") == {"edited": "changed back"}
    assert set(left(grown, "v6")) == {"links", "there", "moved"}
    assert "together with links" in left(grown, "v6")["there"]
    grown.undo_all("claude-ai", "v6")
    assert {path for path, data in files(vault).items() if data != before.get(path)} == {
        "edited.md"
    }


def test_what_was_taken_back_already_is_passed_over(grown: EnhancedStore) -> None:
    one = grown.update("edited", append="theirs", who=AGENT)
    grown.undo(one.version, who="me")
    grown.create("fresh", "made", who=AGENT)
    grown.delete("fresh", who="me")
    grown.update("kept", append="theirs", who=AGENT)
    shown = grown.undo_all("claude-ai", "v6", preview=True)
    assert [note.name for note in shown.notes] == ["kept"] and shown.left == ()


def test_a_respelled_name_goes_back_and_a_twin_is_never_overwritten(
    grown: EnhancedStore, vault: Path
) -> None:
    before = files(vault)
    grown.move("edited", "Edited", who=AGENT)
    grown.undo_all("claude-ai", "v6")
    assert files(vault) == before
    grown.delete("gone", who=AGENT)
    grown.create("GONE", "by somebody else", who="me")
    there = files(vault)
    with pytest.raises(AlreadyExists):
        grown.undo_all("claude-ai", "v8")
    assert files(vault) == there


def test_it_is_done_only_if_it_is_still_what_was_shown(grown: EnhancedStore, vault: Path) -> None:
    grown.update("edited", append="theirs", who=AGENT)
    shown = grown.undo_all("claude-ai", "v6", preview=True)
    grown.update("edited", append="more of theirs", who=AGENT)
    there = files(vault)
    with pytest.raises(Conflict, match="changed since the preview"):
        grown.undo_all("claude-ai", "v6", expected=shown.plan)
    assert files(vault) == there


def test_who_and_since_must_mean_something(grown: EnhancedStore, vault: Path) -> None:
    grown.update("edited", append="theirs", who=AGENT)
    with pytest.raises(NotFound) as event:
        grown.undo_all("nobody", "v1")
    assert event.value.details["candidates"] == [AGENT, "me"]
    with pytest.raises(Invalid):
        grown.undo_all("", "v1")
    with pytest.raises(Invalid):
        grown.undo_all("claude-ai", " ")
    with EnhancedStore(vault, grown.settings, read_only=True) as reading:
        assert reading.undo_all("claude-ai", "v6", preview=True).notes
        with pytest.raises(ReadOnly):
            reading.undo_all("claude-ai", "v6")


def test_undo_twice_undoes_two_steps_and_redo_goes_forward(
    grown: EnhancedStore, vault: Path
) -> None:
    states = [files(vault)]
    for change in (
        lambda: grown.update("edited", append="one"),
        lambda: grown.move("moved", "away"),
        lambda: grown.delete("gone"),
    ):
        change()
        states.append(files(vault))

    def undo(*, redo: bool = False) -> str:
        return grown.undo(grown.next_to_undo(undone=redo)).what

    for _ in range(2):
        assert [undo(), files(vault)] == ["undid the deletion of gone", states[2]]
        assert [undo(), files(vault)] == ["undid the move of moved to away", states[1]]
        assert [undo(), files(vault)] == ["undid the change of edited", states[0]]
        assert [undo(redo=True), files(vault)] == ["redid the change of edited", states[1]]
        assert [undo(), files(vault)] == ["undid the change of edited", states[0]]
        for k, what in enumerate(
            ["change of edited", "move of moved to away", "deletion of gone"], 1
        ):
            assert [undo(redo=True), files(vault)] == [f"redid the {what}", states[k]]
        with pytest.raises(NotFound, match="nothing to redo"):
            undo(redo=True)
    undo()
    grown.update("edited", append="two")
    with pytest.raises(NotFound, match="nothing to redo"):
        undo(redo=True)  # something else was changed since
    grown.undo("edited")
    grown.undo("edited")  # of one memory, too
    assert (vault / "edited.md").read_bytes() == states[0]["edited.md"]


def test_the_version_of_an_undo_is_undone_to_go_forward(grown: EnhancedStore, vault: Path) -> None:
    moved = grown.move("moved", "away")
    after = files(vault)
    undone = grown.undo(moved.version)
    assert (
        grown.undo(undone.version).what == "redid the move of moved to away"
        and files(vault) == after
    )
    assert grown.history("away", limit=2)[1].reason == f"undoes {moved.version}"


def test_after_an_undo_by_author_the_next_undo_goes_further_back(
    grown: EnhancedStore, vault: Path
) -> None:
    grown.update("kept", append="mine", who="me")
    mine = files(vault)
    grown.update("edited", append="theirs", who=AGENT)
    grown.move("moved", "away", who=AGENT)
    theirs = files(vault)
    grown.undo_all("claude-ai", "v7", who="me", reason="it was wrong")
    assert files(vault) == mine
    assert grown.next_to_undo() == "v000006", "the change before theirs"
    for _ in range(2):
        redone = grown.undo(grown.next_to_undo(undone=True))
        assert redone.what.startswith("redid what v0000") and files(vault) == theirs, (
            "redo brings their changes again"
        )
        undone = grown.undo(grown.next_to_undo())
        assert undone.what.startswith("undid the redo of ") and files(vault) == mine, (
            "one undo takes back what one redo brought again"
        )
    assert grown.undo(grown.next_to_undo()).what == "undid the change of kept"


def test_the_reason_of_an_undo_by_author_misleads_nobody(grown: EnhancedStore, vault: Path) -> None:
    grown.update("kept", append="mine", who="me")
    mine = files(vault)
    grown.update("edited", append="theirs", who=AGENT)
    grown.move("moved", "away", who=AGENT)
    theirs = files(vault)
    done = grown.undo_all("claude-ai", "v7", who="me", reason="undoes v000006")
    assert files(vault) == mine
    assert grown.next_to_undo() == "v000006", "this change stands, whatever the reason says"
    redone = grown.undo(done.version)
    assert redone.what.startswith(f"redid what {done.version} undid: ") and files(vault) == theirs


def test_an_undo_of_one_note_after_an_undo_by_author_goes_further_back(
    grown: EnhancedStore,
) -> None:
    grown.update("kept", append="mine", who="me")
    grown.update("kept", append="theirs", who=AGENT)
    grown.undo_all("claude-ai", "v7", who="me")
    grown.undo("kept")
    assert "mine" not in grown.read("kept").content and "theirs" not in grown.read("kept").content


def test_a_change_that_was_taken_back_before_does_not_protect_the_same_change_made_again(
    grown: EnhancedStore,
) -> None:
    for _ in range(2):
        grown.update("edited", append="theirs", who=AGENT)
        grown.move("moved", "away", who=AGENT)
        shown = grown.undo_all("claude-ai", "v6", who="me")
        assert {note.name for note in shown.notes} == {
            "edited",
            "away",
            "links",
        } and shown.left == ()
    assert "theirs" not in grown.read("edited").content and grown.has("moved")


def test_a_refused_undo_says_what_happened_and_what_can_be_done(
    plain_store: EnhancedStore, vault: Path
) -> None:
    store = plain_store
    store.create("made", "one")
    store.update("made", append="two")
    store.create("other", "one")
    store.delete("other")
    for name in ("made", "other"):
        (vault / f"{name}.md").write_text("of an editor\n", encoding="utf-8")
    store.sync()

    def refused(version: str) -> Conflict:
        with pytest.raises(Conflict) as caught:
            store.undo(version)
        return caught.value

    edited = refused("v2")
    assert str(edited) == "made has changed since v000002" == edited.message
    assert "edited outside simplemem" in edited.hint
    assert edited.details["restore_at"] == "before v000002"
    assert store.restore("made", at=edited.details["restore_at"]).changed

    assert "a note called other exists again" in refused("v4").message
    assert "restore_at" not in refused("v4").details
    store.update("made", append="three")
    assert refused("v1").hint == "Undo the later changes first."
