"""Read a query: its words and its filters.

Everything a person types is words, except `"a phrase"`, `tag:x`, `tag:key=value`, `type:x`,
`path:folder/`, `author:x`, `archive:`, `begin*`, and `-word` after a space. Nothing of a query
reaches SQLite as syntax. docs/search.md describes queries for their users. `forms.py` adds what the
words are searched as.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from simplemem.index.door import Term
from simplemem.note.words import (
    content_words,
    neighbouring_words,
    parts_of_names,
    sequences_in,
    unique_words,
    well_formed,
    words_in_order,
    words_key,
)

# Characters of a query that are read.
MAX_CHARACTERS = 2_000
_MAX_WORDS = 64
_MAX_SEQUENCES = 16

# The last word of a query may be half typed, unless one of these follows it.
_SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")

_SYNTAX = re.compile(
    r"""(?:(?<=\s)|^)(?:(?P<archive>archive:)|(?:
        (?P<minus>-)?"(?P<phrase>[^"\n]{1,200})"
      | (?P<not>-)?(?P<field>tag|type|path|author):
        (?:"(?P<quoted_value>[^"\n]{1,200})"|(?P<value>[^\s"]{1,200}))
      | (?P<beginning>[^\W\d_][^\s"*]{1,60})\*
      | -(?P<word>[^\W\d_][\w'\x80-\U0010ffff-]{0,60})
    )(?=\s|$))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query in its parts: the words that rank notes, and the filters."""

    text: str

    # The words that rank, each once.
    words: tuple[str, ...]

    # All words in their order, including stop words.
    spoken: tuple[str, ...] = ()

    # Neighbouring words.
    pairs: tuple[tuple[str, str], ...] = ()

    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    type: str = ""
    prefix: str = ""
    author: str = ""

    # Whether to search past sessions.
    archive: bool = False

    # Words that were written as one, such as `path/to.py`. Each sequence ranks as one more word.
    sequences: tuple[tuple[str, ...], ...] = ()

    # Words that were written as `begin*`.
    beginnings: tuple[str, ...] = ()

    # The last word, if it may be half typed; else "".
    last: str = ""

    # What a word is searched as, besides itself.
    forms: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)

    # The stems of neighbouring words.
    stem_pairs: tuple[Term, ...] = ()

    # The stems of `without`.
    without_forms: tuple[str, ...] = ()

    # Sentences about what was searched for instead of the text, "" if nothing was.
    instead: str = ""

    # For each of `words`, how many notes contain it.
    note_counts: tuple[int, ...] = ()

    # Words that no note contains, in any form.
    absent: tuple[str, ...] = ()

    def asks_nothing(self) -> bool:
        """Return whether the text has neither words nor filters: `???`, but not an empty text."""
        return bool(self.text.strip()) and not self.words and not self.has_filters()

    def has_filters(self) -> bool:
        """Return whether the text contains filters."""
        filters = (
            self.phrases,
            self.without,
            self.tags,
            self.type,
            self.prefix,
            self.author,
            self.archive,
        )
        return any(filters)

    def forms_of(self, word: str) -> tuple[Term, ...]:
        """Return everything that a word is searched as, the word itself first."""
        return (Term((word,)), *self.forms.get(word, ()))

    def terms(self) -> tuple[Term, ...]:
        """Return what to search for: a note that contains any of these terms is a candidate.

        Few notes contain all words of a question, so a search for all of them finds nothing.
        """
        terms = [term for word in self.words for term in self.forms_of(word)]
        terms += [Term(sequence) for sequence in self.sequences]
        return tuple(dict.fromkeys(terms))

    def names(self) -> tuple[str, ...]:
        """Return the names that the whole query may be of a note, in the form of `words_key`.

        These are all its words, and its words without the stop words around them: `What is a MOC?`
        names `MOC`.
        """
        ranking_places = [place for place, word in enumerate(self.spoken) if word in self.words]
        inner_words: tuple[str, ...] = ()
        if ranking_places:
            inner_words = self.spoken[ranking_places[0] : ranking_places[-1] + 1]

        keys = [words_key(" ".join(words)) for words in (self.spoken, inner_words)]
        return tuple(key for key in dict.fromkeys(keys) if key)

    def side_by_side(self) -> tuple[Term, ...]:
        """Return the pairs of neighbouring words, and of their stems."""
        return (*map(Term, self.pairs), *self.stem_pairs)


@dataclass
class _Syntax:
    """The filters that were read from a query so far, and the text that remains as words."""

    words_text: str = ""
    phrases: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    beginnings: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    archive: bool = False

    def excludes_only(self) -> bool:
        """Return whether nothing but exclusions was read."""
        includes = (
            self.words_text.strip(),
            self.phrases,
            self.tags,
            any(self.fields.values()),
            self.archive,
        )
        return bool(self.without) and not any(includes)


def read_query(text: str) -> Query:
    """Read a query as a person types it. Never raises: what is not valid syntax is words."""
    notices: list[str] = []
    if len(text) > MAX_CHARACTERS:
        notices.append(f"Only the first {MAX_CHARACTERS:,} characters of the query were read.")
    text = well_formed(text[:MAX_CHARACTERS]).replace("\0", "\ufffd")

    syntax = _read_syntax(text)
    if syntax.excludes_only():
        # "-5 degrees" alone leaves nothing to search for, so it is words.
        syntax.words_text = text
        syntax.without = []
    words_text = syntax.words_text

    words = words_in_order(words_text)
    name_parts = words_in_order(parts_of_names(words_text))
    ranking_words = content_words(list(dict.fromkeys(words + name_parts)))
    if len(ranking_words) > _MAX_WORDS:
        notices.append(f"Only the first {_MAX_WORDS} words of the query were searched for.")
        ranking_words = ranking_words[:_MAX_WORDS]

    beginnings = [word for word in syntax.beginnings if word in ranking_words and len(word) > 1]
    last = ""
    if words and not words_text.rstrip().endswith(_SENTENCE_ENDS):
        last = words[-1]
    return Query(
        text,
        words=tuple(ranking_words),
        spoken=tuple(words[:_MAX_WORDS]),
        pairs=tuple(neighbouring_words(words)[:_MAX_WORDS]),
        phrases=tuple(syntax.phrases),
        without=tuple(syntax.without),
        tags=syntax.tags,
        type=syntax.fields.get("type", ""),
        prefix=syntax.fields.get("path", ""),
        author=syntax.fields.get("author", ""),
        archive=syntax.archive,
        sequences=tuple(sequences_in(words_text)[:_MAX_SEQUENCES]),
        beginnings=tuple(beginnings),
        last=last,
        instead=" ".join(notices),
    )


def _read_syntax(text: str) -> _Syntax:
    """Separate the filters of a query from its words."""
    syntax = _Syntax()
    end = 0
    for match in _SYNTAX.finditer(text):
        if _is_words(match):
            continue
        words = _take_filter(syntax, match)
        syntax.words_text += f"{text[end : match.start()]} {words} "
        end = match.end()
    syntax.words_text += text[end:]
    return syntax


def _is_words(match: re.Match[str]) -> bool:
    """Return whether a match stays words: a negated field, or a phrase without a word."""
    if match["not"]:
        return True
    phrase = match["phrase"]
    return phrase is not None and not unique_words(phrase)


def _take_filter(syntax: _Syntax, match: re.Match[str]) -> str:
    """Add a filter to `syntax`, and return the part of it that ranks as words too."""
    phrase = match["phrase"]
    if match["archive"]:
        syntax.archive = True
        return ""

    if match["word"] or match["minus"]:
        syntax.without.append(match["word"] or phrase)
        return ""

    if phrase is not None:
        syntax.phrases.append(phrase)
        return phrase

    beginning = match["beginning"]
    if beginning:
        syntax.beginnings += words_in_order(beginning)[-1:]
        return beginning

    value = match["quoted_value"] or match["value"]
    if match["field"] == "tag":
        key, _, tag_value = value.lstrip("#").partition("=")
        syntax.tags[key] = tag_value
    else:
        syntax.fields[match["field"]] = value
    return ""
