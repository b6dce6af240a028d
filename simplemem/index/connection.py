"""How the rooms of the index speak to an engine: in SQL that SQLite and PostgreSQL both take, with SQLite's marks for
values. Words are not among its tables: each engine keeps those in a way of its own (door.Ranking). What an engine has to
have is what the sidecar has: `database.Database` says of each member what it is for, and the types hold both to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from simplemem.index import database
    from simplemem.index.postgres import connection as postgres
    from simplemem.index.postgres.database import PostgresDatabase

MANY = "carray(?)"
"""Many values as a table whose column is `value`, bound by `Connection.many`."""
IDS = "carray(:ids)"
LAST = "\U0010ffff"  # behind every path
COMMIT = "commit"  # in `meta`: the one of a branch that the rows are of
SET_META = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

Connection: TypeAlias = "database.Connection | postgres.Connection"
"""A thread's way to the tables, and to the words beside them."""
Tables: TypeAlias = "database.Database | PostgresDatabase"
"""One vault's tables in an engine, for any thread."""
