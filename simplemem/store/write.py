"""Changes of one memory: create, update, tag. Every byte outside a change stays as it was. It is made
under the vault's lock, written, indexed, and only then answered; a lost race is settled in `conflicts`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

from simplemem.config import Settings
from simplemem.errors import AlreadyExists, Conflict, Invalid, SimplememError, TooLong
from simplemem.index.door import Question, Row, Term
from simplemem.index.engine import Damaged
from simplemem.index.notes import is_note
from simplemem.models import By, Saved
from simplemem.note.appending import append_content, open_at_end
from simplemem.note.body import newline_of
from simplemem.note.clock import local
from simplemem.note.diff import WHAT_YOU_HAD, unified_diff
from simplemem.note.header import find_key, find_value, read_header
from simplemem.note.names import check_name, name_of, path_of
from simplemem.note.note import Note, read_note, tag_map
from simplemem.note.properties import remove_property, render_header, set_property
from simplemem.note.scopes import check_scope_is_own
from simplemem.note.tags import change_tags as with_tags
from simplemem.note.tags import parse_tag_request, tags_for_new_note, tags_left_in_text
from simplemem.note.words import content_words, words_in_order
from simplemem.store.core import Core, change_by
from simplemem.store.unseen import check_new_path
from simplemem.vault.obsidian import Moves, name_key, resolve, rewrite_links
from simplemem.vault.vault import Change, File, Wish, Written

MAX_TEXT = 10 * 1024 * 1024  # characters that a note may be given
_MOST_SECRETS = _MOST_NAMED = 5  # that are named one by one
_LEAST_WORDS, _ALIKE, _COMPARED = (
    4,
    0.6,
    600,
)  # near duplicates share so many words, in so many characters
_NEWLINE = re.compile(r"\r\n|\n|\r")
_TRIES = 50  # a change that names no hash is applied again to what is there now, so often


class Making(NamedTuple):
    """What a change makes of a note: `again` of any text, as an append can; `whole` is the text itself, unstamped."""

    make: Callable[[Note], str]
    again: bool = False
    whole: bool = False


def create(
    core: Core,
    name: str,
    content: str,
    metadata: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
    tags_as_map: bool = False,
    if_sha256: str | None = None,
    **by: Unpack[By],
) -> Saved:
    """Make a memory, and say what it links to that is not there, and what says nearly the same. With `overwrite` it
    replaces the note of that name, and qualifies links that the new name would steal; else it touches no other note.
    What was replaced is `read(name, version=saved.previous_sha256)`, and `undo(saved.version)` brings it back.
    With `if_sha256` as well, it raises Conflict if the note there is not that text."""
    core.must_be_writable()
    clean, change = check_name(name), change_by(by, "create")
    path = path_of(clean)
    text = new_text(content, metadata or {}, now(), tags_as_map=tags_as_map)
    data = encoded(text)
    check_scope_is_own(path, {}, read_header(text).properties, core.vault.access.hides)
    with core.vault.lock():
        old = core.file(path)
        if old is not None and overwrite:
            core.vault.access.check_gone(
                path, instead="Read the note, and change it with update_memory."
            )
            if if_sha256 is not None:
                _check_unchanged(core, old, if_sha256, data)
            warnings = judge(core.settings, clean, read_note(old.data).text, text)
            return answer(core, core.vault.replace(path, data, old.sha256, change), data, warnings)
        if old is not None:
            stamped = read_note(old.data).string("modified")
            if stamped and encoded(new_text(content, metadata or {}, stamped)) == old.data:
                return unchanged(core, old)  # this very call, whose answer was lost
            hint = "Use update_memory to change it; overwrite=true replaces it, and the old text stays in the history."
            message = f"a note called {clean} already exists"
            raise AlreadyExists(message, hint=hint, name=clean, current_sha256=old.sha256)
        warnings = judge(core.settings, "", "", clean) + judge(core.settings, clean, "", text)
        rewrites, stuck = rewrites_for(core, Moves({}, (path,)))
        if (rewrites or stuck) and not overwrite:
            linking = ", ".join(name_of(each.path) for each in rewrites[:_MOST_NAMED]) or stuck[0]
            hint = "Choose another name. With overwrite=true, those links are rewritten first and keep their targets."
            raise AlreadyExists(
                f"links in {linking} that lead to another note would lead to {clean}",
                hint=hint,
                name=clean,
            )
        check_new_path(core.vault, path)
        written = core.vault.create(path, data, change, rewrites=rewrites)
        saved = answer(core, written, data, [*warnings, *stuck], rewrites)
    with suppress(SimplememError, Damaged):  # it is written, whatever the index says
        return replace(saved, warnings=(*saved.warnings, *_remarks(core, path, read_note(data))))
    return saved


def _check_unchanged(core: Core, file: File, if_sha256: str, wanted: bytes) -> None:
    """Raise Conflict if a note that is to be overwritten is neither the text that was read nor the wanted one."""
    if file.sha256 == if_sha256 or file.data == wanted:
        return
    had = core.vault.history.content(if_sha256) or core.remembered(if_sha256)
    message = f"{name_of(file.path)} has changed since it was read"
    hint = "Read the note again. If you still want to replace all of it, repeat the call."
    raise Conflict(
        message,
        current_sha256=file.sha256,
        diff=unified_diff(had, file.data, WHAT_YOU_HAD),
        hint=hint,
    )


def update(
    core: Core,
    name: str,
    *,
    content: str | None = None,
    append: str | None = None,
    edits: Sequence[Mapping[str, str]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    if_sha256: str | None = None,
    **by: Unpack[By],
) -> Saved:
    """Change a memory's body (one of `content`, `append`, `edits`), its metadata, or both.

    `append` becomes a block of its own at the end, or more of the list or table that the note ends with.
    """
    if sum(given is not None for given in (content, append, edits)) > 1:
        raise Invalid(
            "more than one of content, append and edits given", hint="Give only one of them."
        )
    if content is None and append is None and not edits and not metadata:
        raise Invalid("no change given", hint="Give content, append, edits or metadata.")

    remarks: list[str] = []

    def changed(note: Note) -> str:
        text = note.text
        remarks.clear()
        if content is not None:
            text = replace_content(note, content)
        elif append is not None:
            text = append_content(note, append)
            block = open_at_end(note)
            if block:
                remarks.append(
                    f"the note ends in {block} that is not closed: the appended text is part of it"
                )
        elif edits:
            text = apply_edits(note, edits)
        if metadata:
            text = apply_metadata(text, metadata)
            remarks.extend(_tags_left(text, metadata) if content is None else ())
        return text

    making = Making(changed, again=content is None and not metadata)
    saved = _carry_out(core, name, making, if_sha256, change_by(by, "update"))
    return replace(saved, warnings=(*saved.warnings, *remarks))


def _tags_left(text: str, metadata: Mapping[str, Any]) -> list[str]:
    """Say which tags that metadata takes away stand in the text. A list names all tags, and takes none away by name."""
    tags = find_value(metadata, "tags")
    if tags is None or isinstance(tags, list):
        return []
    return tags_left_in_text(read_note(encoded(text)), parse_tag_request(tags))


def write_text(core: Core, name: str, text: str, *, if_sha256: str, **by: Unpack[By]) -> Saved:
    """Put a whole file in place, header included, byte for byte: what a person made in an editor."""
    return _carry_out(
        core, name, Making(lambda _: text, whole=True), if_sha256, change_by(by, "edit")
    )


def change_tags(
    core: Core, name: str, tags: Any, *, if_sha256: str | None = None, **by: Unpack[By]
) -> Saved:
    """Set tags, and take away those given as null, in the notation the note has.

    Tags in the text stay, and the warnings name their lines.
    """
    if not (changes := parse_tag_request(tags)):
        raise Invalid("no tag given", hint='Give tags as {"status": "done", "todo": null}.')
    left_in_text: list[str] = []

    def changed(note: Note) -> str:
        text = with_tags(note.text, changes)
        left_in_text[:] = tags_left_in_text(read_note(encoded(text)), changes)
        return text

    saved = _carry_out(core, name, Making(changed), if_sha256, change_by(by, "tag"))
    return replace(saved, warnings=(*saved.warnings, *left_in_text))


def _carry_out(
    core: Core, name: str, making: Making, if_sha256: str | None, change: Change
) -> Saved:
    """Read, change, replace; again from the start when somebody else was faster."""
    core.must_be_writable()
    path = core.path_meant(name)
    for tries_left in range(_TRIES, -1, -1):
        file = core.vault.read(path)
        note = read_note(file.data, file.sha256)
        if if_sha256 is None or if_sha256 == file.sha256:
            if not making.whole:
                note.must_be_editable(name_of(path))
            text = making.make(note)
        else:
            from simplemem.store.conflicts import settled

            if (merged := settled(core, file, making, if_sha256)) is None:
                return unchanged(core, file)
            text = merged
        if not making.whole:  # a person's editor may say what it likes: reading ignores it
            properties = read_header(text).properties
            check_scope_is_own(path, note.header.properties, properties, core.vault.access.hides)
        warnings = judge(core.settings, name_of(path), note.text, text)
        data = encoded(
            stamp_modified(text, now()) if text != note.text and not making.whole else text
        )
        with core.vault.lock():
            try:
                return answer(
                    core, core.vault.replace(path, data, file.sha256, change), data, warnings
                )
            except Conflict:
                if not tries_left or core.entry(path) is None:
                    raise
    raise AssertionError("unreachable")


def _remarks(core: Core, path: str, note: Note) -> list[str]:
    """What is to be said of a new note: what it links to that is not there, and the notes that say nearly the same."""
    targets = dict.fromkeys(link.target for link in note.links if link.target)
    lost = [
        f"[[{each}]]"
        for each in targets
        if resolve(each, path, core.index.files_named).path is None
    ]
    said = (
        [f"unresolved links: {', '.join(lost[:_MOST_NAMED])}"]
        if lost and core.wait_until_settled(0)
        else []
    )
    if len(words := _words_of(note)) < _LEAST_WORDS:
        return said
    space, vector = core.index.standing().space, None
    if (
        core.long_lived and space.embedder and not space.remote
    ):  # elsewhere a model would have to be loaded, or paid
        vector = core.embedding.question(note.content[:_COMPARED])[0]
    asked = () if vector else tuple(Term((word,)) for word in sorted(words, key=len)[-_MOST_NAMED:])
    near = core.index.ask(Question(asked, (), vector, notes=3, blocks=0, nearest=3, closer=0)).paths
    for other in sorted({*near.values()} - {path}):
        held = _words_of(read_note(core.vault.read(other).data))
        if (share := len(words & held) / len(words | held)) >= _ALIKE:
            said.append(
                f"{name_of(other)} is nearly the same ({share:.0%} of the words): one of the two may be enough"
            )
    return said


def _words_of(note: Note) -> set[str]:
    return {*content_words(words_in_order(note.content[:_COMPARED]))}


def rewrites_for(core: Core, moves: Moves) -> tuple[list[Wish], list[str]]:
    """The notes whose links must be written again so that moves and new files change no link's meaning; and what cannot
    be. The wishes name each note by its path before the moves."""
    before, after = core.index.files_named, named_after(core, moves)
    link_format, is_unseen = core.conventions.link_format, _is_unseen(core)
    rewrites, warnings = list[Wish](), list[str]()
    for path in dict.fromkeys(
        [*core.index.sources_that_could_mean(moves.paths()), *moves.new_paths]
    ):
        if not is_note(path):
            continue
        try:
            file = core.vault.read(path)
        except SimplememError:
            continue
        note = read_note(file.data)
        text = rewrite_links(note, path, moves, before, after, link_format, is_unseen=is_unseen)
        if text != note.text and note.problem is not None:
            warnings.append(
                f"a link in {name_of(path)} should be updated, but the note cannot be changed: {note.problem}"
            )
        elif text != note.text:
            rewrites.append(Wish.update(path, file.sha256, encoded(text)))
    return rewrites, warnings


def _is_unseen(core: Core) -> Callable[[str], bool]:
    """Whether the path of a link, which may lack its `.md`, is one that this view does not show."""
    hides = core.vault.access.hides
    return lambda path: hides(path) or hides(path_of(name_of(path)))


def named_after(core: Core, moves: Moves) -> Callable[[str], Sequence[str]]:
    """Which files have a name after the moves."""
    arriving = dict[str, set[str]]()
    for path in (*moves.new_paths.values(), *moves.created):
        arriving.setdefault(name_key(path), set()).add(path)

    def named(key: str) -> Sequence[str]:
        files = {path for path in core.index.files_named(key) if path not in moves.new_paths}
        return sorted(files | arriving.get(key, set()))

    return named


def indexed(
    core: Core,
    texts: Mapping[str, bytes],
    written: Iterable[Written],
    *,
    gone: Sequence[str] = (),
    moved: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Index notes that were written as `written` has them, or went, and tell who listens; with what is to be said.

    `moved` has the new path of each that moved, by its old one.
    """
    warnings: list[str] = []
    entries = {each.entry.path: each.entry for each in written if each.entry is not None}
    notes = []
    for path, data in texts.items():
        if (entry := entries.get(path) or core.entry(path)) is not None:
            notes.append((path, read_note(data), entry))
            if entry.size > core.rows.max_note_bytes:
                warnings.append(
                    "written, but too large to be indexed; the setting index.max_note_mb is the limit"
                )
    if changed := {*texts, *gone, *moved, *moved.values()}:
        warnings += core.indexed(changed, lambda: core.rows.put(notes, gone=gone, moved=moved))
    came = [
        each.path for each in written if each.previous_sha256 is None and each.sha256 is not None
    ]
    return warnings + hidden_from_search(core, [*came, *moved.values()])


