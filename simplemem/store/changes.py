"""Changes people and agents make: create, update, tag, move, delete. Under the vault's lock, indexed before the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError
from simplemem.index.links import StoredLink
from simplemem.memory import Deleted, Moved, Saved
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import change_tags, parse_tag_request, tag_map, tag_names
from simplemem.store import races
from simplemem.store.editing import (
    Edit,
    append_content,
    apply_edits,
    apply_metadata,
    new_text,
    replace_content,
    stamp_modified,
)
from simplemem.store.in_step import InStep
from simplemem.store.names import path_meant
from simplemem.store.races import Making
from simplemem.store.secrecy import judge, judge_name
from simplemem.vault import rewrite
from simplemem.vault.atomic import sha256
from simplemem.vault.difference import WHAT_YOU_HAD, difference
from simplemem.vault.history import Version
from simplemem.vault.links import Named, name_key, resolve
from simplemem.vault.vault import Change, File, Rewrite, Written

_LATELY = 20  # changes of a note among which a repeated one is looked for
_TRIES = 50  # a change that names no hash is applied again to what is there now, so often


class Changes:
    """What may be done to one vault."""

    def __init__(self, step: InStep) -> None:
        self._step = step
        self._vault = step.vault
        self._index = step.index

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
        self._step.must_be_writable()
        clean = check_name(name)
        path = path_of(clean)
        text = new_text(clean, content, metadata, _now(), tags_as_map=tags_as_map)
        data = _encoded(text)
        with self._vault.lock():
            there = self._step.entry(path)
            if there is not None and overwrite:
                self._vault.rules.check_gone(path, instead="Read it, and change it with update_memory.")
                old = self._vault.read(path)
                told = judge(self._step.settings, clean, read_note(old.data).text, text)
                return self._saved(self._vault.replace(path, data, old.sha256, change), data, warnings=told)
            if there is not None:
                held = self._vault.read(path)
                stamped = read_note(held.data).string("modified")
                if stamped and _encoded(new_text(clean, content, metadata, stamped)) == held.data:
                    return _saved_as_is(held)  # this very call, whose answer was lost
                raise AlreadyExists(
                    f"there is already a memory called {clean}",
                    hint="Use update_memory to change it, or pass overwrite=true; the old text stays in the history.",
                    name=clean,
                    current_sha256=held.sha256,
                )
            told = judge_name(self._step.settings, clean) + judge(self._step.settings, clean, "", text)
            rewrites, warnings = self._step.healing(lambda: self._rewritten(rewrite.Moved(None, path)))
            written = self._vault.create(path, data, change, rewrites=[r for r, _ in rewrites])
            return self._saved(written, data, rewrites=rewrites, warnings=[*told, *warnings])

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
        self._step.must_be_writable()
        path = path_meant(self._step, name)
        if (offer := races.offer_in(if_sha256)) is not None:
            return self._merge(path, Making(lambda _: text), offer, change, stamped=False)
        data = _encoded(text)
        with self._vault.lock():
            told = self._judged(path, read_note(self._vault.read(path).data).text, text)
            try:
                return self._saved(self._vault.replace(path, data, if_sha256, change), data, warnings=told)
            except Conflict:
                if self._step.entry(path) is None:
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
        self._step.must_be_writable()
        path = path_meant(self._step, name)
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
            data = _encoded(stamp_modified(text, _now()) if text != note.text else text)
            with self._vault.lock():
                try:
                    written = self._vault.replace(path, data, file.sha256, change)
                except Conflict:
                    if if_sha256 is not None or not tries_left:
                        raise
                    continue
                return self._saved(written, data, warnings=told)
        raise AssertionError("unreachable")

    def _already_done(self, file: File, making: Making, if_sha256: str) -> Saved:
        """The note is not what the caller had read. If it is what this very call would have made of that, the call is a
        repetition whose answer was lost, and succeeds (durability.md F66); else a conflict."""
        base = self._text_of(if_sha256)
        if base is not None and self._would_give(base, making, file.data):
            return _saved_as_is(file)
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
            seen = self._text_of(offer.current)
            together = None if seen is None else races.brought_together(base, making, seen)
            if seen is not None and together is not None and together[1].clean:
                if _is_but_for_its_time(together[1].text, file.data):
                    return _saved_as_is(file)  # this very call, whose answer was lost
                self._not_twice(file, seen, together[1].text)
            raise self._lost_race(file, base, making)
        note, together = read_note(file.data), races.brought_together(base, making, file.data)
        if stamped:
            note.must_be_editable(name_of(path))
        if together is None or not together[1].clean:
            raise self._lost_race(file, base, making)
        text = together[1].text
        told = self._judged(path, note.text, text)
        data = _encoded(stamp_modified(text, _now()) if stamped and text != note.text else text)
        with self._vault.lock():
            try:
                return self._saved(self._vault.replace(path, data, file.sha256, change), data, warnings=told)
            except Conflict:
                if self._step.entry(path) is None:
                    raise
                raise self._lost_race(self._vault.read(path), base, making) from None

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
                if made is not None and _is_but_for_its_time(text, made):
                    raise Conflict(
                        f"this very change of {name_of(file.path)} was made already, as {version.id}, and the note has "
                        "changed since",
                        current_sha256=file.sha256,
                        diff=difference(made, file.data, WHAT_YOU_HAD),
                        hint="Read it: there may be nothing left to do.",
                    )

    def _judged(self, path: str, before: str, after: str) -> list[str]:
        """What is to be said of secrets that a change would add; it is refused where the settings say so."""
        return judge(self._step.settings, name_of(path), before, after) if before != after else []

    def _text_of(self, sha256: str) -> bytes | None:
        """A text that somebody had, by its hash or the beginning of it."""
        return self._vault.history.content_like(sha256) or self._step.read_lately.get(sha256)

    @staticmethod
    def _would_give(base: bytes, making: Making, now: bytes) -> bool:
        old = read_note(base)
        try:
            text = making.make(old)
        except SimplememError:
            return False
        return _is_but_for_its_time(text, now) if text != old.text else _encoded(text) == now

    # -- moving and deleting

    def move(self, name: str, new_name: str, change: Change) -> Moved:
        """Give a memory another name. Every link goes on meaning what it meant, in its own form."""
        self._step.must_be_writable()
        new = path_of(check_name(new_name))
        try:
            old = path_meant(self._step, name)
        except NotFound:
            if (done := self._done_last(name, "move")) is not None and done.new_path == new:
                return Moved(name_of(new), new, name_of(done.path), done.after or "", (), done.id, ())
            raise
        if old == new:
            raise Invalid(f"{name_of(old)} already has this name")
        self._step.catch_up_lately()  # a link saved a moment ago is to follow as well
        with self._vault.lock():
            if compare_key(old) != compare_key(new) and self._step.entry(new) is not None:
                raise AlreadyExists(f"there is already a memory called {name_of(new)}", name=name_of(new))
            file = self._vault.read(old)
            told = judge_name(self._step.settings, name_of(new), name_of(old))
            rewrites, warnings = self._step.healing(lambda: self._rewritten(rewrite.Moved(old, new)))
            own = next((r for r, _ in rewrites if r.path == old), None)
            others = [(r, why) for r, why in rewrites if r.path != old]
            written = self._vault.move(
                old,
                new,
                change,
                rewrites=[r for r, _ in others],
                data=None if own is None else own.data,
                expected_sha256=file.sha256,
            )
            note = read_note(file.data if own is None else own.data, written.sha256)
            entry = written.entry or self._step.entry(new)
            if entry is not None:
                there = entry
                warnings += self._step.indexed(new, lambda: self._step.rows.move(old, new, note, there))
            self._index_rewrites(others)
            self._step.tell({name_of(old), name_of(new), *(name_of(r.path) for r, _ in others)})
            self._step.fill_soon()
        rewritten = tuple(name_of(r.path) for r, _ in others) + ((name_of(new),) if own is not None else ())
        sha256 = written.sha256 or file.sha256
        return Moved(name_of(new), new, name_of(old), sha256, rewritten, written.version, (*told, *warnings))

    def delete(self, name: str, if_sha256: str | None, change: Change) -> Deleted:
        """Put a memory in the trash. Links to it stay as they are and lead nowhere; undo brings it back."""
        self._step.must_be_writable()
        try:
            path = path_meant(self._step, name)
        except NotFound:
            done = self._done_last(name, "delete") if if_sha256 else None
            if done is not None and done.before == if_sha256:
                return Deleted(name_of(done.path), done.id, 0)
            raise
        with self._vault.lock():
            linking = self._step.healing(lambda: self._index.links_to(path))
            written = self._vault.trash(path, if_sha256, change)
            self._step.indexed(path, lambda: self._step.rows.forget(path))
            self._step.tell({name_of(path)})
            left = self._step.healing(lambda: self._leading_nowhere(linking))
        return Deleted(name_of(path), written.version, left)

    def _done_last(self, name: str, op: str) -> Version | None:
        """The last change of a memory that is not there, if it was this one: a call whose answer was lost is repeated."""
        versions = self._vault.history.versions(path_of(clean_reference(name)), 1)
        return versions[0] if versions and versions[0].op == op else None

    def _leading_nowhere(self, linking: Sequence[StoredLink]) -> int:
        named = self._index.named()
        return sum(1 for link in linking if resolve(link.target, link.source, named).path is None)

    def _rewritten(self, moved: rewrite.Moved) -> tuple[list[tuple[Rewrite, str]], list[str]]:
        """The notes whose links must be written again so that the move changes no link's meaning."""
        before = self._index.named()
        after = _named_after(before, moved)
        touched = [path for path in (moved.old, moved.new) if path is not None]
        sources = self._index.sources_that_could_mean(touched)
        if moved.old is not None and moved.old not in sources:
            sources.append(moved.old)
        found: list[tuple[Rewrite, str]] = []
        warnings: list[str] = []
        for path in sources:
            try:
                file = self._vault.read(path)
            except SimplememError:
                continue
            note = read_note(file.data)
            text = rewrite.rewrite_links(note, path, moved, before, after, self._step.conventions.link_format)
            if text == note.text:
                continue
            if note.problem is not None:
                warnings.append(f"{name_of(path)} has a link that should follow, but cannot be changed: {note.problem}")
                continue
            found.append((Rewrite(path, file.sha256, _encoded(text)), f"{name_of(moved.new)} has the same name"))
        return found, warnings

    # -- after a write

    def _saved(
        self,
        written: Written,
        data: bytes,
        *,
        rewrites: Sequence[tuple[Rewrite, str]] = (),
        warnings: Sequence[str] = (),
    ) -> Saved:
        """Index what was written, still under the lock, and say what happened."""
        note = read_note(data, written.sha256)
        told = list(warnings)
        entry = written.entry
        if written.changed and entry is not None:
            rows = self._step.rows
            if entry.size > self._step.settings.max_note_bytes:
                told.append("written, but too large to be indexed; index.max_note_mb says how large notes may be")
            told += self._step.indexed(written.path, lambda: rows.put_written(written.path, note, entry))
        self._index_rewrites(rewrites)
        if written.changed:
            self._step.tell({name_of(written.path), *(name_of(r.path) for r, _ in rewrites)})
            self._step.fill_soon()
        told += [f"links in {r.path} were qualified: {why}" for r, why in rewrites]
        return _outcome(note, written, told)

    def _index_rewrites(self, rewrites: Iterable[tuple[Rewrite, str]]) -> None:
        rows = self._step.rows
        for changed, _ in rewrites:
            entry = self._step.entry(changed.path)
            if entry is not None:
                put = partial(rows.put_written, changed.path, read_note(changed.data), entry)
                self._step.indexed(changed.path, put)


