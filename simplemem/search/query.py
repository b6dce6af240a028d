"""A question as the index can be asked it. Pure.

Everything a person or a model types is words. Only what is unmistakably meant so is more: `"a phrase"`, `tag:x`,
`tag:key=value`, `type:x`, `path:folder/`, `author:x`,
`begin*`, and `-word` after a space. Nothing ever reaches SQLite as syntax.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from simplemem.index.door import Term
from simplemem.note.words import (
    content_words,
    neighbouring_words,
    parts_of_names,
    sequences_in,
    well_formed,
    words_in_order,
    words_of,
)

MAX_CHARACTERS = 2_000  # of a question; the rest is not read
_MAX_WORDS = 64
_MAX_SEQUENCES = 16
_ENDS = (".", "?", "!", "。", "？", "！")  # of a sentence: its last word is typed to its end

_TERM = re.compile(
    r"""(?:(?<=\s)|^)(?:
        (?P<minus>-)?"(?P<phrase>[^"\n]{1,200})"
      | (?P<not>-)?(?P<field>tag|type|path|author):(?:"(?P<quotedvalue>[^"\n]{1,200})"|(?P<value>[^\s"]{1,200}))
      | (?P<start>[^\W\d_][^\s"*]{1,60})\*
      | -(?P<word>[^\W\d_][\w'\x80-\U0010ffff-]{0,60})
    )(?=\s|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart: the words to rank by, and what narrows."""

    text: str
    words: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    type: str = ""
    prefix: str = ""
    author: str = ""
    sequences: tuple[tuple[str, ...], ...] = ()  # words written as one: they rank as a word of their own
    named: tuple[str, ...] = ()  # words that are such a sequence without its joints
    beginnings: tuple[str, ...] = ()  # words asked as the beginning of words
    last: str = ""  # the word that may not be typed to its end
    forms: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)  # what else a word is asked as (forms.py)
    stem_pairs: tuple[tuple[str, str], ...] = ()
    without_forms: tuple[str, ...] = ()
    instead: str = ""  # what was asked instead of what stands there

    def asks_nothing(self) -> bool:
        """Whether it holds something, but no word and nothing that narrows: `???` is not an empty question."""
        narrows = self.phrases or self.without or self.tags or self.type or self.prefix or self.author
        return bool(self.text.strip()) and not self.words and not narrows

    def forms_of(self, word: str) -> tuple[Term, ...]:
        """All that a word is asked as."""
        return (Term((word,)), *self.forms.get(word, ()))

    def terms(self) -> tuple[Term, ...]:
        """What notes are looked for by: any of these (all of them finds nothing for a question, retrieval.md §3)."""
        words = [term for word in self.words for term in self.forms_of(word)]
        return tuple(dict.fromkeys([*words, *map(Term, self.sequences)]))

    def side_by_side(self) -> tuple[Term, ...]:
        """The pairs of neighbouring words."""
        return tuple(map(Term, (*self.pairs, *self.stem_pairs)))


def read_query(text: str) -> Query:
    """Take a question apart. Never raises: what is not syntax on purpose is words."""
    cut = (
        f"Only the first {MAX_CHARACTERS:,} characters of the question were read." if len(text) > MAX_CHARACTERS else ""
    )
    text = well_formed(text[:MAX_CHARACTERS]).replace("\0", "\ufffd")
    phrases: list[str] = []
    without: list[str] = []
    tags: dict[str, str] = {}
    found = {"type": "", "path": "", "author": ""}
    plain: list[str] = []
    beginnings: list[str] = []
    last = 0
    for term in _TERM.finditer(text):
        value = term["quotedvalue"] or term["value"]
        if term["not"] or (term["phrase"] is not None and not words_of(term["phrase"])):
            continue  # a negated field is not offered: it stays words
        plain.append(text[last : term.start()])
        last = term.end()
        if term["phrase"] is not None:
            (without if term["minus"] else phrases).append(term["phrase"])
            if not term["minus"]:
                plain.append(f" {term['phrase']} ")
        elif term["start"] is not None:
            plain.append(f" {term['start']} ")
            beginnings += words_in_order(term["start"])[-1:]
        elif term["word"] is not None:
            without.append(term["word"])
        elif term["field"] == "tag":
            key, _, wanted = value.lstrip("#").partition("=")
            tags[key] = wanted
        else:
            found[term["field"]] = value
    plain.append(text[last:])
    words = " ".join(plain)
    if not words.strip() and without and not (phrases or tags or any(found.values())):
        return _ranked_by(text, Query(text, ()))  # "-5 degrees" alone excludes nothing: there is nothing to keep
    narrowing = Query(
        text, (), (), tuple(phrases), tuple(without), tags, found["type"], found["path"], found["author"],
        beginnings=tuple(beginnings), instead=cut,
    )  # fmt: skip
    return _ranked_by(words, narrowing)


def _ranked_by(text: str, query: Query) -> Query:
    """The question with the words and pairs of words that rank."""
    words = words_in_order(text)
    parts = words_in_order(parts_of_names(text))
    ranked = content_words(list(dict.fromkeys(words + parts)))
    fewer = f"Of its words the first {_MAX_WORDS} were looked for." if len(ranked) > _MAX_WORDS else ""
    ranked = ranked[:_MAX_WORDS]
    sequences = sequences_in(text)[:_MAX_SEQUENCES]
    return replace(
        query,
        words=tuple(ranked),
        instead=f"{query.instead} {fewer}".strip(),
        pairs=tuple(neighbouring_words(words)[:_MAX_WORDS]),
        sequences=tuple(sequences),
        named=tuple(word for word in map("".join, sequences) if word in ranked),
        beginnings=tuple(word for word in query.beginnings if word in ranked and len(word) > 1),
        last=words[-1] if words and not text.rstrip().endswith(_ENDS) else "",
    )
