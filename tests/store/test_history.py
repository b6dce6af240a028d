"""Going back: what changed, a text of an earlier moment brought back, and by whom what was done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import AlreadyExists, Ambiguous, Invalid, NotFound
from simplemem.store import EnhancedStore
from simplemem.store.earlier_texts import EarlierNote

Write = Callable[[str, str | bytes], Path]
DAY = 86_400


def texts_of(store: EnhancedStore, vault: Path, name: str, *texts: str) -> list[bytes]:
    """Give a note these texts in turn; the whole files that made."""
    files = []
    for text in texts:
        store.create(name, text, overwrite=True)
        files.append((vault / f"{name}.md").read_bytes())
    return files


# -- which changes


def test_history_is_narrowed_by_who_and_span(plain_store: EnhancedStore) -> None:
    plain_store.create("a", "1", who="claude-ai 1.2", tool="create_memory")
    plain_store.update("a", append="2", who="claude-ai 1.3", tool="update_memory")
    plain_store.update("a", append="3", who="command line")
    plain_store.create("b", "1", who="Claude-AI 1.3", tool="create_memory")

    def versions(**which: str) -> list[int]:
        return [int(entry.version[1:]) for entry in plain_store.history(**which)]  # type: ignore[arg-type]

    assert versions(by="claude-ai") == [4, 2, 1]
    assert versions(by="claude-ai 1.3") == [4, 2]
    assert (
        versions(by="claude") == []
        and versions(by="command line") == [3]
        and versions(by="command") == []
    )
    assert versions(since="v2", until="v3") == [3, 2]
    assert versions(since="yesterday") == [4, 3, 2, 1] and versions(until="yesterday") == []
    assert [entry.version for entry in plain_store.history("a", by="claude-ai", limit=1)] == [
        "v000002"
    ]
    with pytest.raises(Invalid, match="not a valid date"):
        versions(since="whenever")


def test_the_name_of_a_token_means_every_change_that_was_made_with_it(
    plain_store: EnhancedStore,
) -> None:
    authors = [
        "ida",
        "ida: testagent 1.0",
        "Ida: cursor 2",
        "idabel: testagent 1.0",
        "testagent 1.0",
    ]
    for number, who in enumerate(authors):
        plain_store.create(str(number), "x", who=who)

    def found(by: str) -> set[str]:
        return {entry.who for entry in plain_store.history(by=by)}

    assert found("ida") == {"ida", "ida: testagent 1.0", "Ida: cursor 2"}
    assert found("ida: testagent") == found("ida: testagent 1.0") == {"ida: testagent 1.0"}
    assert found("testagent") == {"testagent 1.0"}

    undone = plain_store.undo_all("ida", "v1")
    assert {note.name for note in undone.notes} == {"0", "1", "2"} and not undone.left


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
    assert "-one\n+three\n" in between.diff and (between.before, between.after) == (
        "v000001",
        "v000003",
    )
    [last] = plain_store.diff("n")
    assert "-two\n+three\n" in last.diff and last.after == "now"
    [since] = plain_store.diff("n", since="v2")
    assert "-one\n+three\n" in since.diff, "what that version did is part of it"
    assert "+three\n" in plain_store.diff("n", since="today")[0].diff, "a day begins in the morning"
    plain_store.delete("n")
    assert (
        "-three\n" in plain_store.diff("v4")[0].diff
        and "-three\n" in plain_store.diff("n", since="v4")[0].diff
    )


# -- bringing back


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
    with pytest.raises(Invalid, match="n already exists"):
        plain_store.restore("n")


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
        with pytest.raises(AlreadyExists, match="another note called n") as trouble:
            plain_store.restore("n", at=at)
        assert "under another name" in trouble.value.hint
    assert (vault / "n.md").read_text() == "by hand\n"
    assert plain_store.restore("n", at="v1", new_name="n then").sha256 == old


def test_what_cannot_be_brought_back_says_why(plain_store: EnhancedStore, vault: Path) -> None:
    files = texts_of(plain_store, vault, "n", "one", "two")
    with pytest.raises(NotFound, match="n did not exist at 2001-01-01"):
        plain_store.restore("n", at="2001-01-01")
    with pytest.raises(NotFound, match="no note called"):
        plain_store.restore("nowhere")
    for kept in (vault / ".simplemem/history").rglob("*"):
        if kept.is_file() and kept.name != "log.jsonl":
            kept.unlink()
    with pytest.raises(NotFound, match="no longer kept"):
        plain_store.restore("n", at="v1")
    with pytest.raises(NotFound, match="no longer kept"):
        plain_store.read("n", at="v1")
    assert (vault / "n.md").read_bytes() == files[1]


def test_a_note_is_read_as_it_was_under_the_name_it_had(
    plain_store: EnhancedStore, write: Write
) -> None:
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
    assert "outside simplemem" in (plain_store.read("m", at="now").problem or "outside simplemem")


# -- a moment


def dated(vault: Path, *whens: str) -> None:
    """Give the changes in the log these times, oldest first."""
    log = vault / ".simplemem/history/log.jsonl"
    lines = [json.loads(line) for line in log.read_bytes().split(b"\n") if line]
    for line, when in zip(lines, whens, strict=True):
        line["when"] = f"{when}T12:00:00.000Z"
    spelled = [json.dumps(line, separators=(",", ":")) + "\n" for line in lines]
    log.write_bytes("".join(spelled).encode())


def at(store: EnhancedStore, path: str, moment: str) -> EarlierNote:
    return store._parts.texts.note_at(path, moment)


def text_at(store: EnhancedStore, path: str, moment: str) -> str | None:
    then = at(store, path, moment)
    return None if then.data is None else then.data.decode().split("---\n")[-1].strip()


def differing(store: EnhancedStore, moment: str) -> dict[str, bytes | None]:
    return {
        then.path: then.data
        for then, differs in store._parts.texts.notes_at(store._parts.texts.moment_of(moment))
        if differs
    }


def test_a_note_is_given_as_it_was_on_a_day(vault: Path, plain_store: EnhancedStore) -> None:
    for text in ("one", "two", "three"):
        plain_store.create("n", text, overwrite=True)
    plain_store.delete("n")
    dated(vault, "2026-01-05", "2026-02-05", "2026-03-05", "2026-04-05")
    assert at(plain_store, "n.md", "2026-01-04").sha256 is None
    assert text_at(plain_store, "n.md", "2026-01-05") == "one", "a day is over at its end"
    assert text_at(plain_store, "n.md", "2026-02") == "two"
    assert text_at(plain_store, "n.md", "2026-03-06") == "three"
    assert at(plain_store, "n.md", "2026") == EarlierNote("n.md", None, None)


@pytest.mark.parametrize("moment", ["2 hours ago", "10 minutes ago"])
def test_hours_and_minutes_ago_mean_that_moment(
    vault: Path, plain_store: EnhancedStore, moment: str
) -> None:
    plain_store.create("n", "one")
    dated(vault, "2026-01-05")
    plain_store.create("n", "two", overwrite=True)

    assert text_at(plain_store, "n.md", moment) == "one"
    assert [entry.op for entry in plain_store.history(since=moment)] == ["update"]
    assert [entry.op for entry in plain_store.history(until=moment)] == ["create"]


def test_an_edit_from_outside_is_placed_by_the_files_own_time_or_said_to_be_unsure(
    vault: Path, plain_store: EnhancedStore, write: Write
) -> None:
    plain_store.create("n", "ours")
    plain_store.create("m", "ours")
    dated(vault, "2026-01-05", "2026-01-05")
    file = write("n.md", "theirs")
    os.utime(file, (1_772_000_000, 1_772_000_000))  # 25 February 2026
    plain_store.sync()
    assert at(plain_store, "n.md", "2026-03-01") == EarlierNote(
        "n.md", at(plain_store, "n.md", "now").sha256, b"theirs"
    )
    then = at(plain_store, "n.md", "2026-02-01")
    assert then.data is not None and b"ours" in then.data
    assert "outside simplemem" in then.doubt
    plain_store.update("n", append="and ours")
    assert "outside simplemem" in at(plain_store, "n.md", "2026-02-01").doubt
    assert at(plain_store, "n.md", "v1").doubt == "", "right after a version all is known"
    assert set(differing(plain_store, "2026-02-01")) == {"n.md"}


@pytest.mark.parametrize(
    ("whens", "day", "cut"),
    [
        (("2026-01-01", "2026-01-02", "2026-01-03"), "2026-01-02", 2),
        (
            ("2026-01-01", "2099-01-01", "2026-01-03", "2026-01-04"),
            "2026-01-03",
            3,
        ),  # once far ahead
        (
            ("2026-01-01", "2026-01-02", "2026-01-03", "1970-01-01", "2026-01-04"),
            "2026-01-01",
            1,
        ),  # once far behind
        (("2026-01-03", "2026-01-04", "2026-01-02", "2026-01-05"), "2026-01-04", 3),  # set right
        (("2026-01-01",), "2025-12-31", 0),
    ],
)
def test_one_wrong_clock_does_not_put_the_days_out_of_order(
    vault: Path, plain_store: EnhancedStore, whens: tuple[str, ...], day: str, cut: int
) -> None:
    for number in range(len(whens)):
        plain_store.create("n", str(number), overwrite=True)
    dated(vault, *whens)
    assert plain_store._parts.texts.moment_of(day).number == cut
