"""Going back: what changed, a text of an earlier moment brought back, and by whom what was done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import eventually

from simplemem.config import Settings
from simplemem.errors import AlreadyExists, Ambiguous, Invalid, NotFound, ReadOnly
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def texts_of(store: EnhancedStore, vault: Path, name: str, *texts: str) -> list[bytes]:
    """Give a note these texts in turn; the whole files that made."""
    files = []
    for text in texts:
        store.create(name, text, overwrite=True)
        files.append((vault / f"{name}.md").read_bytes())
    return files


# -- which changes


def test_history_is_narrowed_by_who_tool_and_span(plain_store: EnhancedStore) -> None:
    plain_store.create("a", "1", who="claude-ai 1.2", tool="create_memory")
    plain_store.update("a", append="2", who="claude-ai 1.3", tool="update_memory")
    plain_store.update("a", append="3", who="command line")
    plain_store.create("b", "1", who="Claude-AI 1.3", tool="create_memory")

    def versions(**which: str) -> list[int]:
        return [int(entry.version[1:]) for entry in plain_store.history(**which)]  # type: ignore[arg-type]

    assert versions(by="claude-ai") == [4, 2, 1]
    assert versions(by="claude-ai 1.3") == [4, 2]
    assert versions(by="claude") == [] and versions(by="command line") == [3] and versions(by="command") == []
    assert versions(tool="create_memory") == [4, 1]
    assert versions(since="v2", until="v3") == [3, 2]
    assert versions(since="yesterday") == [4, 3, 2, 1] and versions(until="yesterday") == []
    assert [entry.version for entry in plain_store.history("a", by="claude-ai", limit=1)] == ["v000002"]
    with pytest.raises(Invalid, match="not a date"):
        versions(since="whenever")


def test_the_past_of_a_note_is_found_by_the_names_it_had(plain_store: EnhancedStore) -> None:
    plain_store.create("craft/Dipper", "A balloon.")
    plain_store.create("parts/Valve", "A valve.")
    plain_store.create("old/Valve", "A valve.")
    plain_store.move("craft/Dipper", "ships/Dipper")
    plain_store.delete("ships/Dipper")
    assert plain_store.history("craft/Dipper", limit=1)[0].op == "delete"
    assert plain_store.history("Dipper", limit=1)[0].op == "delete"
    plain_store.delete("parts/Valve")
    plain_store.delete("old/Valve")
    with pytest.raises(Ambiguous) as event:
        plain_store.restore("Valve")
    assert event.value.details["candidates"] == ["old/Valve", "parts/Valve"]
    with pytest.raises(NotFound):
        plain_store.history("Never was")


# -- difference


def test_a_difference_is_of_a_version_of_two_or_of_a_note_since_a_moment(
    plain_store: EnhancedStore, vault: Path
) -> None:
    texts_of(plain_store, vault, "n", "one\n", "two\n", "three\n")
    [done] = plain_store.diff("v2")
    assert (done.name, done.before, done.after) == ("n", "before v000002", "v000002")
    assert "-one\n+two\n" in done.diff
    [between] = plain_store.diff("v1", "3")
    assert "-one\n+three\n" in between.diff and (between.before, between.after) == ("v000001", "v000003")
    [last] = plain_store.diff("n")
    assert "-two\n+three\n" in last.diff and last.after == "now"
    [since] = plain_store.diff("n", since="v2")
    assert "-one\n+three\n" in since.diff, "what that version did is part of it"
    assert "+three\n" in plain_store.diff("n", since="today")[0].diff, "a day begins in the morning"
    plain_store.delete("n")
    assert "-three\n" in plain_store.diff("v4")[0].diff and "-three\n" in plain_store.diff("n", since="v4")[0].diff


def test_a_difference_has_every_note_of_an_operation(plain_store: EnhancedStore) -> None:
    plain_store.create("a", "See [[b]].")
    plain_store.create("b", "old")
    moved = plain_store.move("b", "c")
    first, second = plain_store.diff(moved.version)
    assert (first.name, first.new_name, first.diff) == ("b", "c", "")
    assert second.name == "a" and "-See [[b]].\n+See [[c]].\n" in second.diff.replace("\n\\ No newline", "\n")


def test_what_is_no_version_and_no_note_has_no_difference(plain_store: EnhancedStore, write: Write) -> None:
    write("2026.md", "a year")
    write("n.md", "never changed by us")
    plain_store.sync()
    with pytest.raises(NotFound, match="no version 'v7'"):
        plain_store.diff("v7")
    with pytest.raises(NotFound, match="nothing is known of earlier changes of 2026"):
        plain_store.diff("2026")
    with pytest.raises(Invalid, match="between two versions"):
        plain_store.diff("n", "v1")
    [since] = plain_store.diff("n", since="2020")
    assert since.diff == "" and "outside simplemem" in since.doubt


# -- bringing back


def test_a_deleted_note_comes_back_to_the_byte(plain_store: EnhancedStore, vault: Path, write: Write) -> None:
    text = b"\xef\xbb\xbf---\r\nb: 1\r\na:   'x'\r\n---\r\nText\xff without an end"
    write("n.md", text)
    plain_store.sync()
    plain_store.delete("n")
    restored = plain_store.restore("n", who="me")
    assert (vault / "n.md").read_bytes() == text
    assert restored.changed and restored.previous_sha256 is None
    entry = plain_store.history("n", limit=1)[0]
    assert (entry.op, entry.tool, entry.who, entry.version) == ("restore", "restore", "me", restored.version)
    plain_store.undo(restored.version)
    assert not (vault / "n.md").exists()
    assert plain_store.restore("n", at="v1", new_name="again").name == "again"


def test_a_note_gets_its_text_of_a_version_back_and_what_it_said_is_kept(
    plain_store: EnhancedStore, vault: Path
) -> None:
    files = texts_of(plain_store, vault, "n", "one", "two", "three")
    plain_store.move("n", "m")
    restored = plain_store.restore("m", at="v1")
    assert restored.name == "m" and (vault / "m.md").read_bytes() == files[0]
    assert not (vault / "n.md").exists()
    assert not plain_store.restore("n", at="1").changed, "its old name is followed, and it is so already"
    plain_store.undo(restored.version)
    assert (vault / "m.md").read_bytes() == files[2]
    assert plain_store.search("three", mode="text").hits[0].name == "m"


def test_a_name_that_is_taken_is_not_overwritten(plain_store: EnhancedStore, vault: Path) -> None:
    [old] = texts_of(plain_store, vault, "n", "the old one")
    plain_store.delete("n")
    [new] = texts_of(plain_store, vault, "n", "another")
    with pytest.raises(AlreadyExists) as event:
        plain_store.restore("n", at="v1")
    assert "v000003" in event.value.hint and "another name" in event.value.hint
    assert (vault / "n.md").read_bytes() == new
    plain_store.restore("n", at="v1", new_name="n of old")
    assert (vault / "n of old.md").read_bytes() == old
    with pytest.raises(AlreadyExists):
        plain_store.restore("n", at="v1", new_name="N OF OLD")
    with pytest.raises(Invalid, match="not told what to become"):
        plain_store.restore("n")


def test_the_name_of_a_note_that_was_moved_there_is_taken_too(plain_store: EnhancedStore, vault: Path) -> None:
    texts_of(plain_store, vault, "n", "the old one")
    plain_store.delete("n")
    [other] = texts_of(plain_store, vault, "other", "another")
    plain_store.move("other", "n")
    with pytest.raises(AlreadyExists, match="another memory called n"):
        plain_store.restore("n", at="v1")
    assert (vault / "n.md").read_bytes() == other
    assert not plain_store.restore("n", at="v3").changed, "its own text may come back"


@pytest.mark.parametrize("left", ["deleted", "moved"])
def test_a_note_that_another_program_made_under_an_old_name_is_not_overwritten(
    plain_store: EnhancedStore, vault: Path, write: Write, left: str
) -> None:
    old = plain_store.create("n", "first").sha256
    if left == "deleted":
        plain_store.delete("n")
    else:
        plain_store.move("n", "m")
    write("n.md", "by hand\n")
    for at in ("v1", "before v2"):
        with pytest.raises(AlreadyExists, match="another memory called n") as trouble:
            plain_store.restore("n", at=at)
        assert "under another name" in trouble.value.hint
    assert (vault / "n.md").read_text() == "by hand\n"
    assert plain_store.restore("n", at="v1", new_name="n then").sha256 == old


def test_a_note_that_another_program_brought_back_is_still_the_note(plain_store: EnhancedStore, vault: Path) -> None:
    one = plain_store.create("n", "one").sha256
    plain_store.update("n", append="two")
    two = (vault / "n.md").read_bytes()
    plain_store.delete("n")
    (vault / "n.md").write_bytes(two)
    assert plain_store.restore("n", at="v1").sha256 == one


def test_what_cannot_be_brought_back_says_why(plain_store: EnhancedStore, vault: Path) -> None:
    files = texts_of(plain_store, vault, "n", "one", "two")
    with pytest.raises(NotFound, match="there was no n at 2001-01-01"):
        plain_store.restore("n", at="2001-01-01")
    with pytest.raises(NotFound, match="no memory called"):
        plain_store.restore("nowhere")
    for kept in (vault / ".simplemem/history").rglob("*"):
        if kept.is_file() and kept.name != "log.jsonl":
            kept.unlink()
    with pytest.raises(NotFound, match="no longer kept"):
        plain_store.restore("n", at="v1")
    with pytest.raises(NotFound, match="no longer kept"):
        plain_store.read("n", at="v1")
    assert (vault / "n.md").read_bytes() == files[1]


def test_a_note_deleted_outside_comes_back_as_it_was_last(vault: Path, plain_store: EnhancedStore) -> None:
    last = texts_of(plain_store, vault, "n", "one", "two")[-1]
    plain_store.create("m", "only")
    plain_store.move("m", "moved")
    for name in ("n", "moved"):
        kept = (vault / f"{name}.md").read_bytes()
        (vault / f"{name}.md").unlink()
        restored = plain_store.restore(name)
        assert (vault / f"{name}.md").read_bytes() == kept and restored.previous_sha256 is None
        assert "deleted outside simplemem" in restored.warnings[0]
    assert (vault / "n.md").read_bytes() == last


def test_a_vault_for_reading_only_restores_nothing_and_shows_all(vault: Path, plain_store: EnhancedStore) -> None:
    texts_of(plain_store, vault, "n", "one", "two")
    with EnhancedStore(vault, plain_store.settings, read_only=True) as reading:
        assert reading.read("n", at="v1").content.strip() == "one"
        with pytest.raises(ReadOnly):
            reading.restore("n", at="v1")


def test_a_note_is_read_as_it_was_under_the_name_it_had(plain_store: EnhancedStore, write: Write) -> None:
    plain_store.create("n", "# Part\n\none\n\n# Rest\n")
    plain_store.move("n", "m")
    write("m.md", "theirs")
    plain_store.sync()
    then = plain_store.read("m", at="v1", section="Part")
    assert (then.name, then.version, then.problem) == ("n", "v1", None) and "one" in then.content
    assert "Rest" not in then.content
    plain_store.update("m", append="ours")
    plain_store.create("other", "x")
    assert plain_store.read("m", at="v4").content.startswith("theirs")
    assert "outside simplemem" in (plain_store.read("m", at="2 hours ago").problem or "outside simplemem")


# -- beside other servers, and over a long time


def kept_bytes(vault: Path) -> int:
    found = 0
    for path in (vault / ".simplemem/history/objects").rglob("*"):
        with suppress(FileNotFoundError):
            found += path.stat().st_size if path.is_file() else 0
    return found


def test_a_server_keeps_no_more_than_it_was_told_to(vault: Path) -> None:
    small = Settings.model_validate({"embed": {"provider": "none"}, "history": {"keep_mb": 1}})
    with EnhancedStore(vault, small) as store:
        store.start()
        assert store.wait_until_settled(20)
        for number in range(24):
            store.create("n", f"{number} " * 60_000, overwrite=True)
        assert eventually(lambda: kept_bytes(vault) <= 1_300_000), (
            "what was written since is thinned without being asked"
        )
        store.undo("n")


def test_a_command_thins_when_it_opens_a_vault_that_has_too_much(vault: Path) -> None:
    roomy = Settings.model_validate({"embed": {"provider": "none"}, "history": {"keep_mb": 100}})
    small = Settings.model_validate({"embed": {"provider": "none"}, "history": {"keep_mb": 1}})
    with EnhancedStore(vault, roomy) as store:
        for number in range(12):
            store.create("n", f"{number} " * 60_000, overwrite=True)
    assert kept_bytes(vault) > 1_300_000
    with EnhancedStore(vault, small) as store:
        store.sync()
    assert kept_bytes(vault) <= 1_000_000


def test_a_second_server_sees_what_the_first_took_back(vault: Path, plain_store: EnhancedStore) -> None:
    with EnhancedStore(vault, plain_store.settings) as other:
        plain_store.create("n", "the first heron", who="agent")
        other.sync()
        plain_store.update("n", content="the second crane", who="agent")
        plain_store.create("m", "a third stork", who="agent")
        other.undo_all("agent", "v2")
        assert plain_store.read("n").content.strip() == "the first heron"
        assert [hit.name for hit in plain_store.search("heron", mode="text").hits] == ["n"]
        assert plain_store.search("crane stork", mode="text").hits == ()
        assert not (vault / "m.md").exists()
        plain_store.restore("m")
        assert [hit.name for hit in other.search("stork", mode="text").hits] == ["m"]
