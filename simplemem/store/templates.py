"""Notes made from templates, and the daily note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from simplemem.errors import NotFound
from simplemem.models import AuthorArgs, Saved
from simplemem.note.dates import local_now
from simplemem.note.names import check_name, name_of, path_of
from simplemem.obsidian.templates import fill_template
from simplemem.store.vault_index import (
    NameResolver,
    NoteReader,
    NoteWriter,
    ObsidianSettingsCache,
    author_of_call,
)
from simplemem.store.write import NoteEditor
from simplemem.vault.source import NoteSource

_MAX_TEMPLATES = 20  # that an error names


class TemplateNotes:
    """Creates notes from templates, as Obsidian does. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        *,
        reader: NoteReader,
        resolver: NameResolver,
        obsidian: ObsidianSettingsCache,
        writer: NoteWriter,
        editor: NoteEditor,
    ) -> None:
        self._vault = vault
        self._reader = reader
        self._resolver = resolver
        self._obsidian = obsidian
        self._writer = writer
        self._editor = editor

    def daily_name(self) -> str:
        """Return the name of today's daily note, which need not exist."""
        return self._obsidian.current.daily_note(local_now())

    def names(self) -> list[str]:
        """Return the names of the templates in Obsidian's template folder, without the folder.

        Returns [] if Obsidian's settings name no such folder.
        """
        folder = self._obsidian.current.templates_folder
        if not folder:
            return []
        paths = [entry.path for entry in self._vault.entries_below(folder)]
        return [name_of(path).removeprefix(f"{folder}/") for path in paths if path.endswith(".md")]

    def daily(self, **by: Unpack[AuthorArgs]) -> Saved:
        """Return today's daily note; create it from its template if it does not exist.

        Its name, folder and template are those of Obsidian's settings. Without a template, or if
        its file does not exist, the note is created empty. An existing note is not changed
        (`changed` is False). `by` says who asks. If the note is missing, raises ReadOnly if it may
        not be created, Invalid or TooLong if Obsidian's settings give it an illegal name, and
        AlreadyExists if another program creates it meanwhile.
        """
        name = self.daily_name()
        file = self._reader.file(path_of(name))
        if file is not None:
            return self._editor.report_unchanged(file)
        return self.create(self._daily_template(), name, **by)

    def append_to_daily(
        self, text: str, metadata: Mapping[str, Any] | None = None, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Append a text to today's daily note, set properties of it, and return what was saved.

        If the note does not exist, it is created from its template with the text in it: that is one
        change, so that a proposal contains the text. Raises what `daily` and `NoteEditor.update`
        raise.
        """
        self._writer.check_writable()
        name = check_name(self.daily_name())
        with self._writer.lock():
            if not self._reader.exists(path_of(name)):
                beginning = self._filled_template(self._daily_template(), name)
                return self._editor.create_appended(name, beginning, text, metadata, **by)
        return self._editor.update(name, append=text, metadata=metadata, **by)

    def _daily_template(self) -> str:
        """Return the name of the template of daily notes, "" for an empty note.

        Obsidian creates an empty note too if the template does not exist.
        """
        template = self._obsidian.current.daily_template
        return template if template and self._reader.exists(path_of(template)) else ""

    def create(self, template: str, name: str, **by: Unpack[AuthorArgs]) -> Saved:
        """Create a note from a template, or an empty one for the template "", and index it.

        `template` is a name in Obsidian's template folder, or that of any other note. Its text is
        kept byte for byte, except for the fields that `fill_template` fills in, with the local
        time. `by` says who asks. Raises ReadOnly if the note may not be written, Invalid or TooLong
        for an illegal name, NotFound for an unknown template, Ambiguous if it means several notes,
        and AlreadyExists if there is a note called `name`.
        """
        self._writer.check_writable()
        path = path_of(check_name(name))
        data = self._filled_template(template, name)
        with self._writer.lock():
            written = self._vault.create(path, data, author_of_call(by, "create"))
            return self._editor.finish_write(written, data, ())

    def _filled_template(self, template: str, name: str) -> bytes:
        """Return the bytes of a template with its fields filled in; none for the template "".

        `name` is that of the new note. Raises NotFound and Ambiguous for the template.
        """
        text = ""
        if template:
            source = self._vault.read(self._template_path(template))
            text = source.data.decode("utf-8", "surrogateescape")
        title = name.rsplit("/", 1)[-1]
        text = fill_template(text, title, local_now(), self._obsidian.current)
        return text.encode("utf-8", "surrogateescape")

    def _template_path(self, template: str) -> str:
        """Return the path of a template in Obsidian's template folder, or of any other note.

        Raises NotFound, which names up to 20 templates, if there is none, and Ambiguous if a name
        means several notes.
        """
        folder = self._obsidian.current.templates_folder
        path = path_of(f"{folder}/{template}".lstrip("/"))
        if self._reader.exists(path):
            return path
        try:
            return self._resolver.path_of(template)
        except NotFound:
            raise self._no_template(template) from None

    def _no_template(self, template: str) -> NotFound:
        """Return the error for a template that does not exist. It names up to 20 templates."""
        names = self.names()
        candidates = names[:_MAX_TEMPLATES]

        hint = f"The templates are {', '.join(candidates)}."
        if not names:
            hint = "No template folder is set in Obsidian. "
            hint += "Any note can serve as a template: give its name."
        message = f"no template called {template!r}"
        return NotFound(message, candidates=candidates, hint=hint)
