"""Where the index of a vault lies."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from simplemem.config import Settings
from simplemem.vault.vault import Vault


def index_path(root: Path, settings: Settings, vault: Vault) -> Path:
    """Beside the notes, unless told otherwise or nothing can be written there. Who sees less of the vault has an index of
    its own, in which the rest never was."""
    hidden = "\n".join(sorted(settings.access.hidden))
    name = f"index-{hashlib.sha256(hidden.encode()).hexdigest()[:8]}.db" if hidden else "index.db"
    if settings.db is not None:
        named = Path(os.path.realpath(Path(settings.db).expanduser()))  # a person may say it by a link
        return named.with_name(f"{named.stem}-{name}") if hidden else named
    here = root / ".simplemem" / name
    if not vault.read_only or (here.exists() and os.access(here.parent, os.W_OK)):
        return here
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "simplemem" / hashlib.sha256(str(root).encode()).hexdigest()[:16] / name
