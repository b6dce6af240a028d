"""How often a question waits for PostgreSQL: a team's database is some milliseconds away."""

from __future__ import annotations

import select
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from postgres import needs_postgres, running

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
_AWAY = 0.02  # seconds
_FLUSH = b"H\0\0\0\4"  # by which a client asks for the answers that it waits for
_NAME = ".s.PGSQL.5432"


class FarAway:
    """Stands before a server, holds back what goes to it, and counts how often answers are waited for."""

    def __init__(self, server: str, folder: str) -> None:
        self.trips, self.seconds = 0, 0.0
        self._server = str(Path(parse_qs(urlsplit(server).query)["host"][0], _NAME))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(Path(folder, _NAME)))
        self._listening.listen()
        self.url = f"postgresql://memory@/postgres?host={folder}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            while True:
                for each in select.select([client, server], [], [])[0]:
                    if not (said := each.recv(1 << 20)):
                        return
                    if each is client:
                        time.sleep(self.seconds)
                        self.trips += said.count(_FLUSH)
                    (server if each is client else client).sendall(said)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def away() -> Iterator[FarAway]:
    with running() as url, tempfile.TemporaryDirectory(prefix="away-", dir="/tmp") as folder:
        made = FarAway(url, folder)
        yield made
        made.close()


@pytest.fixture
def store(tmp_path: Path, away: FarAway) -> Iterator[EnhancedStore]:
    with EnhancedStore(tmp_path, Settings.model_validate({"index": {"engine": away.url}})) as made:
        yield made


def fill(store: EnhancedStore, root: Path, notes: range) -> None:
    for k in notes:
        links = f"[[n{(k + 1) % 40}]] [[n{(k + 7) % 40}]]"
        text = f"---\ntags: [t{k % 3}]\n---\n\n# Crane {k}\n\nThe crane of pier {k} was greased. {links}\n"
        (root / f"n{k}.md").write_text(text, encoding="utf-8")
    store.sync()


def trips(away: FarAway, ask: Callable[[], object]) -> int:
    """How many a question takes where nothing has changed since one before."""
    ask()
    before = away.trips
    ask()
    return away.trips - before


def test_questions_make_as_many_round_trips_for_many_notes_and_hits(
    store: EnhancedStore, away: FarAway, tmp_path: Path
) -> None:
    asked: dict[str, Callable[[], object]] = {
        "search": lambda: store.search("crane of the pier", limit=3),
        "search for more": lambda: store.search("crane of the pier", limit=30),
        "search through a filter": lambda: store.search("tag:t1 greased", limit=10),
        "pack": lambda: store.context("Which crane was greased?"),
        "backlinks": lambda: store.backlinks("n3", limit=10),
        "read": lambda: store.read("n3"),
    }
    fill(store, tmp_path, range(40))
    store.search("crane")
    few = {name: trips(away, ask) for name, ask in asked.items()}
    fill(store, tmp_path, range(40, 240))
    many = {name: trips(away, ask) for name, ask in asked.items()}
    assert (
        all(0 < many[name] <= few[name] for name in asked)
        and few["search"] == few["search for more"]
    )


def test_a_search_of_ten_hits_waits_four_times_for_a_database_20_ms_away(
    store: EnhancedStore, away: FarAway, tmp_path: Path
) -> None:
    fill(store, tmp_path, range(40))
    away.seconds = _AWAY
    store.search("which crane", limit=10)
    before = away.trips
    assert (
        len(store.search("crane of the pier", limit=10).hits) == 10
    )  # words and places that nobody asked for yet
    assert (away.trips - before) * _AWAY < 0.1