def hidden_from_search(core: Core, paths: Collection[str]) -> list[str]:
    """Say of each of these new notes that no search will find it, and why. Silent while the index is away."""
    if not paths:
        return []
    known: Mapping[str, Row] = {}
    with suppress(SimplememError, Damaged):
        known = core.index.known(paths)
    hidden = {path: row.hidden for path, row in known.items() if row.hidden is not None}
    warnings = [
        f"{name_of(path)} is hidden from search: {reason}"
        for path, reason in sorted(hidden.items())
    ]
    core.notices.add(warnings)
    return warnings


def answer(
    core: Core,
    written: Written,
    data: bytes,
    warnings: Sequence[str],
    rewrites: Sequence[Wish] = (),
) -> Saved:
    """One note that was written, and the notes whose links it made us qualify."""
    name, note, more = name_of(written.path), read_note(data, written.sha256), []
    if written.changed:
        more = indexed(
            core,
            {written.path: data, **{each.path: each.data or b"" for each in rewrites}},
            [written],
        )
    more += [
        f"links in {each.path} now include a folder, because {name} has the same name"
        for each in rewrites
    ]
    return Saved(
        name, written.path, note.sha256, written.previous_sha256, written.changed, written.version,
        tuple(tag.name for tag in note.tags), tag_map(note.tags, note.header.properties), (*warnings, *more),
    )  # fmt: skip


