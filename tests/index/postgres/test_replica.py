"""A replica that is asked what only reads: never for what it has not reached, and never waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pygit2
import pytest
from postgres import Relay, Server, needs_postgres, relayed, served
from waiting import eventually

from simplemem.errors import Invalid
from simplemem.index.postgres.database import PostgresEngine
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    with served() as primary, served(replica_of=primary.url) as standby:
        yield primary, standby


@pytest.fixture
def primary(servers: tuple[Server, Server]) -> Iterator[Relay]:
    with relayed(servers[0]) as relay:
        yield relay


@pytest.fixture
def standby(servers: tuple[Server, Server]) -> Iterator[Server]:
    yield servers[1]
    tell(servers[1], "SELECT pg_wal_replay_resume()")


@pytest.fixture
def replica(standby: Server) -> Iterator[Relay]:
    with relayed(standby) as relay:
        yield relay


@pytest.fixture
def store(vault: Path, primary: Relay, replica: Relay) -> Iterator[EnhancedStore]:
    index = {"engine": primary.url, "replica": replica.url}
    with EnhancedStore(
        vault, Settings.model_validate({"index": index, "embed": {"provider": "none"}})
    ) as made:
        made.sync()
        yield made


def tell(server: Server, statement: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(statement)


def found(store: EnhancedStore, question: str) -> list[str]:
    return sorted(hit.name for hit in store.search(question).hits)


def is_read_from(replica: Relay, primary: Relay, store: EnhancedStore, question: str) -> bool:
    """Whether the replica answers, and nobody asks the primary."""
    before = primary.messages_left, replica.messages_left
    found(store, question)
    return primary.messages_left == before[0] and replica.messages_left < before[1]


def test_what_only_reads_is_asked_of_it(
    store: EnhancedStore, primary: Relay, replica: Relay
) -> None:
    store.create("pear", "A pear.")
    assert eventually(lambda: is_read_from(replica, primary, store, "pear"))
    assert found(store, "pear") == ["pear"]
    assert store.stats()["engine"].endswith(" answers reads")


def test_one_that_lags_is_not_asked_for_what_was_written(
    store: EnhancedStore, primary: Relay, replica: Relay, standby: Server
) -> None:
    assert eventually(lambda: is_read_from(replica, primary, store, "pear"))
    tell(standby, "SELECT pg_wal_replay_pause()")
    store.create("pear", "A pear.")
    assert found(store, "pear") == ["pear"]
    store.delete("pear")
    assert found(store, "pear") == []
    tell(standby, "SELECT pg_wal_replay_resume()")
    assert eventually(lambda: is_read_from(replica, primary, store, "pear"))
    assert found(store, "pear") == []


def test_one_that_lags_is_not_asked_of_a_commit_that_it_lacks(
    tmp_path: Path, primary: Relay, replica: Relay, standby: Server
) -> None:
    pygit2.init_repository(str(tmp_path / "truth.git"), bare=True)
    branch = {"repository": str(tmp_path / "truth.git")}
    index = {"engine": primary.url, "replica": replica.url}

    def opened(name: str) -> EnhancedStore:
        given = {"branch": branch, "index": index, "embed": {"provider": "none"}}
        return EnhancedStore(tmp_path / name, Settings.model_validate(given))

    with opened("one") as one, opened("other") as other:
        one.create("plum", "Red.")
        assert eventually(lambda: found(other, "plum") == ["plum"])
        tell(standby, "SELECT pg_wal_replay_pause()")
        one.update("plum", append="Then blue.")
        other.reach(one.commit(written=True))
        assert found(other, "blue") == ["plum"]
        assert other.search("blue").index.commit == one.commit(written=True)


def test_tables_that_were_made_anew_are_not_asked_for_where_they_are_not(
    store: EnhancedStore, primary: Relay, replica: Relay, standby: Server
) -> None:
    store.create("pear", "A pear.")
    for k in range(9):  # more than the new ones will have seen
        store.update("pear", append=f"Line {k}.")
    assert eventually(lambda: is_read_from(replica, primary, store, "pear"))
    tell(standby, "SELECT pg_wal_replay_pause()")
    store.sync(rebuild=True)
    store.create("plum", "A plum, and no pear.")
    assert found(store, "pear") == ["pear", "plum"]
    tell(standby, "SELECT pg_wal_replay_resume()")
    assert eventually(lambda: is_read_from(replica, primary, store, "pear"))
    assert found(store, "pear") == ["pear", "plum"]


def test_it_is_asked_again_after_the_tables_were_discarded(
    tmp_path: Path, primary: Relay, replica: Relay
) -> None:
    with closing(
        PostgresEngine(primary.url, "discarded", tmp_path / "index.db", replica.url)
    ) as engine:
        for number in range(9):  # more writes than the new tables will have seen
            engine.set_meta("number", str(number))
        engine.discard()
        engine.set_meta("number", "new")
        assert eventually(lambda: engine.answer(lambda db: db.is_of_replica))


def test_one_that_is_away_is_said_and_not_missed(store: EnhancedStore, replica: Relay) -> None:
    store.create("pear", "A pear.")
    replica.cut_after(3)
    assert [found(store, "pear") for _ in range(4)] == [["pear"]] * 4
    assert store.stats()["engine"].endswith(" does not answer")


def test_a_replica_without_an_address_is_refused(vault: Path, primary: Relay) -> None:
    index = {"engine": primary.url, "replica": "db2-secret"}
    with pytest.raises(Invalid, match=r"the setting index.replica does not name") as refused:
        EnhancedStore(vault, Settings.model_validate({"index": index}))
    assert "secret" not in f"{refused.value} {refused.value.hint}"
