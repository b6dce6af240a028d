"""Which of several servers leads: the one whose number is in the database and was renewed lately.

Each leader has a number (a fencing token). The transactions of a leader that was replaced are
refused.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from simplemem.errors import Unavailable
from simplemem.index.engine import SET_META, Connection, Damaged

LEASE_SECONDS = 8.0  # without a renewal; then another leads
_RENEWAL_SECONDS = 2.0
LEADER = "leader"  # in `meta`: a number, and until when its holder leads by the database's clock


class _Tables(Protocol):
    """What a lease needs of the engine. Both methods are for the thread that leads."""

    def exclusively(self) -> AbstractContextManager[Connection]:
        """Open a transaction that excludes all other writers, but does not advance the state."""

    def fence(self, leader_number: int) -> None:
        """From now on, refuse what this thread writes if another leader than `leader_number` leads.

        0 ends this: nothing is refused.
        """


class Lease:
    """The lead of one vault's tables, asked for by one thread.

    Guards the number of this leader. If it does not renew the lead for 8 s, others may take it.
    """

    def __init__(self, tables: _Tables) -> None:
        self._tables = tables
        self._number = 0  # 0: this process does not lead
        self._renewed_at = 0.0

    def acquire_or_keep(self) -> bool:
        """Return whether this process leads, after taking the lead if nobody has it.

        Renews the lead of this process if 2 s have passed since the last time; before that, it is
        taken to lead still, without asking. Returns False, without an error, if the server is away
        or the tables are damaged.
        """
        is_leader = self._number > 0
        if is_leader and time.monotonic() - self._renewed_at < _RENEWAL_SECONDS:
            return True

        old_number = self._number
        self._number = 0
        with suppress(Unavailable, Damaged):
            self._number = self._take_or_renew(old_number)
            self._renewed_at = time.monotonic()
        self._tables.fence(self._number)
        return self._number > 0

    def _take_or_renew(self, old_number: int) -> int:
        """Record that this process leads, unless another one does, and return its number.

        `old_number` is its number so far, 0 if it did not lead. It keeps this number if nobody else
        has led since; otherwise it gets a new one. Returns 0 if another process leads. The number
        is returned only after the commit: another process takes the same number if the commit
        failed.
        """
        with self._tables.exclusively() as db:
            last_number, until = leader_in(db)
            remaining = until - _now(db)
            # More remains than a lease lasts if the database's clock was put back.
            is_free = not 0 <= remaining <= LEASE_SECONDS
            is_ours = old_number != 0 and last_number == old_number
            if not is_ours and not is_free:
                return 0

            number = old_number if is_ours else last_number + 1
            renew(db, number)
        return number

    def release(self) -> None:
        """End the lead of this process at once, so that another one can lead.

        If the server is away, raises nothing: the lead then ends within 8 s.
        """
        with suppress(Unavailable, Damaged), self._tables.exclusively() as db:
            if self._number and leader_in(db)[0] == self._number:
                db.execute(SET_META, (LEADER, f"{self._number} 0")).fetchall()
        self._number = 0
        self._tables.fence(0)


def renew(db: Connection, number: int) -> None:
    """Record that the leader of this number leads for 8 s from now. For a write transaction."""
    db.execute(SET_META, (LEADER, f"{number} {_now(db) + LEASE_SECONDS}")).fetchall()


def leader_in(db: Connection) -> tuple[int, float]:
    """Return the number of the last leader, and until when it leads, in seconds since 1970.

    The time is by the database's clock; 0 if the lead was given up. Both are 0 before the first
    leader.
    """
    value = db.execute("SELECT value FROM meta WHERE key = $1", (LEADER,)).get
    number, until = str(value or "0 0").split()
    return int(number), float(until)


def _now(db: Connection) -> float:
    """Return the time of the database's clock, in seconds since 1970."""
    return float(db.execute("SELECT extract(epoch FROM clock_timestamp())").get)