def unchanged(core: Core, file: File) -> Saved:
    return answer(
        core,
        Written(file.path, file.sha256, file.sha256, "", file.entry, changed=False),
        file.data,
        (),
    )


def new_text(
    content: str, metadata: Mapping[str, Any], now: str, *, tags_as_map: bool = False
) -> str:
    """The text of a note that we make: header, blank line, content; `tags_as_map` as the original simplemem wrote."""
    given = {str(key): value for key, value in metadata.items() if value is not None}
    ours = ("title", "description", "type", "tags", "created", "modified")
    *said, tags, created, _ = (given.pop(find_key(given, key) or key, None) for key in ours)
    properties: dict[str, Any] = {
        key: value for key, value in zip(ours, said, strict=False) if value not in (None, "")
    }
    request = parse_tag_request(tags or None)
    as_map = {key: value for key, value in request.items() if value is not None}
    tags, extra = (as_map, {}) if tags_as_map else tags_for_new_note(request)
    properties |= ({"tags": tags} if tags else {}) | extra | given
    properties["created"] = (created.isoformat() if isinstance(created, date) else created) or now
    properties["modified"] = now
    body = content.lstrip("\r\n")
    return (
        render_header(properties)
        + (f"\n{body}" if body else "")
        + ("" if not body or _ends(body) else "\n")
    )


