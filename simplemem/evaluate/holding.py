"""A note as if something in it were not there: what is asked for, and sentences that say nearly the same. Pure.

The name of a file cannot be taken out of its text: whoever holds a title out gives the file another name as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from simplemem.evaluate.pairs import Held
from simplemem.evaluate.sentences import key_of, overlaps, plain, sentences, stems_of
from simplemem.note.note import Note, read_note
from simplemem.note.properties import remove_item, remove_property


def without(text: str, held: Iterable[Held], question: str, *, answers: bool) -> str:
    """A note's text without what is held out of it. A note that `answers` also loses whatever overlaps the question.
    Raises Unreadable where a property cannot be taken out."""
    keys = {(each.what, key_of(each.text)) for each in held}
    whats = {what for what, _ in keys}
    asked = stems_of(question)
    note = read_note(text.encode("utf-8", "surrogatepass"))
    description = note.string("description")
    if "title" in whats:
        text = remove_property(text, "title")
    if "description" in whats or (answers and description is not None and overlaps(stems_of(description), asked)):
        text = remove_property(text, "description")
    text = _without_aliases(text, note, {key for what, key in keys if what == "alias"})
    note = read_note(text.encode("utf-8", "surrogatepass"))
    spans = [(h.start, h.end) for h in note.body.headings if ("heading", key_of(h.text)) in keys]
    linking = {key for what, key in keys if what == "link"}
    shown = [link for link in note.body.links if linking and link.display and key_of(link.display) in linking]
    said = {key for what, key in keys if what == "sentence"}
    for _, start, end in sentences(note):
        sentence = plain(text[start:end])
        gives_away = answers and overlaps(stems_of(sentence), asked)
        if gives_away or key_of(sentence) in said or any(start <= link.start < end for link in shown):
            spans.append((start, end))
    return _cut(text, spans)


def _without_aliases(text: str, note: Note, keys: set[str]) -> str:
    value = note.header.get("aliases")
    for item in (value if isinstance(value, list) else [value]) if keys else ():
        if isinstance(item, str) and key_of(item) in keys:
            text = remove_item(text, "aliases", item)
    return text


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    kept = []
    at = 0
    for start, end in sorted(spans):
        kept.append(text[at : max(at, start)])
        at = max(at, end)
    return "".join([*kept, text[at:]])
