"""How the rooms of the index speak to an engine: in SQL that SQLite and PostgreSQL both take, with SQLite's marks for
values; many are a table `carray(?)` whose column is `value`, bound by `Connection.many`. Words are not among the tables:
each engine keeps those in a way of its own (`Words`). What an engine has to have is what the sidecar has, which says
of each member what it is for: `database.Database` and its `Connection`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from simplemem.index import database
    from simplemem.index.postgres import connection as postgres
    from simplemem.index.postgres.database import PostgresDatabase

LAST = "\U0010ffff"  # sorts after every character of a path or a term
COMMIT = "commit"  # in `meta`: the one of a branch that the rows are of
SET_META = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

# A thread's way to the tables, and to the words beside them; the words of one state of the index, counted and ranked by BM25
# (the legs are `note` and `block`); and one vault's tables in an engine, for any thread.
Connection: TypeAlias = "database.Connection | postgres.Connection"
Tables: TypeAlias = "database.Database | PostgresDatabase"
