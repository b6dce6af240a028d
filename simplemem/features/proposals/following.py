"""Carry out proposals in which a person ticks a box while a server runs."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from simplemem.errors import SimplememError
from simplemem.features.proposals.service import proposals_of
from simplemem.store import PROPOSAL_FOLDER

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")


def follow_ticked_boxes(store: EnhancedStore) -> None:
    """Carry out the proposals with a ticked box, now and whenever one of them changes.

    Does nothing for a store that is read-only, or that shows only a part of the vault. Errors are
    logged.
    """
    if store.read_only or store.settings.access.only:
        return
    service = proposals_of(store)
    lock = threading.Lock()  # so that one thread at a time looks at the proposals

    def look() -> None:
        with lock:
            try:
                for decided in service.carry_out_ticked():
                    log.info("%s: %s %s", decided.outcome, decided.name, decided.problem)
            except SimplememError as error:
                log.warning("the proposals could not be carried out: %s", error.message)

    def on_change(names: frozenset[str]) -> None:
        # A thread of its own: the store is still indexing the change.
        if any(name.startswith(f"{PROPOSAL_FOLDER}/") for name in names):
            threading.Thread(target=look, name="proposals", daemon=True).start()

    store.on_change(on_change)
    look()
