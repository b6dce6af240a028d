"""Several threads, several stores, several processes on one vault: nobody loses anything, and all see the same."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import SimplememError
from simplemem.index.sync_pass import SyncPass
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})


def found(store: EnhancedStore, query: str, mode: str = "text") -> set[str]:
    return {hit.name for hit in store.search(query, mode=mode, limit=100).hits}


def errors(store: EnhancedStore) -> list[str]:
    return [finding.message for finding in store.doctor() if finding.level == "error"]


def all_at_once(*work: Callable[[], None]) -> list[BaseException]:
    """Run all in threads of their own, and give what they raised."""
    raised: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_read_write_search_and_an_editor_saves_all_at_once(vault: Path) -> None:
    """The errors that may come are ours, and in the end the index is what a rebuilt one would be."""
    store = EnhancedStore(vault, Settings.model_validate({"write": {"durability": "fast"}}))
    store.start()
    assert store.wait_until_settled()

    def work(seed: int) -> Callable[[], None]:
        chance = random.Random(seed)
        names = [f"t{k}" for k in range(6)]
        actions: list[Callable[[str], object]] = [
            lambda name: store.create(
                name, f"plum {seed} [[{chance.choice(names)}]]", overwrite=True
            ),
            lambda name: store.update(name, append=f"line {chance.random()}"),
            lambda name: store.change_tags(name, {f"k{seed}": "v"}),
            lambda name: store.delete(name),
            lambda name: store.move(name, chance.choice(names)),
            lambda name: store.undo(name),
            lambda name: store.search("plum line"),
            lambda name: store.read(name),
            lambda name: store.context("plum line"),
            lambda name: store.backlinks(name),
            lambda name: (
                store.list(),
                store.stats(),
                store.state(),
                store.inspect(),
                store.tags(),
                store.names(),
            ),
            lambda name: (vault / f"{name}.md").write_text(f"by hand {chance.random()} plum"),
            lambda name: (vault / f"{name}.md").unlink(missing_ok=True),
        ]

        def run() -> None:
            for _ in range(60):
                with contextlib.suppress(SimplememError):
                    chance.choice(actions)(chance.choice(names))

        return run

    with store:
        assert all_at_once(*(work(seed) for seed in range(4))) == []
        store.sync()
        assert {path.stem for path in vault.glob("*.md")} == {
            item.name for item in store.list().items
        }
    with EnhancedStore(vault, store.settings) as after:
        after.sync()
        assert errors(after) == []


def test_a_scan_takes_nothing_away_that_another_store_put_meanwhile(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note goes and another comes while a scan is between reading the index and believing that the first is gone."""
    with EnhancedStore(vault, PLAIN) as scanning, EnhancedStore(vault, PLAIN) as busy:
        scanning.create("keep", "fig")
        scanning.create("gone", "plum")
        (vault / "gone.md").unlink()
        carry_out = SyncPass.carry_out

        def meanwhile(found: SyncPass, total: int | None) -> object:
            monkeypatch.undo()
            busy.sync()
            busy.create("fresh", "quince")
            return carry_out(found, total)

        monkeypatch.setattr(SyncPass, "carry_out", meanwhile)
        scanning.sync()
        assert found(scanning, "quince") == {"fresh"}
        assert found(scanning, "plum") == set()
        assert errors(scanning) == []


def test_a_store_can_be_closed_twice_and_from_within_its_background(vault: Path) -> None:
    before = set(threading.enumerate())
    store = EnhancedStore(vault, PLAIN)
    store.start()
    store.start()
    store.close()
    store.close()
    assert not [
        thread
        for thread in set(threading.enumerate()) - before
        if thread.name == "simplemem-background"
    ]


def test_closing_in_the_middle_of_the_first_scan_ends_it_there(
    vault: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = set(threading.enumerate())
    for k in range(1200):
        (vault / f"n{k}.md").write_text(
            f"# Note {k}\n\n" + "Some words about harbour cranes and boats.\n\n" * 12
        )
    store = EnhancedStore(vault, PLAIN)
    store.start()
    while store.state().notes == 0:
        assert not store.wait_until_settled(0.005)
    store.close()
    assert not [
        thread
        for thread in set(threading.enumerate()) - before
        if thread.name == "simplemem-background"
    ]
    assert caplog.records == []
    with EnhancedStore(vault, PLAIN) as again:
        left = again.state()
        assert left.notes > 0
        assert (
            left.notes == 1200 or left.state == "indexing"
        )  # and says that it does not know the whole vault
        again.sync()
        assert again.state().notes == 1200
