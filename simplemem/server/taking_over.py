"""What a face finds where the server was whose place it takes: the folder it works in when none is named, and the file of
that server's graph, which is brought into the vault once and never written."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.faces.face import Face
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

_MOST_LOGGED = 20


def vault_of(face: Face, env: Mapping[str, str]) -> Path | None:
    """The folder a face works in when none is named: its own, or the one beside that server's file, called as that is
    without its ending."""
    if face.vault:
        return Path.cwd() / Path(env.get(face.vault_env) or face.vault).expanduser()
    file = _graph_file(face, env)
    if file is None:
        return None
    return file.with_suffix("") if file.suffix else file.with_name(f"{file.name}-notes")


def take_over(face: Face, store: EnhancedStore, env: Mapping[str, str]) -> None:
    """Bring that file into the vault, once. What cannot be brought is logged, and keeps nobody from serving."""
    file = _graph_file(face, env)
    if file is None or not file.is_file():
        return
    if store.read_only:
        log.warning("%s is not imported: nothing may be written into the vault", face.file_env)
        return
    from simplemem.kinds.graph.jsonl import import_once

    try:
        done = import_once(store, file, who=face.file_env)
    except (SimplememError, OSError) as error:
        log.error("%s could not be imported: %s; the next start tries again", face.file_env, error)
        return
    if done is None:
        return
    log.warning(
        "%s was imported: %d entities, %d relations; the file is left as it is", file, done.entities, done.relations
    )
    for broken in done.broken[:_MOST_LOGGED]:
        log.warning("line %d of it was passed over: %s", broken.line, broken.why)
    if len(done.broken) > _MOST_LOGGED:
        log.warning("and %d lines more of it", len(done.broken) - _MOST_LOGGED)


def _graph_file(face: Face, env: Mapping[str, str]) -> Path | None:
    named = env.get(face.file_env, "") if face.file_env else ""
    return Path(named).expanduser().absolute() if named else None
