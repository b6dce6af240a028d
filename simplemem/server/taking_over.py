"""Where a graph memory server kept its file, and what a profile that stands in its place does with it: the graph in it is
brought into the vault when a client first asks for something, and the file is never written."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

VARIABLE = "MEMORY_FILE_PATH"
_MOST_TOLD = 20


def memory_file(env: Mapping[str, str]) -> Path | None:
    """The file of the server that was there before, if the environment names one."""
    named = env.get(VARIABLE, "")
    return Path(named).expanduser().absolute() if named else None


def vault_beside(env: Mapping[str, str]) -> Path | None:
    """The vault where none is named: a folder beside that file, called as it is without its ending."""
    file = memory_file(env)
    if file is None:
        return None
    return file.with_suffix("") if file.suffix else file.with_name(f"{file.name}-notes")


def take_over(store: EnhancedStore, env: Mapping[str, str]) -> None:
    """Bring that file into the vault, once. What cannot be brought is told in the log, and keeps nobody from serving."""
    file = memory_file(env)
    if file is None or not file.is_file():
        return
    if store.read_only:
        log.warning("%s is not imported: nothing may be written into the vault", VARIABLE)
        return
    from simplemem.kinds.graph.jsonl import import_once

    try:
        done = import_once(store, file, who=VARIABLE)
    except (SimplememError, OSError) as error:
        log.error("%s could not be imported: %s; the next start tries again", VARIABLE, error)
        return
    if done is None:
        return
    log.warning(
        "%s was imported: %d entities, %d relations; the file is left as it is", file, done.entities, done.relations
    )
    for broken in done.broken[:_MOST_TOLD]:
        log.warning("line %d of it was passed over: %s", broken.line, broken.why)
    if len(done.broken) > _MOST_TOLD:
        log.warning("and %d lines more of it", len(done.broken) - _MOST_TOLD)
