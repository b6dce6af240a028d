"""An index that goes to another engine: built there, with the vectors that were paid for here. The one in use stays as it
is; whoever is interrupted goes on where they were. Which of the two is used, only the person's own settings say."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SecretStr

from simplemem.index.database import open_database
from simplemem.index.door import Progress
from simplemem.memory import MovedIndex
from simplemem.store.core import Core

Engine = str | SecretStr | Mapping[str, str] | None


def move_index(core: Core, engine: Engine, progress: Progress | None = None) -> MovedIndex:
    """Build the index in an engine (as `index.engine` names one; None is the sidecar), or go on where a former call was
    interrupted. The index in use stays as it is, and in use."""
    named = SecretStr(engine) if isinstance(engine, str) else engine
    index = core.settings.index.model_copy(update={"engine": named, "replica": None})
    there = Core(core.root, core.settings.model_copy(update={"index": index}), read_only=core.read_only, person=True)
    source, built = core.index.database, there.index.database
    try:
        is_used = built.place == source.place
        if is_used and engine and core.index.path.is_file():  # the settings were first, and the sidecar is left
            source = open_database(core.index.path, core.vault.lock)
        there.sync(progress=progress, embed=False, believe=True)
        taken = there.embedding.take_over(source, built, progress) if source.place != built.place else 0
        report = there.sync(progress=progress)
        return MovedIndex(
            built.engine, built.place, there.state().notes, taken, report.embedded, is_used, report.trouble
        )
    finally:
        if source is not core.index.database:
            source.close()
        there.close()
