"""A question as the index can be asked it. Everything typed is words, but for `"a phrase"`, `tag:x`, `tag:key=value`,
`type:x`, `path:folder/`, `author:x`, `begin*` and `-word` after a space. Nothing ever reaches SQLite as syntax."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from simplemem.index.door import Standing, Term
from simplemem.note.words import (
    MARKS,
    content_words,
    holding_together,
    is_unspaced,
    neighbouring_words,
    parts_of_names,
    sequences_in,
    stem,
    well_formed,
    words_in_order,
    words_of,
)

if TYPE_CHECKING:
    from simplemem.index.sidecar import Sidecar

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
    beginnings: tuple[str, ...] = ()  # words asked as the beginning of words
    last: str = ""  # the word that may not be typed to its end
    forms: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)  # what else a word is asked as
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
    said = f"Only the first {MAX_CHARACTERS:,} characters of the question were read."
    instead = [said] if len(text) > MAX_CHARACTERS else []
    text = well_formed(text[:MAX_CHARACTERS]).replace("\0", "\ufffd")
    phrases: list[str] = []
    without: list[str] = []
    beginnings: list[str] = []
    tags: dict[str, str] = {}
    fields = {"type": "", "path": "", "author": ""}
    plain, last = "", 0
    for term in _TERM.finditer(text):
        phrase, value, ranks = term["phrase"], term["quotedvalue"] or term["value"], ""
        if term["not"] or (phrase is not None and not words_of(phrase)):
            continue  # a negated field is not offered: it stays words
        if term["word"] or term["minus"]:
            without.append(term["word"] or phrase)
        elif phrase is not None:
            phrases.append(ranks := phrase)
        elif term["start"]:
            beginnings += words_in_order(ranks := term["start"])[-1:]
        elif term["field"] == "tag":
            key, _, wanted = value.lstrip("#").partition("=")
            tags[key] = wanted
        else:
            fields[term["field"]] = value
        plain += f"{text[last : term.start()]} {ranks} "
        last = term.end()
    plain += text[last:]
    if not plain.strip() and without and not (phrases or tags or any(fields.values())):
        plain, without = text, []  # "-5 degrees" alone excludes nothing: there is nothing to keep
    words = words_in_order(plain)
    ranked = content_words(list(dict.fromkeys(words + words_in_order(parts_of_names(plain)))))
    if len(ranked) > _MAX_WORDS:
        instead.append(f"Of its words the first {_MAX_WORDS} were looked for.")
    ranked = ranked[:_MAX_WORDS]
    sequences = sequences_in(plain)[:_MAX_SEQUENCES]
    return Query(
        text, tuple(ranked), tuple(neighbouring_words(words)[:_MAX_WORDS]), tuple(phrases), tuple(without), tags,
        fields["type"], fields["path"], fields["author"],
        sequences=tuple(sequences),
        beginnings=tuple(word for word in beginnings if word in ranked and len(word) > 1),
        last=words[-1] if words and not plain.rstrip().endswith(_ENDS) else "",
        instead=" ".join(instead),
    )  # fmt: skip


# -- the forms in which a vault may hold the words

_SHORTEST_START = 3  # letters of the beginning of a word


def with_forms(query: Query, index: Sidecar) -> tuple[Query, Standing]:
    """The question with the forms its words are asked in and what was asked instead; and how far the index is."""
    if not (query.words or query.without):
        return query, index.vocabulary(())[1]
    held, standing = index.vocabulary([(Term((word,)),) for word in (*MARKS.values(), *query.words)])
    languages = [each for each, is_held in zip(MARKS, held, strict=False) if is_held]
    held = held[len(MARKS) :]
    if languages:
        query = _in_languages(query, languages)
        held = index.vocabulary([query.forms_of(word) for word in query.words])[0]
    unknown = [word for word, is_held in zip(query.words, held, strict=True) if not is_held]
    if not unknown and not query.beginnings:
        return query, standing
    forms, said = dict(query.forms), [query.instead] if query.instead else []
    for word in query.beginnings:
        forms[word] = (*forms.get(word, ()), Term((word,), beginning=True))
    unspaced = [word for word in query.words if is_unspaced(word)]
    if unspaced and set(unspaced) <= set(unknown):
        characters = [_held([Term((character,)) for character in word], index) for word in unspaced]
        forms |= dict(zip(unspaced, characters, strict=True))
        said += [f'No memory holds "{word}"; its characters were looked for.' for word in unspaced if forms[word]][:1]
    last = query.last if query.last in unknown and len(query.last) >= _SHORTEST_START else ""
    if last and last not in (*unspaced, *query.beginnings) and (found := _held([Term((last,), beginning=True)], index)):
        forms[last] = found
        said.append(f'No memory holds "{last}"; words that begin so were looked for.')
    return replace(query, forms=forms, instead=" ".join(said)), standing


def _in_languages(query: Query, languages: Collection[str]) -> Query:
    """The question with the stems of its words in the languages of the vault, without the small words of its own."""
    small = holding_together(query.words, languages)
    words = tuple(word for word in query.words if word not in small) or query.words
    pairs = tuple(pair for pair in query.pairs if not small.issuperset(pair))
    forms = {word: tuple(Term((one,)) for one in _stems(word, languages)) for word in words}
    stem_pairs = [
        pair for a, b in pairwise(words) for pair in zip(_stems(a, languages), _stems(b, languages), strict=False)
    ]
    without = [stem for word in query.without for stem in _stems(word.lower(), languages)]
    return replace(
        query, words=words, pairs=pairs, forms=forms, stem_pairs=tuple(stem_pairs), without_forms=tuple(without)
    )


def _stems(word: str, languages: Collection[str]) -> tuple[str, ...]:
    return tuple(stem(word, language) for language in languages) if word.isalpha() and not is_unspaced(word) else ()


def _held(asked: Sequence[Term], index: Sidecar) -> tuple[Term, ...]:
    held = index.vocabulary([(term,) for term in asked])[0]
    return tuple(term for term, is_held in zip(asked, held, strict=True) if is_held)
