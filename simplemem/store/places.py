"""Where a store's notes and its index are, by the settings: a folder or a branch, a file beside the notes or a database."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

from simplemem.config import Settings
from simplemem.errors import Unavailable
from simplemem.index.connection import Tables
from simplemem.index.database import open_database
from simplemem.services.client import Key
from simplemem.vault.paths import Access
from simplemem.vault.vault import Vault


def vault_of(
    root: Path, settings: Settings, *, read_only: bool, trash: Literal["own", "obsidian"], person: bool
) -> Vault:
    """The vault of a folder, or the branch that is named in its place."""
    rules, branch = settings.access, settings.branch
    made: Callable[..., Vault] = Vault
    if branch.repository:
        from simplemem.branch.vault import BranchVault

        made = partial(BranchVault, repository=branch.repository, name=branch.name)
    return made(
        root,
        read_only=read_only,
        durable=settings.write.durability == "full",
        keep_days=settings.history.keep_days,
        keep_mb=settings.history.keep_mb,
        trash=trash,
        access=Access(rules.hidden, rules.read_only, settings.no_delete, rules.only),
        kind="human" if person else "agent",
    )


def tables_of(path: Path, settings: Settings, root: Path, vault: Vault) -> Tables:
    """The index where the settings want it. Who sees less of the vault has a schema of its own, as it has a file."""
    if not (address := Key(settings.index.engine, setting="index.engine").value()):
        return open_database(path, nullcontext if vault.read_only else vault.lock)  # a read-only disk has none
    try:
        from simplemem.index.postgres.database import PostgresDatabase
    except ImportError as error:
        hint = "pip install 'simplemem-vault[postgres]'"
        raise Unavailable(f"an index in PostgreSQL needs {error.name}", hint=hint) from error
    place = vault.place if vault.is_branch else str(root)
    plain = re.sub(r"[^a-z0-9]+", "_", Path(place).name.lower()).strip("_")[:20]
    schema = settings.index.schema_name or f"{plain}_{hashlib.sha256(place.encode()).hexdigest()[:8]}"
    replica = Key(settings.index.replica, setting="index.replica").value() or ""
    return PostgresDatabase(address, f"{schema}{path.stem.removeprefix('index').replace('-', '_')}", path, replica)


def index_path(root: Path, settings: Settings, vault: Vault) -> Path:
    """Where the index lies: beside the notes, where it can be. Who sees less of the vault has an index of its own."""
    hidden = "\n".join((*sorted(settings.access.hidden), *(f"+{each}" for each in sorted(settings.access.only))))
    name = f"index-{hashlib.sha256(hidden.encode()).hexdigest()[:8]}.db" if hidden else "index.db"
    if settings.db is not None:
        named = Path(os.path.realpath(Path(settings.db).expanduser()))  # a person may say it by a link
        return named.with_name(f"{named.stem}-{name}") if hidden else named
    here = root / ".simplemem" / name
    if not vault.read_only or (here.exists() and os.access(here.parent, os.W_OK)):
        return here
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "simplemem" / hashlib.sha256(str(root).encode()).hexdigest()[:16] / name
