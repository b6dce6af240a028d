"""A role for each vault of a database: it can use its own rows, and neither read nor change another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import PROGRAMS, needs_postgres, running

from simplemem.errors import Unavailable
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
if PROGRAMS is not None:
    import psycopg
    from psycopg import errors

# As docs/engine.md says it.
DATABASE = ("CREATE DATABASE memory", "REVOKE ALL ON DATABASE memory FROM PUBLIC")
ROLE = ("CREATE ROLE {0} LOGIN", "GRANT CONNECT, CREATE ON DATABASE memory TO {0}")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as url:
        with psycopg.connect(url, autocommit=True) as db:
            for statement in (
                *DATABASE,
                *(each.format(name) for name in ("ann", "bob") for each in ROLE),
            ):
                db.execute(statement.encode())
        yield url


def of(server: str, role: str) -> str:
    return server.replace("memory@/postgres", f"{role}@/memory")


def opened(root: Path, url: str, schema: str) -> EnhancedStore:
    settings = {"index": {"engine": url, "schema_name": schema}}
    return EnhancedStore(root, Settings.model_validate(settings))


def test_a_role_that_may_only_create_serves_its_vault_whole(tmp_path: Path, server: str) -> None:
    with opened(tmp_path, of(server, "ann"), "ann_whole") as store:
        store.create("pear", "A pear for the [[plum]].")
        store.create("plum", "A plum.")
        store.move("plum", "fruit/plum")
        store.sync(rebuild=True)
        store.update("pear", append="More.")
        assert [hit.name for hit in store.search("plum", mode="hybrid").hits][:1] == ["fruit/plum"]
        assert store.stats()["vectors"] and not store.doctor(only=["index"])


def test_no_role_reads_or_changes_the_rows_of_anothers_vault(tmp_path: Path, server: str) -> None:
    with opened(tmp_path / "a", of(server, "ann"), "ann_notes") as ann:
        ann.create("diary", "The quagga of Zambezi.")
        ann.sync()
        rebuilt = (
            ann._parts.index.database.build_replacement()
        )  # as it stands in the middle of a rebuild
        ann._parts.make_updater(rebuilt).scan()
        with psycopg.connect(server.replace("/postgres", "/memory")) as db:  # who may see all of it
            sql = "SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
            tables = db.execute(
                f"{sql} WHERE nspname LIKE 'ann_notes%' AND relkind = 'r'"
            ).fetchall()
            assert {schema for schema, _ in tables} == {"ann_notes", rebuilt.schema}
            assert db.execute("SELECT packed FROM ann_notes.segments").fetchone() is not None
        with psycopg.connect(of(server, "bob"), autocommit=True) as bob:
            for schema, table in tables:
                for statement in (
                    "SELECT * FROM {}",
                    "DELETE FROM {}",
                    "DROP TABLE {}",
                    "COPY {} TO STDOUT",
                ):
                    with pytest.raises(errors.InsufficientPrivilege):
                        bob.execute(statement.format(f"{schema}.{table}").encode())
            for statement in (
                "DROP SCHEMA ann_notes CASCADE",
                "CREATE TABLE ann_notes.mine (x int)",
                "SET ROLE ann",
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    bob.execute(statement.encode())
            asked = bob.execute(
                "SELECT query FROM pg_stat_activity WHERE usename = 'ann'"
            ).fetchall()
            assert asked and "quagga" not in str(asked) and "SELECT" not in str(asked)
            stored = bob.execute(
                "SELECT * FROM pg_stats WHERE schemaname LIKE 'ann_notes%'"
            ).fetchall()
            assert stored == []  # the commonest words, as the planner keeps them
        mistaken = opened(tmp_path / "b", of(server, "bob"), "ann_notes")
        with mistaken, pytest.raises(Unavailable, match="refuses this user"):
            mistaken.sync()
        assert [hit.name for hit in ann.search("quagga").hits] == ["diary"]
        rebuilt.drop()
