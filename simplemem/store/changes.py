"""Changes people and agents make of one memory's text: create, update, tag. Under the vault's lock, indexed before the
answer. A change that lost a race comes together with what is there now (`races`), or is a conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from simplemem.errors import AlreadyExists, Conflict, Invalid, SimplememError
from simplemem.memory import Saved
from simplemem.note.diff import WHAT_YOU_HAD, unified_diff
from simplemem.note.names import check_name, name_of, path_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import change_tags, parse_tag_request
from simplemem.store import races
from simplemem.store.core import Core
from simplemem.store.editing import (
    Edit,
    append_content,
    apply_edits,
    apply_metadata,
    new_text,
    replace_content,
    stamp_modified,
)
from simplemem.store.following import rewrites_for
from simplemem.store.names import path_meant
from simplemem.store.races import Making
from simplemem.store.saving import encoded, is_but_for_its_time, now, saved, saved_as_is
from simplemem.store.secrecy import judge, judge_name
from simplemem.vault.disk import sha256
from simplemem.vault.rewrite import Moved
from simplemem.vault.vault import Change, File

_LATELY = 20  # changes of a note among which a repeated one is looked for
_TRIES = 50  # a change that names no hash is applied again to what is there now, so often


class Changes:
    """What may be done to the texts of one vault."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._vault = core.vault

    # -- making

    def create(
        self,
        name: str,
        content: str,
        metadata: Mapping[str, Any],
        change: Change,
        *,
        overwrite: bool,
        tags_as_map: bool,
    ) -> Saved:
        """Make a memory. A bare link that the new name would steal is qualified first, so that it keeps its meaning."""
        self._core.must_be_writable()
        clean = check_name(name)
        path = path_of(clean)
        text = new_text(clean, content, metadata, now(), tags_as_map=tags_as_map)
        data = encoded(text)
        with self._vault.lock():
            there = self._core.entry(path)
            if there is not None and overwrite:
                self._vault.access.check_gone(path, instead="Read it, and change it with update_memory.")
                old = self._vault.read(path)
                told = judge(self._core.settings, clean, read_note(old.data).text, text)
                return saved(self._core, self._vault.replace(path, data, old.sha256, change), data, warnings=told)
            if there is not None:
                held = self._vault.read(path)
                stamped = read_note(held.data).string("modified")
                if stamped and encoded(new_text(clean, content, metadata, stamped)) == held.data:
                    return saved_as_is(held)  # this very call, whose answer was lost
                raise AlreadyExists(
                    f"there is already a memory called {clean}",
                    hint="Use update_memory to change it, or pass overwrite=true; the old text stays in the history.",
                    name=clean,
                    current_sha256=held.sha256,
                )
            told = judge_name(self._core.settings, clean) + judge(self._core.settings, clean, "", text)
            rewrites, warnings = self._core.healing(lambda: rewrites_for(self._core, Moved(None, path)))
            written = self._vault.create(path, data, change, rewrites=rewrites)
            return saved(self._core, written, data, rewrites=rewrites, warnings=[*told, *warnings])

    # -- changing

    def update(
        self,
        name: str,
        content: str | None,
        append: str | None,
        edits: Sequence[Edit | Mapping[str, str]] | None,
        metadata: Mapping[str, Any] | None,
        if_sha256: str | None,
        change: Change,
    ) -> Saved:
        """Change a memory's body (one of `content`, `append`, `edits`), its metadata, or both."""
        if sum(given is not None for given in (content, append, edits)) > 1:
            raise Invalid("give one of content, append and edits, not several")
        if content is None and append is None and not edits and not metadata:
            raise Invalid("nothing to change", hint="Give content, append, edits or metadata.")
        wanted = [edit if isinstance(edit, Edit) else _edit_of(edit) for edit in edits or ()]

        def changed(note: Note) -> str:
            text = note.text
            if content is not None:
                text = replace_content(note, content)
            elif append is not None:
                text = append_content(note, append)
            elif wanted:
                text = apply_edits(note, wanted)
            return apply_metadata(text, metadata) if metadata else text

        again = content is None and not metadata
        return self._change(name, Making(changed, again), if_sha256, change)

    def write_text(self, name: str, text: str, if_sha256: str, change: Change) -> Saved:
        """Put a whole file in place, header included, byte for byte."""
        self._core.must_be_writable()
        path = path_meant(self._core, name)
        if (offer := races.offer_in(if_sha256)) is not None:
            return self._merge(path, Making(lambda _: text), offer, change, stamped=False)
        data = encoded(text)
        with self._vault.lock():
            told = self._judged(path, read_note(self._vault.read(path).data).text, text)
            try:
                return saved(self._core, self._vault.replace(path, data, if_sha256, change), data, warnings=told)
            except Conflict:
                if self._core.entry(path) is None:
                    raise
                raise self._lost_race(
                    self._vault.read(path), self._text_of(if_sha256), Making(lambda _: text)
                ) from None

    def change_tags(self, name: str, tags: Any, if_sha256: str | None, change: Change) -> Saved:
        """Set tags, and take away those given as null, in the notation the note has."""
        changes = parse_tag_request(tags)
        if not changes:
            raise Invalid("no tag given", hint='Give tags as {"status": "done", "todo": null}.')
        return self._change(name, Making(lambda note: change_tags(note.text, changes)), if_sha256, change)

    def _change(self, name: str, making: Making, if_sha256: str | None, change: Change) -> Saved:
        """Read, change, replace; again from the start when somebody else was faster and no hash was named."""
        self._core.must_be_writable()
        path = path_meant(self._core, name)
        if (offer := races.offer_in(if_sha256)) is not None:
            return self._merge(path, making, offer, change)
        for tries_left in range(_TRIES, -1, -1):
            file = self._vault.read(path)
            if if_sha256 is not None and file.sha256 != if_sha256:
                return self._already_done(file, making, if_sha256)
            note = read_note(file.data, file.sha256)
            note.must_be_editable(name_of(path))
            text = making.make(note)
            told = self._judged(path, note.text, text)
            data = encoded(stamp_modified(text, now()) if text != note.text else text)
            with self._vault.lock():
                try:
                    written = self._vault.replace(path, data, file.sha256, change)
                except Conflict:
                    if if_sha256 is not None or not tries_left:
                        raise
                    continue
                return saved(self._core, written, data, warnings=told)
        raise AssertionError("unreachable")

    def _already_done(self, file: File, making: Making, if_sha256: str) -> Saved:
        """The note is not what the caller had read. If it is what this very call would have made of that, the call is a
        repetition whose answer was lost, and succeeds (durability.md F66); else a conflict."""
        base = self._text_of(if_sha256)
        if base is not None and self._would_give(base, making, file.data):
            return saved_as_is(file)
        if base is not None:
            with suppress(Invalid):  # an edit that does not fit was never made
                self._not_twice(file, base, making.make(read_note(base)))
        raise self._lost_race(file, base, making)

    def _merge(self, path: str, making: Making, offer: races.Offer, change: Change, *, stamped: bool = True) -> Saved:
        """Write the merge that a lost race offered, if what was there then is there still."""
        file, base = self._vault.read(path), self._text_of(offer.base)
        if base is None:
            raise Conflict(
                f"the text that your change of {name_of(path)} was made of is no longer kept",
                current_sha256=file.sha256,
                hint="Read it again, make the change on what is there now, and pass its sha256.",
            )
        if not file.sha256.startswith(offer.current):
            return self._already_merged(file, base, making, offer)
        note, together = read_note(file.data), races.brought_together(base, making, file.data)
        if stamped:
            note.must_be_editable(name_of(path))
        if together is None or not together[1].clean:
            raise self._lost_race(file, base, making)
        text = together[1].text
        told = self._judged(path, note.text, text)
        data = encoded(stamp_modified(text, now()) if stamped and text != note.text else text)
        with self._vault.lock():
            try:
                return saved(self._core, self._vault.replace(path, data, file.sha256, change), data, warnings=told)
            except Conflict:
                if self._core.entry(path) is None:
                    raise
                raise self._lost_race(self._vault.read(path), base, making) from None

    def _already_merged(self, file: File, base: bytes, making: Making, offer: races.Offer) -> Saved:
        """The note is not what the offer was made for. If it is the merge that was offered, this call is a repetition whose
        answer was lost, and succeeds; else the race is lost again."""
        seen = self._text_of(offer.current)
        together = None if seen is None else races.brought_together(base, making, seen)
        if seen is not None and together is not None and together[1].clean:
            if is_but_for_its_time(together[1].text, file.data):
                return saved_as_is(file)
            self._not_twice(file, seen, together[1].text)
        raise self._lost_race(file, base, making)

    def _lost_race(self, file: File, base: bytes | None, making: Making) -> Conflict:
        return races.lost_race(
            file,
            base,
            making,
            judged=lambda before, after: self._judged(file.path, before, after),
            keep=self._vault.keep_text,
        )

    def _not_twice(self, file: File, before: bytes, text: str) -> None:
        """Conflict, and nothing offered, when a change was made already and others followed: its answer may have been
        lost, and what is offered for a repetition would add the same once more."""
        for version in self._vault.history.versions(file.path, _LATELY):
            if version.op not in ("update", "move"):
                return  # taken back, or another note since
            if version.before == sha256(before) and version.before != version.after:
                made = self._vault.history.content(version.after or "")
                if made is not None and is_but_for_its_time(text, made):
                    raise Conflict(
                        f"this very change of {name_of(file.path)} was made already, as {version.id}, and the note has "
                        "changed since",
                        current_sha256=file.sha256,
                        diff=unified_diff(made, file.data, WHAT_YOU_HAD),
                        hint="Read it: there may be nothing left to do.",
                    )

    def _judged(self, path: str, before: str, after: str) -> list[str]:
        """What is to be said of secrets that a change would add; it is refused where the settings say so."""
        return judge(self._core.settings, name_of(path), before, after) if before != after else []

    def _text_of(self, sha256: str) -> bytes | None:
        """A text that somebody had, by its hash or the beginning of it."""
        return self._vault.history.content_like(sha256) or self._core.read_lately.get(sha256)

    @staticmethod
    def _would_give(base: bytes, making: Making, now: bytes) -> bool:
        old = read_note(base)
        try:
            text = making.make(old)
        except SimplememError:
            return False
        return is_but_for_its_time(text, now) if text != old.text else encoded(text) == now


def _edit_of(given: Mapping[str, str]) -> Edit:
    old, new = given.get("old"), given.get("new")
    if not isinstance(old, str) or not isinstance(new, str):
        raise Invalid("an edit needs `old` and `new`, both text")
    return Edit(old, new)