def replace_content(note: Note, content: str) -> str:
    """The note with another body. The blank lines below its header, its line ends and its header stay."""
    start = note.content_start
    body = _in_line_ends_of(
        note.text, content.lstrip("\r\n") if start > note.header.body_start else content
    )
    old = note.text[start:]
    if body and not _ends(body) and (_ends(old) or not old):
        body += newline_of(note.text)
    return note.text[:start] + body


def apply_edits(note: Note, edits: Sequence[Mapping[str, str]]) -> str:
    """The note with each edit `{old, new}` made in turn. None is made unless all can be."""
    start, newline = note.content_start, newline_of(note.text)
    head, body = note.text[:start], note.text[start:]
    for edit in edits:
        given, new = edit.get("old"), edit.get("new")
        if not isinstance(given, str) or not isinstance(new, str):
            raise Invalid(
                "an edit needs `old` and `new`, both strings",
                hint='Give {"old": "text", "new": "text"}.',
            )
        if not given:
            raise Invalid(
                "an edit has no text to replace",
                hint="Give `old` exactly as in the note, or use append.",
            )
        old, new = given, _in_line_ends_of(note.text, new)
        if old not in body:
            old, new = _NEWLINE.sub(newline, old), _NEWLINE.sub(newline, new)
        count, shown = body.count(old), repr(given if len(given) <= 80 else given[:77] + "...")
        if count == 0 and old in note.text:
            hint = 'Edits apply to the text below it. Give metadata={"key": "value"} for a property; null removes it.'
            raise Invalid(f"the text to replace is in the frontmatter: {shown}", hint=hint)
        if count == 0:
            wanted = given.strip().split("\n", 1)[0].strip()[:200]
            lines = [
                line.strip()[:200] for line in body[:200_000].split("\n")[:2000] if line.strip()
            ]
            near = difflib.get_close_matches(wanted, lines, 1, 0.6) if wanted else []
            hint = (
                f"The nearest line is: {near[0]!r}."
                if near
                else "Read the note again, and give the text exactly."
            )
            raise Invalid(f"the text to replace is not in the note: {shown}", hint=hint)
        if count > 1:
            places, at = list[int](), -1
            while len(places) < 10 and (at := body.find(old, at + 1)) >= 0:
                places.append(at)
            where = ", ".join(
                str(len(_NEWLINE.findall(head + body[:place])) + 1) for place in places
            )
            hint = "Give more of the surrounding text."
            raise Invalid(
                f"the text to replace occurs {count} times, in lines {where}: {shown}", hint=hint
            )
        body = body.replace(old, new, 1)
    return head + body


