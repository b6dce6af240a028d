"""Notes made of templates, and the daily note, by Obsidian's own settings."""

from __future__ import annotations

from typing import Unpack

from simplemem.memory import By, Saved
from simplemem.note.clock import local
from simplemem.note.names import check_name, path_of
from simplemem.store.core import Core, change_by
from simplemem.store.write import answer, unchanged
from simplemem.vault.obsidian import filled


def daily(core: Core, **by: Unpack[By]) -> Saved:
    """The note of today, made of the template for daily notes where it is not there yet."""
    name, template = core.conventions.daily_note(local()), core.conventions.daily_template
    if (file := core.file(path_of(name))) is not None:
        return unchanged(core, file)
    is_there = template and core.entry(path_of(template)) is not None  # without it Obsidian makes an empty note
    return create_from(core, template if is_there else "", name, **by)


def create_from(core: Core, template: str, name: str, **by: Unpack[By]) -> Saved:
    """Make a note of a template, to the byte but for its `{{title}}`, `{{date}}` and `{{time}}`."""
    core.must_be_writable()
    path, near = path_of(check_name(name)), path_of(f"{core.conventions.templates_folder}/{template}".lstrip("/"))
    source = near if template and core.entry(near) is not None else core.path_meant(template) if template else ""
    text = core.vault.read(source).data.decode("utf-8", "surrogateescape") if source else ""
    text = filled(text, name.rsplit("/", 1)[-1], local(), core.conventions)
    data = text.encode("utf-8", "surrogateescape")
    with core.vault.lock():
        return answer(core, core.vault.create(path, data, change_by(by, "create")), data, ())
