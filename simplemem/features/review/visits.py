"""When a person last looked at the review, from the times at which they decided. Pure.

A visit is a run of decisions and comments without a pause of more than 30 minutes. What was new at
the beginning of a visit stays new until its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

_MAX_PAUSE: Final = timedelta(minutes=30)  # within a visit


class Visit(NamedTuple):
    """The times of the first and the last action of a visit, or of a part of it, in UTC."""

    began: str
    ended: str


def extend_visits(visits: list[Visit], when: str) -> None:
    """Add an action to visits, the oldest first. It belongs to the last one if it is soon after."""
    if visits and not is_pause(visits[-1].ended, when):
        last = visits[-1]
        visits[-1] = Visit(min(last.began, when), max(last.ended, when))
    else:
        visits.append(Visit(when, when))


def find_last_look(visits: Iterable[Visit], now: str) -> str:
    """Return when the last visit ended that is not the one of `now`; "" if there is none.

    The visits may be in any order and may overlap.
    """
    began = now
    for visit in sorted(visits, key=lambda visit: visit.ended, reverse=True):
        if is_pause(visit.ended, began):
            return visit.ended
        began = min(began, visit.began)
    return ""


def is_pause(earlier: str, later: str) -> bool:
    """Return whether more than 30 minutes lie between two times of the log.

    A time that cannot be read counts as no pause.
    """
    try:
        pause = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    except (ValueError, TypeError):
        return False
    return pause > _MAX_PAUSE