def apply_metadata(text: str, metadata: Mapping[str, Any]) -> str:
    """The header with properties merged key by key; null takes one away. A map of tags changes those it names."""
    for key, value in metadata.items():
        if (folded := str(key).casefold()) == "modified":
            continue
        if folded == "tags" and value is not None:
            request = parse_tag_request(value)
            if not isinstance(value, list):
                text = with_tags(text, request)
                continue
            value, extra = tags_for_new_note(request)
            for name, wanted in extra.items():
                text = set_property(text, name, wanted)
        properties = read_header(text).properties
        held = find_key(properties, str(key)) or str(key)
        if value is None:
            text = remove_property(text, held)
        elif held not in properties or properties[held] != value:
            text = set_property(text, held, value)
    return text


def stamp_modified(text: str, now: str) -> str:
    """Our mark that we changed the note, where it keeps such a mark, in the notation it has."""
    header = read_header(text)
    if (key := find_key(header.properties, "modified")) is None or header.problem is not None:
        return text
    held = header.properties[key]
    if isinstance(held, str) and (offset := re.search(r"(Z|[+-]\d\d:?\d\d)$", held.strip())):
        moment = datetime.fromisoformat(now).astimezone()
        in_utc = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        now = in_utc if offset[1] == "Z" else moment.isoformat(timespec="seconds")
    return set_property(text, key, now) if held != now else text


def now() -> str:
    """The time as our notes have it: local, to the second."""
    return local().strftime("%Y-%m-%dT%H:%M:%S")


def encoded(text: str) -> bytes:
    """A note's text as its file holds it."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"the text contains a character that UTF-8 cannot encode (a lone surrogate at {error.start})"
        raise Invalid(message, hint="Leave it out, or send it as a surrogate pair.") from error


def _ends(text: str) -> bool:
    """Whether a text ends with a line end."""
    return text.endswith(("\n", "\r"))


def _in_line_ends_of(text: str, addition: str) -> str:
    newline = newline_of(text)
    return addition if newline == "\n" else _NEWLINE.sub(newline, addition)


def judge(
    settings: Settings, name: str, before: str, after: str, *, anew: bool = True
) -> list[str]:
    """What is to be said of the secrets that a change adds to a note, or without a `name` to its name. Invalid where
    they are refused, TooLong for a text that grew too long; never for what is not `anew`."""
    if anew and len(after) > max(MAX_TEXT, len(before)):
        message = f"the text has {len(after)} characters; the limit for a note is {MAX_TEXT}"
        raise TooLong(message, hint="Split it into several notes.")
    if settings.write.secrets == "off" or before == after:
        return []
    from simplemem.note.hidden import (
        added_secrets,
    )  # its patterns take a moment that only a write should pay

    said = []
    for each in (secrets := added_secrets(before, after))[:_MOST_SECRETS]:
        where = f"line {each.line} of {name}" if name else "the name"
        said.append(
            f"{where} seems to contain {'an' if each.kind[0] in 'AaEeIiOo' else 'a'} {each.kind}, {each.shown}"
        )
    if secrets and anew and settings.write.secrets == "refuse":
        hint = (
            "Write where the secret is stored instead of the secret, or set write.secrets = warn."
        )
        found = [{"kind": each.kind, "line": each.line} for each in secrets[:50]]
        raise Invalid("; ".join(said) + ": nothing was written", hint=hint, secrets=found)
    kept = "Notes and their names are plain text, and the history keeps earlier versions. Keep secrets elsewhere."
    return [*said, kept] if said else []
