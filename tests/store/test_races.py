"""A lost race is answered with what was, what is, and a merge of both, which one more call accepts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import Conflict, Invalid
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
BODY = "first\nsecond\nthird\nfourth\nfifth\n"
TEXT = "---\ntags: [kite]\nmodified: 2026-01-01T10:00:00\n---\n" + BODY


@pytest.fixture
def read(plain_store: EnhancedStore, write: Write) -> str:
    """The hash of a note as an agent has read it."""
    write("Kite.md", TEXT)
    plain_store.sync()
    return plain_store.read("Kite").sha256


def refused(
    store: EnhancedStore, read: str, content: str = BODY.replace("first", "FIRST")
) -> Conflict:
    with pytest.raises(Conflict) as conflict:
        store.update("Kite", content=content, if_sha256=read)
    return conflict.value


def test_the_failure_names_base_theirs_and_ours_and_shows_the_merge(
    plain_store: EnhancedStore, write: Write, read: str
) -> None:
    theirs = TEXT.replace("fifth", "FIFTH")
    write("Kite.md", theirs)
    details = refused(plain_store, read).details
    assert details["base_sha256"] == read
    assert details["current_sha256"] == plain_store.read("Kite").sha256
    assert "+FIFTH" in details["diff"]
    assert details["merged"]["clean"]
    assert details["merged"]["text"] == theirs.replace("first", "FIRST")
    assert "+FIRST" in details["merged"]["diff"]
    assert plain_store.read("Kite", version=details["base_sha256"]).text == TEXT
    assert plain_store.read("Kite", version=details["ours_sha256"]).text == TEXT.replace(
        "first", "FIRST"
    )
    assert details["accept"] in refused(plain_store, read).hint


def test_the_same_call_with_what_the_failure_offers_writes_the_merge(
    plain_store: EnhancedStore, write: Write, vault: Path, read: str
) -> None:
    write("Kite.md", TEXT.replace("fifth", "FIFTH"))
    offer = refused(plain_store, read).details["accept"]
    saved = plain_store.update("Kite", content=BODY.replace("first", "FIRST"), if_sha256=offer)
    text = (vault / "Kite.md").read_text()
    assert saved.changed
    assert text.endswith("FIRST\nsecond\nthird\nfourth\nFIFTH\n")
    assert "modified: 2026-01-01T10:00:00" not in text
    plain_store.undo(saved.version)
    assert (vault / "Kite.md").read_text() == TEXT.replace("fifth", "FIFTH")


@pytest.mark.parametrize("accepting", [False, True])
def test_an_append_made_already_is_not_offered_again_after_a_third_change(
    plain_store: EnhancedStore, write: Write, vault: Path, read: str, accepting: bool
) -> None:
    asked = read
    if accepting:
        plain_store.update("Kite", append="theirs")
        with pytest.raises(Conflict) as lost:
            plain_store.update("Kite", append="ours", if_sha256=read)
        asked = lost.value.details["accept"]
    done = plain_store.update("Kite", append="ours", if_sha256=asked)
    plain_store.update("Kite", append="a third")
    with pytest.raises(Conflict) as repeated:  # the answer was lost
        plain_store.update("Kite", append="ours", if_sha256=asked)
    assert "accept" not in repeated.value.details and done.version in repeated.value.message
    assert repeated.value.details["current_sha256"] == plain_store.read("Kite").sha256
    plain_store.undo("Kite")
    plain_store.undo(done.version)
    plain_store.update("Kite", append="a third")
    with pytest.raises(Conflict) as anew:  # it was taken back, and may be made
        plain_store.update("Kite", append="ours", if_sha256=asked)
    assert anew.value.details["accept"]
    assert (vault / "Kite.md").read_text().count("ours") == 0


def test_changes_of_the_same_lines_are_shown_marked_and_not_offered(
    plain_store: EnhancedStore, write: Write, vault: Path, read: str
) -> None:
    theirs = TEXT.replace("first", "theirs")
    write("Kite.md", theirs)
    details = refused(plain_store, read).details
    assert "accept" not in details
    assert (details["merged"]["clean"], details["merged"]["conflicts"]) == (False, 1)
    assert (
        "<<<<<<< your change\nFIRST\n=======\ntheirs\n>>>>>>> the note as it is now\n"
        in details["merged"]["text"]
    )
    offer = f"{read[:16]}+{details['current_sha256'][:16]}"
    with pytest.raises(Conflict):
        plain_store.update("Kite", content=BODY.replace("first", "FIRST"), if_sha256=offer)
    assert (vault / "Kite.md").read_text() == theirs


@pytest.mark.parametrize(
    ("change", "theirs", "both"),
    [
        ({"append": "sixth"}, ("fifth", "FIFTH"), "fourth\nFIFTH\n\nsixth\n"),
        (
            {"edits": [{"old": "fifth", "new": "last"}]},
            ("fifth", "the fifth of them"),
            "fourth\nthe last of them\n",
        ),
    ],
)
def test_an_append_or_an_edit_whose_place_is_there_is_made_on_a_line_that_others_changed(
    plain_store: EnhancedStore,
    write: Write,
    read: str,
    change: dict[str, Any],
    theirs: tuple[str, str],
    both: str,
) -> None:
    write("Kite.md", TEXT.replace(*theirs))
    with pytest.raises(Conflict) as conflict:
        plain_store.update("Kite", **change, if_sha256=read)
    plain_store.update("Kite", **change, if_sha256=conflict.value.details["accept"])
    assert plain_store.read("Kite").content.endswith(both)


def test_a_secret_that_may_not_be_written_is_not_kept_with_an_offer_either(
    vault: Path, write: Write
) -> None:
    settings = Settings.model_validate(
        {"embed": {"provider": "none"}, "write": {"secrets": "refuse"}}
    )
    write("Kite.md", TEXT)
    with EnhancedStore(vault, settings) as store:
        store.sync()
        read = store.read("Kite").sha256
        write("Kite.md", TEXT.replace("fifth", "FIFTH"))
        key = "AKIA" + "Q3EGRXS6ZPNOTREA"
        with pytest.raises(Invalid):
            store.update("Kite", append=f"The key is {key}", if_sha256=read)
    kept = [
        path.read_bytes() for path in (vault / ".simplemem/history").rglob("*") if path.is_file()
    ]
    assert not any(key.encode() in data for data in kept)