def _is_but_for_its_time(text: str, now: bytes) -> bool:
    """Whether a note is this text, but for the time that our write stamped on it."""
    modified = read_note(now).string("modified")
    return _encoded(stamp_modified(text, modified) if modified else text) == now


def _saved_as_is(file: File) -> Saved:
    """Nothing was to be done: the note is what was wanted."""
    as_is = Written(file.path, file.sha256, file.sha256, "", file.entry, changed=False)
    return _outcome(read_note(file.data), as_is, ())


def _outcome(note: Note, written: Written, warnings: Iterable[str]) -> Saved:
    return Saved(
        name=name_of(written.path),
        path=written.path,
        sha256=written.sha256 or note.sha256,
        previous_sha256=written.previous_sha256,
        changed=written.changed,
        version=written.version,
        tags=tuple(tag_names(note.tags)),
        tag_map=tag_map(note.tags, note.header.properties),
        warnings=tuple(warnings),
    )


def _named_after(before: Named, moved: rewrite.Moved) -> Named:
    """Which files have a name once the move is done."""

    def named(key: str) -> Sequence[str]:
        found = [path for path in before(key) if path != moved.old]
        if name_key(moved.new) == key and moved.new not in found:
            found.append(moved.new)
        return sorted(found)

    return named


def _edit_of(given: Mapping[str, str]) -> Edit:
    old, new = given.get("old"), given.get("new")
    if not isinstance(old, str) or not isinstance(new, str):
        raise Invalid("an edit needs `old` and `new`, both text")
    return Edit(old, new)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(
            f"the text holds a character that UTF-8 cannot carry (a lone surrogate at {error.start})",
            hint="Leave it out, or send it as a proper pair.",
        ) from error


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ005  (local, as notes are)
