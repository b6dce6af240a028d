"""Which earlier texts can still be read is told by their hashes."""

from __future__ import annotations

from pathlib import Path

from simplemem.vault.vault import Change, Vault


def test_texts_that_changes_took_away_are_kept_until_they_are_not(vault: Path) -> None:
    here = Vault(vault)
    assert here.hashes_kept() == set()
    first = here.create("a.md", b"one", Change("create"))
    here.replace("a.md", b"two", first.sha256 or "", Change("update"))
    assert first.sha256 in here.hashes_kept()
    for kept in (vault / ".simplemem" / "history").glob("*/**/*"):
        if kept.is_file():
            assert here.history.content(first.sha256 or "") == b"one" or kept.name not in here.hashes_kept()
            kept.unlink()
    assert here.hashes_kept() == set() and here.history.content(first.sha256 or "") is None
