"""A write that adds a password or key is told so, or refused; nothing that was found is said aloud or kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import Invalid
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PASSWORD = "Tr0ub4dor&3"


def opened(vault: Path, mode: str) -> EnhancedStore:
    return EnhancedStore(
        vault, Settings.model_validate({"embed": {"provider": "none"}, "write": {"secrets": mode}})
    )


Doing = Callable[[EnhancedStore], Any]
WRITES: dict[str, Doing] = {
    "create": lambda store: store.create("new", f"Use {TOKEN} for it."),
    "create with metadata": lambda store: store.create("new", "", {"password": PASSWORD}),
    "overwrite": lambda store: store.create("there", f"Use {TOKEN} for it.", overwrite=True),
    "content": lambda store: store.update("there", content=f"Use {TOKEN} for it."),
    "append": lambda store: store.update("there", append=f"password: {PASSWORD}"),
    "edit": lambda store: store.update("there", edits=[{"old": "Nothing", "new": TOKEN}]),
    "metadata": lambda store: store.update("there", metadata={"api_key": TOKEN}),
    "tag": lambda store: store.change_tags("there", {TOKEN: True}),
    "editor": lambda store: store.write_text(
        "there", f"{TOKEN}\n", if_sha256=store.read("there").sha256
    ),
}


@pytest.mark.parametrize("doing", WRITES.values(), ids=WRITES)
def test_every_write_that_adds_a_secret_says_so(
    vault: Path, write: Callable[..., Path], doing: Doing
) -> None:
    write("there.md", "Nothing here.\n")
    with opened(vault, "warn") as store:
        saved = doing(store)
    assert saved.changed
    said = " ".join(saved.warnings)
    assert "GitHub token, ghp_… (40 characters)" in said or "a password, … (11 characters)" in said
    assert f"of {saved.name} seems to contain" in said
    assert TOKEN not in said
    assert PASSWORD not in said


@pytest.mark.parametrize("doing", WRITES.values(), ids=WRITES)
def test_every_such_write_is_refused_where_that_is_wanted_and_leaves_nothing(
    vault: Path, write: Callable[..., Path], doing: Doing
) -> None:
    write("there.md", "Nothing here.\n")
    with opened(vault, "refuse") as store:
        store.sync()
        with pytest.raises(Invalid, match=r"line \d+ of (new|there) seems to contain a") as refused:
            doing(store)
        assert store.history() == ()
        assert store.names() == ["there"]
    told = str(refused.value.as_dict())
    assert refused.value.details["secrets"][0]["line"] >= 1
    kept = b"".join(file.read_bytes() for file in vault.rglob("*") if file.is_file())
    for secret in (TOKEN, PASSWORD):
        assert secret not in told
        assert secret.encode() not in kept
    assert (vault / "there.md").read_text() == "Nothing here.\n"


@pytest.mark.parametrize("how", ["create", "move"])
def test_a_name_is_judged_as_well(vault: Path, write: Callable[..., Path], how: str) -> None:
    write("there.md", "Nothing here.\n")

    def doing(store: EnhancedStore) -> Any:
        return (
            store.create(f"key {TOKEN}", "x")
            if how == "create"
            else store.move("there", f"key {TOKEN}")
        )

    with opened(vault, "refuse") as store:
        store.sync()
        with pytest.raises(
            Invalid, match=r"the name seems to contain a GitHub token, ghp_… \(40 characters\)"
        ) as refused:
            doing(store)
        assert TOKEN not in str(refused.value.as_dict())
        assert store.names() == ["there"] and store.history() == ()
    with opened(vault, "warn") as store:
        assert any("the name seems to contain" in each for each in doing(store).warnings)
        assert store.move(f"key {TOKEN}", f"keys/key {TOKEN}").warnings == (), (
            "it had that name before"
        )
    with opened(vault, "off") as store:
        assert store.create(f"again {TOKEN}", "x").warnings == ()


@pytest.mark.parametrize("mode", ["warn", "refuse", "off"])
def test_a_reason_and_the_name_of_a_client_are_kept_without_the_secret_in_it(
    vault: Path, write: Callable[..., Path], mode: str
) -> None:
    write("there.md", "Nothing here.\n")
    with opened(vault, mode) as store:
        reason = f"he said the password: {PASSWORD} and {TOKEN} work"
        store.update("there", append="More.", reason=reason, who=f"client {TOKEN} 1.0")
        (entry,) = store.history("there")
    assert entry.who == "client ghp_… (40 characters) 1.0"
    assert entry.reason == "he said the password: … (11 characters) and ghp_… (40 characters) work"
    kept = b"".join(file.read_bytes() for file in vault.rglob("*") if file.is_file())
    assert TOKEN.encode() not in kept and PASSWORD.encode() not in kept


@pytest.mark.parametrize("mode", ["warn", "refuse"])
def test_a_restore_that_brings_a_secret_back_says_so_and_is_never_refused(
    vault: Path, write: Callable[..., Path], mode: str
) -> None:
    note = write("there.md", f"Use {TOKEN} for it.\n")
    with opened(vault, mode) as store:
        store.sync()
        store.update("there", content="It is in the safe.")
        restored = store.restore("there", at="before v1")
        assert restored.changed and TOKEN in note.read_text()
        assert "of there seems to contain a GitHub token" in restored.warnings[
            0
        ] and TOKEN not in str(restored.warnings)
        assert store.restore("there", at="before v1").warnings == (), "nothing was added"


def test_a_secret_is_not_logged(vault: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with opened(vault, "warn") as store:
        store.create("new", f"{TOKEN} and password: {PASSWORD}")
        store.search(TOKEN, explain=True)
    assert TOKEN not in caplog.text
    assert PASSWORD not in caplog.text
