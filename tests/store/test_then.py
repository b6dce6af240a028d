"""The vault as it was: what the log of changes tells of a moment, and what it cannot tell."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import Invalid, NotFound
from simplemem.store import EnhancedStore
from simplemem.store.history import NoteThen, moment_of, note_then, notes_then

Write = Callable[[str, str | bytes], Path]
DAY = 86_400


def dated(vault: Path, *whens: str) -> None:
    """Give the changes in the log these times, oldest first."""
    log = vault / ".simplemem/history/log.jsonl"
    lines = [json.loads(line) for line in log.read_bytes().split(b"\n") if line]
    for line, when in zip(lines, whens, strict=True):
        line["when"] = f"{when}T12:00:00.000Z"
    spelled = [json.dumps(line, separators=(",", ":")) + "\n" for line in lines]
    log.write_bytes("".join(spelled).encode())


def at(store: EnhancedStore, path: str, moment: str) -> NoteThen:
    return note_then(store.core, path, moment_of(store.core, moment))


def text_at(store: EnhancedStore, path: str, moment: str) -> str | None:
    then = at(store, path, moment)
    return None if then.data is None else then.data.decode().split("---\n")[-1].strip()


def differing(store: EnhancedStore, moment: str) -> dict[str, bytes | None]:
    return {then.path: then.data for then, differs in notes_then(store.core, moment_of(store.core, moment)) if differs}


def test_a_note_is_given_as_it_was_on_a_day(vault: Path, plain_store: EnhancedStore) -> None:
    for text in ("one", "two", "three"):
        plain_store.create("n", text, overwrite=True)
    plain_store.delete("n")
    dated(vault, "2026-01-05", "2026-02-05", "2026-03-05", "2026-04-05")
    assert at(plain_store, "n.md", "2026-01-04").sha256 is None
    assert text_at(plain_store, "n.md", "2026-01-05") == "one", "a day is over at its end"
    assert text_at(plain_store, "n.md", "2026-02") == "two"
    assert text_at(plain_store, "n.md", "2026-03-06") == "three"
    assert at(plain_store, "n.md", "2026") == NoteThen("n.md", None, None)


def test_a_version_is_a_moment_too_and_an_operation_is_never_halved(vault: Path, plain_store: EnhancedStore) -> None:
    plain_store.create("a", "See [[b]].")
    plain_store.create("b", "old")
    moved = plain_store.move("b", "c")
    assert moved.rewritten == ("a",)
    before = moment_of(plain_store.core, moved.version, start=True)
    assert before.number == 2
    assert text_at(plain_store, "a.md", "v2") == "See [[b]]."
    assert text_at(plain_store, "a.md", moved.version) == "See [[c]]."
    assert at(plain_store, "c.md", "v1").sha256 is None
    assert at(plain_store, "c.md", "v2").path == "b.md", "it is followed back through its moves"
    with pytest.raises(NotFound):
        moment_of(plain_store.core, "v99")
    with pytest.raises(Invalid, match="not a date"):
        moment_of(plain_store.core, "the day before the day")


def test_what_the_first_change_found_stood_there_before(vault: Path, plain_store: EnhancedStore, write: Write) -> None:
    write("n.md", "by hand")
    plain_store.sync()
    plain_store.update("n", append="more")
    dated(vault, "2026-02-05")
    assert at(plain_store, "n.md", "2026-01-01").data == b"by hand"


def test_an_edit_from_outside_is_placed_by_the_files_own_time_or_said_to_be_unsure(
    vault: Path, plain_store: EnhancedStore, write: Write
) -> None:
    plain_store.create("n", "ours")
    plain_store.create("m", "ours")
    dated(vault, "2026-01-05", "2026-01-05")
    file = write("n.md", "theirs")
    os.utime(file, (1_772_000_000, 1_772_000_000))  # 25 February 2026
    plain_store.sync()
    assert at(plain_store, "n.md", "2026-03-01") == NoteThen("n.md", at(plain_store, "n.md", "now").sha256, b"theirs")
    then = at(plain_store, "n.md", "2026-02-01")
    assert then.data is not None and b"ours" in then.data
    assert "outside simplemem between v000001 and now" in then.doubt
    plain_store.update("n", append="and ours")
    assert "between v000001 and v000003" in at(plain_store, "n.md", "2026-02-01").doubt
    assert at(plain_store, "n.md", "v1").doubt == "", "right after a version all is known"
    assert set(differing(plain_store, "2026-02-01")) == {"n.md"}


def test_a_note_that_simplemem_never_changed_is_as_it_is_now_and_in_doubt_when_it_is_newer(
    plain_store: EnhancedStore, write: Write
) -> None:
    os.utime(write("old.md", "old"), (1_767_225_600, 1_767_225_600))
    os.utime(write("new.md", "new"), (1_772_000_000, 1_772_000_000))
    plain_store.sync()
    assert at(plain_store, "new.md", "2026-02-01").doubt and not at(plain_store, "old.md", "2026-02-01").doubt
    assert at(plain_store, "nowhere.md", "2026-02-01") == NoteThen("nowhere.md", None, None)


def test_the_whole_vault_is_given_as_what_differs_from_now(vault: Path, plain_store: EnhancedStore) -> None:
    plain_store.create("same", "same")
    plain_store.create("changed", "one")
    plain_store.create("moved", "moved")
    plain_store.create("gone", "gone")
    texts = {name: (vault / f"{name}.md").read_bytes() for name in ("changed", "moved", "gone")}
    plain_store.update("changed", append="two")
    plain_store.move("moved", "there")
    plain_store.delete("gone")
    plain_store.create("fresh", "fresh")
    assert differing(plain_store, "v4") == {
        "changed.md": texts["changed"],
        "moved.md": texts["moved"],
        "there.md": None,
        "gone.md": texts["gone"],
        "fresh.md": None,
    }
    assert differing(plain_store, "now") == {}
    plain_store.undo(plain_store.history("gone", limit=1)[0].version)
    assert "gone.md" not in differing(plain_store, "v4")


def test_a_text_that_is_no_longer_kept_is_said_to_be_lost(vault: Path, plain_store: EnhancedStore) -> None:
    plain_store.create("n", "one")
    sha = plain_store.update("n", content="two").previous_sha256 or ""
    (vault / f".simplemem/history/objects/{sha[:2]}/{sha}").unlink()
    for displaced in (vault / ".simplemem/history/displaced").iterdir():
        displaced.unlink()
    then = at(plain_store, "n.md", "v1")
    assert (then.sha256, then.data) == (sha, None) and "no longer kept" in then.doubt
    assert list(notes_then(plain_store.core, moment_of(plain_store.core, "v1"))) == [(then, True)]


def test_a_text_that_was_found_stood_nowhere(vault: Path, plain_store: EnhancedStore) -> None:
    saved = plain_store.create("n", "one")
    with (vault / "n.md").open("r+b") as editor:
        plain_store.update("n", content="two")
        editor.write(b"late")
    plain_store.sync()
    assert plain_store.history("n", limit=1)[0].op == "recovered"
    assert at(plain_store, "n.md", saved.version).sha256 == saved.sha256
    assert differing(plain_store, "now") == {}


@pytest.mark.parametrize(
    ("whens", "day", "cut"),
    [
        (("2026-01-01", "2026-01-02", "2026-01-03"), "2026-01-02", 2),
        (("2026-01-01", "2099-01-01", "2026-01-03", "2026-01-04"), "2026-01-03", 3),  # once far ahead
        (("2026-01-01", "2026-01-02", "2026-01-03", "1970-01-01", "2026-01-04"), "2026-01-01", 1),  # once far behind
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
    assert moment_of(plain_store.core, day).number == cut
