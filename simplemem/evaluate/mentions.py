"""What the notes of a vault are called and what they say of themselves: the stuff that questions are made of. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simplemem.evaluate.pairs import Held
from simplemem.evaluate.sentences import overlaps, plain, sentences, stems_of
from simplemem.note.names import base_name
from simplemem.note.note import Note, read_note
from simplemem.note.words import content_words, words_of
from simplemem.vault.links import Named, name_key, resolve

_LEAST, _MOST = 8, 40  # words of a sentence that is asked for
_NOT_PROSE = ("[!", "|", "<", "$", "%%", "://", "{", "}", "\\")


@dataclass(frozen=True, slots=True)
class Source:
    """A note of the vault that takes part in recall. It is read anew each time: a large vault in pieces would fill the
    memory."""

    path: str
    name: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def read(self) -> Note:
        return read_note(self.data)


@dataclass(frozen=True, slots=True)
class Mention:
    """A text that stands for a note: its title, an alias, what a link to it shows."""

    kind: str
    text: str
    gold: str
    held: Held


class Vocabulary:
    """In how many notes each word stem occurs: what makes a question name one note and not many."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.stems = {source.name: stems_of(f"{source.name}\n{source.text}") for source in sources}
        self._count = Counter(stem for stems in self.stems.values() for stem in stems)
        self._few = max(5, len(sources) // 20)
        self._with: dict[str, list[str]] = {}
        for name, stems in self.stems.items():
            for stem in stems:
                if self._count[stem] <= self._few:
                    self._with.setdefault(stem, []).append(name)

    def rare(self, stems: frozenset[str]) -> int:
        """How many of these stand in few notes."""
        return sum(1 for stem in stems if self._count[stem] <= self._few)

    def with_any_rare(self, stems: frozenset[str]) -> set[str]:
        """The notes that have one of the rare words among these."""
        return {name for stem in stems for name in self._with.get(stem, ())}


def names_in_files(paths: Sequence[str]) -> Named:
    """Which files have a name, by a list of all of them."""
    by_key: dict[str, list[str]] = {}
    for path in paths:
        by_key.setdefault(name_key(path), []).append(path)
    return lambda key: by_key.get(key, [])


def mentions(source: Source, named: Named, by_path: Mapping[str, Source]) -> Iterator[Mention]:
    """Everything in a note that stands for it, or for a note it links to. Sentences are not among it."""
    note, name = source.read(), source.name
    for text in dict.fromkeys(filter(None, (note.string("title"), base_name(source.path)))):
        yield Mention("title", text, name, Held(name, "title", text))
    for kind, texts in (
        ("alias", note.aliases),
        ("description", filter(None, [note.string("description")])),
        ("heading", (heading.text for heading in note.body.headings)),
    ):
        for text in texts:
            yield Mention(kind, plain(text), name, Held(name, kind, text))
    for link in note.body.links:
        target = by_path.get(resolve(link.target, source.path, named).path or "") if link.target else None
        if link.display and not link.embed and target is not None and target.name != name:
            yield Mention("link", plain(link.display), target.name, Held(name, "link", link.display))


def asks_something(mention: Mention, source: Source, vocabulary: Vocabulary) -> bool:
    """Whether a mention names a note by words of its own: no date, no "Overview", no "see here"."""
    stems = stems_of(mention.text)
    words = [word for word in content_words(words_of(mention.text)) if not word.isdecimal()]
    if mention.kind == "description":
        return len(words) >= 3
    if not words or not vocabulary.rare(stems):
        return False
    if mention.kind == "link":
        note = source.read()
        called = " ".join([note.string("title") or "", base_name(source.path), *note.aliases])
        return not stems <= stems_of(called)  # else it is the title that is asked for, and nothing is held out
    return len(words) >= 2 or mention.kind != "heading"


Said = Callable[[str], list[frozenset[str]]]
"""The stems of every sentence of a note, by its name."""


def telling_sentences(source: Source, vocabulary: Vocabulary, said: Said) -> Iterator[Mention]:
    """Sentences of a note with words that few notes have, and that no other note says nearly so."""
    note = source.read()
    for kind, start, end in sentences(note):
        text = plain(note.text[start:end])
        if kind == "heading" or not _LEAST <= len(words_of(text)) <= _MOST or len(text) > 300:
            continue
        if any(sign in text for sign in _NOT_PROSE):
            continue
        stems = stems_of(text)
        if len(stems) >= 5 and vocabulary.rare(stems) >= 2 and not _said_elsewhere(source, stems, vocabulary, said):
            yield Mention("sentence", text, source.name, Held(source.name, "sentence", text))


def _said_elsewhere(source: Source, stems: frozenset[str], vocabulary: Vocabulary, said: Said) -> bool:
    return any(
        overlaps(other, stems)
        for name in sorted(vocabulary.with_any_rare(stems) - {source.name})
        if 10 * len(stems & vocabulary.stems[name]) >= 6 * len(stems)
        for other in said(name)
    )
