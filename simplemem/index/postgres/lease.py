"""Who of several servers leads: the one whose name stands in the database, for as long as it says so now and then. Each
leader has a number, and a transaction of one that was replaced is refused (a fencing token)."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from simplemem.errors import Unavailable
from simplemem.index.connection import SET_META
from simplemem.index.engine import Damaged

if TYPE_CHECKING:
    from simplemem.index.postgres.connection import Connection
    from simplemem.index.postgres.database import PostgresDatabase

SECONDS = 8.0  # without a word: then another leads
_RENEWED = 2.0
LEADER = "leader"  # in `meta`: a number, and until when its holder leads by the database's clock


class Lease:
    """The lead of one vault's tables, asked for by one thread."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database, self._number, self._said_at = database, 0, 0.0

    def take_or_keep(self) -> bool:
        """Whether we lead, taking the lead if nobody has it."""
        if self._number and time.monotonic() - self._said_at < _RENEWED:
            return True
        ours, self._number = self._number, 0
        with suppress(Unavailable, Damaged), self._database.exclusively() as db:
            number, until = leader_in(db)
            if number == ours or not 0 <= until - _now(db) <= SECONDS:  # or its clock was put back
                self._number = ours if number == ours and ours else number + 1
                renew(db, self._number)
                self._said_at = time.monotonic()
        self._database.fence(self._number)
        return self._number > 0

    def release(self) -> None:
        """Let another lead."""
        with suppress(Unavailable, Damaged), self._database.exclusively() as db:
            if self._number and leader_in(db)[0] == self._number:
                db.execute(SET_META, (LEADER, f"{self._number} 0"))
        self._number = 0
        self._database.fence(0)


def renew(db: Connection, number: int) -> None:
    """The leader of this number is there."""
    db.execute(SET_META, (LEADER, f"{number} {_now(db) + SECONDS}"))


def leader_in(db: Connection) -> tuple[int, float]:
    """Who leads, and until when."""
    number, until = (
        db.execute("SELECT value FROM meta WHERE key = ?", (LEADER,)).get or "0 0"
    ).split()
    return int(number), float(until)


def _now(db: Connection) -> float:
    return float(db.execute("SELECT extract(epoch FROM clock_timestamp())").get)
