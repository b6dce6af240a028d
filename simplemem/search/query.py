"""Read a query: its words and its filters.

Everything a person types is words, except `"a phrase"`, `tag:x`, `tag:key=value`, `type:x`,
`path:folder/`, `author:x`, `archive:`, `begin*`, and `-word` after a space. Nothing of a query
reaches SQLite as syntax. docs/search.md describes queries for their users.

`read_query` reads the text alone. `with_forms` then adds what each word is searched as: its stems
in the languages of the vault, and what takes the place of a word that no note contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from simplemem.index.api import AnyOf, IndexProgress, Term
from simplemem.note.stems import MARKS, stem
from simplemem.note.words import (
    content_words,
    find_stop_words,
    is_unspaced,
    neighbouring_words,
    parts_of_names,
    sequences_in,
    unique_words,
    well_formed,
    words_in_order,
    words_key,
)

# -- queries

# Characters of a query that are read.
MAX_CHARACTERS = 2_000
_MAX_WORDS = 64
_MAX_SEQUENCES = 16

# The weight of a word that replaces a misspelt one, relative to 1 of a word that was typed.
CORRECTED_WEIGHT = 0.75

# The last word of a query may be half typed, unless one of these follows it.
_SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")

# One filter, at the start of a word. Only `archive:` may have a word right after it.
_SYNTAX = re.compile(
    r"""(?:(?<=\s)|^)(?:(?P<archive>archive:)|(?:
        (?P<negated_phrase>-)?"(?P<phrase>[^"\n]{1,200})"
      | (?P<negated_field>-)?(?P<field>tag|type|path|author):
        (?:"(?P<quoted_value>[^"\n]{1,200})"|(?P<value>[^\s"]{1,200}))
      | (?P<beginning>[^\W\d_][^\s"*]{1,60})\*
      | -(?P<excluded_word>[^\W\d_][\w'\x80-\U0010ffff-]{0,60})
    )(?=\s|$))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query in its parts: the words that rank notes, and the filters."""

    text: str

    # The words that rank, each once.
    words: tuple[str, ...]

    # The first 64 words in their order, including stop words and repeated ones.
    all_words: tuple[str, ...] = ()

    # Words that are neighbours in the text, without pairs of two stop words.
    pairs: tuple[tuple[str, str], ...] = ()

    phrases: tuple[str, ...] = ()

    # Words and phrases after a minus: notes that contain one of them are left out.
    excluded: tuple[str, ...] = ()

    # Tags with their values; a tag without a value has "".
    tags: dict[str, str] = field(default_factory=dict)
    type: str = ""
    prefix: str = ""
    author: str = ""

    # Whether to search past sessions.
    archive: bool = False

    # The words of each expression such as `path/to.py`. A sequence ranks as one more word.
    sequences: tuple[tuple[str, ...], ...] = ()

    # Words that rank and were written as `begin*`.
    beginnings: tuple[str, ...] = ()

    # The last word, if it may be half typed; else "".
    unfinished_word: str = ""

    # What a word is searched as, besides itself; a word without other forms may be missing.
    forms: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)

    # The stems of neighbours among `words`.
    stem_pairs: tuple[Term, ...] = ()

    # The stems of `excluded`.
    excluded_forms: tuple[str, ...] = ()

    # Sentences on what was not read, and on what was searched for in place of a word; "" for none.
    notice: str = ""

    # For each of `words`, how many notes contain it or one of its stems.
    note_counts: tuple[int, ...] = ()

    # Words that no note contains, in any form.
    absent: tuple[str, ...] = ()

    # Misspelt words that were typed, each with the word of `words` that replaced it.
    corrections: Mapping[str, str] = field(default_factory=dict)

    def has_nothing_searchable(self) -> bool:
        """Return whether a text that is not blank has neither words nor filters, such as `???`.

        Returns False for an empty text, which asks for the newest notes.
        """
        if not self.text.strip():
            return False
        return not self.words and not self.has_filters()

    def has_filters(self) -> bool:
        """Return whether the text contains filters."""
        filters = (
            self.phrases,
            self.excluded,
            self.tags,
            self.type,
            self.prefix,
            self.author,
            self.archive,
        )
        return any(filters)

    def forms_of(self, word: str) -> tuple[Term, ...]:
        """Return everything that a word is searched as, the word itself first."""
        other_forms = self.forms.get(word, ())
        weight = 1.0
        if word in self.corrections.values():
            weight = CORRECTED_WEIGHT
        return (Term((word,), weight=weight), *other_forms)

    def correction_notice(self) -> str:
        """Return a sentence for each misspelt word on what was searched for; "" for none."""
        sentences = [
            f"No note contains {typed}; searched for {found}."
            for typed, found in self.corrections.items()
        ]
        return " ".join(sentences)

    def terms(self) -> tuple[Term, ...]:
        """Return what to search for: a note that contains any of these terms is a candidate.

        Few notes contain all words of a question, so a search for all of them finds nothing.
        """
        terms: list[Term] = []
        for word in self.words:
            terms += self.forms_of(word)
        for sequence in self.sequences:
            terms.append(Term(sequence))

        unique_terms = dict.fromkeys(terms)
        return tuple(unique_terms)

    def names(self) -> tuple[str, ...]:
        """Return the names that the whole query may be, in the form of `words_key`.

        These are all its words, and its words without the stop words around them: `What is a MOC?`
        may mean the name `MOC`. Equal names are one. Whether a note has such a name is not checked.
        """
        key_of_all = words_key(" ".join(self.all_words))
        key_of_inner = words_key(" ".join(self._inner_words()))
        unique_keys = dict.fromkeys((key_of_all, key_of_inner))
        return tuple(key for key in unique_keys if key)

    def _inner_words(self) -> tuple[str, ...]:
        """Return all words from the first that ranks to the last that ranks."""
        numbered_words = enumerate(self.all_words)
        ranking_places = [place for place, word in numbered_words if word in self.words]
        if not ranking_places:
            return ()

        first = ranking_places[0]
        last = ranking_places[-1]
        return self.all_words[first : last + 1]

    def neighbour_terms(self) -> tuple[Term, ...]:
        """Return one term per pair of neighbouring words, then one per pair of their stems."""
        pairs = map(Term, self.pairs)
        return (*pairs, *self.stem_pairs)


@dataclass
class _Syntax:
    """The filters that were read from a query so far, and the text that remains as words."""

    words_text: str = ""
    phrases: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
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
        return bool(self.excluded) and not any(includes)


def read_query(text: str) -> Query:
    """Read a query as a person types it, without asking the index.

    Never raises: text that is not valid syntax is read as words. Only the first 2,000 characters
    and 64 words that rank are read; `notice` says so if there are more. A query of nothing but
    exclusions is read as words. `forms`, `stem_pairs`, `excluded_forms`, `note_counts` and `absent`
    stay empty: `with_forms` fills them.
    """
    notices: list[str] = []
    if len(text) > MAX_CHARACTERS:
        notices.append(f"Only the first {MAX_CHARACTERS:,} characters of the query were read.")
    text = well_formed(text[:MAX_CHARACTERS]).replace("\0", "\ufffd")

    syntax = _read_syntax(text)
    if syntax.excludes_only():
        # "-5 degrees" alone leaves nothing to search for, so it is words.
        syntax.words_text = text
        syntax.excluded = []
    words_text = syntax.words_text

    words = words_in_order(words_text)
    name_parts = words_in_order(parts_of_names(words_text))
    unique_words_in_order = list(dict.fromkeys(words + name_parts))
    ranking_words = content_words(unique_words_in_order)
    if len(ranking_words) > _MAX_WORDS:
        notices.append(f"Only the first {_MAX_WORDS} words of the query were searched for.")
        ranking_words = ranking_words[:_MAX_WORDS]

    # 2 letters are enough before a `*`. `_MIN_BEGINNING` is for an unfinished word without one.
    long_beginnings = [word for word in syntax.beginnings if len(word) > 1]
    beginnings = [word for word in long_beginnings if word in ranking_words]

    unfinished_word = ""
    is_finished = words_text.rstrip().endswith(_SENTENCE_ENDS)
    if words and not is_finished:
        unfinished_word = words[-1]

    return Query(
        text,
        words=tuple(ranking_words),
        all_words=tuple(words[:_MAX_WORDS]),
        pairs=tuple(neighbouring_words(words)[:_MAX_WORDS]),
        phrases=tuple(syntax.phrases),
        excluded=tuple(syntax.excluded),
        tags=syntax.tags,
        type=syntax.fields.get("type", ""),
        prefix=syntax.fields.get("path", ""),
        author=syntax.fields.get("author", ""),
        archive=syntax.archive,
        sequences=tuple(sequences_in(words_text)[:_MAX_SEQUENCES]),
        beginnings=tuple(beginnings),
        unfinished_word=unfinished_word,
        notice=" ".join(notices),
    )


def _read_syntax(text: str) -> _Syntax:
    """Separate the filters of a query from its words.

    Phrases and words with a `*` are kept among the words too, because they also rank.
    """
    syntax = _Syntax()
    end_of_last = 0
    for match in _SYNTAX.finditer(text):
        if _is_plain_text(match):
            continue
        text_before = text[end_of_last : match.start()]
        words = _take_filter(syntax, match)
        syntax.words_text += f"{text_before} {words} "
        end_of_last = match.end()

    syntax.words_text += text[end_of_last:]
    return syntax


def _is_plain_text(match: re.Match[str]) -> bool:
    """Return whether a match of `_SYNTAX` is read as words, not as a filter.

    These are a negated field, such as `-tag:x`, and a phrase without a word.
    """
    if match["negated_field"]:
        return True
    phrase = match["phrase"]
    return phrase is not None and not unique_words(phrase)


def _take_filter(syntax: _Syntax, match: re.Match[str]) -> str:
    """Add the filter of a match to `syntax`, and return the part of it that ranks as words too.

    That part is the phrase or the beginning of a word; "" for any other filter. A second value of
    a field, or of a tag with the same name, replaces the first. Other tags are added.
    """
    phrase = match["phrase"]
    if match["archive"]:
        syntax.archive = True
        return ""

    if match["excluded_word"]:
        syntax.excluded.append(match["excluded_word"])
        return ""

    if match["negated_phrase"]:
        syntax.excluded.append(phrase)
        return ""

    if phrase is not None:
        syntax.phrases.append(phrase)
        return phrase

    beginning = match["beginning"]
    if beginning:
        words = words_in_order(beginning)
        syntax.beginnings += words[-1:]
        return beginning

    value = match["quoted_value"] or match["value"]
    if match["field"] == "tag":
        key, _, tag_value = value.lstrip("#").partition("=")
        syntax.tags[key] = tag_value
    else:
        syntax.fields[match["field"]] = value
    return ""


# -- forms of words

# The type of `IndexService.vocabulary`. It returns for each group of terms how many notes contain
# one of them, and how far the index is.
Vocabulary = Callable[[Sequence[AnyOf]], tuple[Sequence[int], IndexProgress]]

# An unfinished word is completed from this many letters on: fewer begin too many words.
_MIN_BEGINNING = 3


def with_forms(query: Query, vocabulary: Vocabulary) -> tuple[Query, IndexProgress]:
    """Return the query with all forms that its words are searched as, and how far the index is.

    The forms are stems in the languages of the vault. Stop words of the query's language are no
    longer among its `words`, unless they are all that it has. If no note contains a word, words
    that begin with it, or its characters, may be searched for; `notice` then says so. A word
    without such a substitute is in `absent`. Asks `vocabulary` at least once, also for a query
    without words.
    """
    if not (query.words or query.excluded):
        _, status = vocabulary(())
        return query, status

    # A note in a language other than English contains the mark of the language.
    marks_and_words = [*MARKS.values(), *query.words]
    terms = [Term((word,)) for word in marks_and_words]
    all_counts, status = vocabulary([(term,) for term in terms])
    mark_counts = all_counts[: len(MARKS)]
    word_counts = all_counts[len(MARKS) :]

    counts_by_language = zip(MARKS, mark_counts, strict=True)
    languages = [language for language, count in counts_by_language if count]
    if languages:
        query, word_counts = _with_stems(query, word_counts, languages, vocabulary)
    query = replace(query, note_counts=tuple(word_counts))

    counts_of_words = zip(query.words, word_counts, strict=True)
    missing = [word for word, count in counts_of_words if not count]
    if missing or query.beginnings:
        query = _with_substitutes(query, missing, vocabulary)
    return query, status


def _with_stems(
    query: Query,
    counts: Sequence[int],
    languages: Collection[str],
    vocabulary: Vocabulary,
) -> tuple[Query, Sequence[int]]:
    """Return the query with the useful stems of its words, and the note count of each word.

    `counts` are the numbers of notes that contain each word as it is spelled. The returned counts
    are the numbers of notes that contain any of its forms. The result may have fewer words, and
    then as many counts.
    """
    counts_as_spelled = dict(zip(query.words, counts, strict=True))
    query = _in_languages(query, languages)
    forms_of_words = [query.forms_of(word) for word in query.words]
    counts_of_forms, _ = vocabulary(forms_of_words)

    query = _without_useless_stems(query, counts_as_spelled, counts_of_forms)
    query = replace(query, stem_pairs=_stem_pairs(query, languages))
    return query, counts_of_forms


def _in_languages(query: Query, languages: Collection[str]) -> Query:
    """Return the query with the stems of its words, without the stop words of `languages`.

    If all its words are stop words, they stay. `excluded_forms` get the stems of excluded words.
    """
    stop_words = find_stop_words(query.words, languages)
    words = [word for word in query.words if word not in stop_words]
    if not words:
        words = list(query.words)

    forms = {word: _stem_terms((word,), languages) for word in words}
    pairs = [pair for pair in query.pairs if not stop_words.issuperset(pair)]

    excluded_forms: list[str] = []
    for word in query.excluded:
        excluded_forms += _stems(word.lower(), languages)

    return replace(
        query,
        words=tuple(words),
        pairs=tuple(pairs),
        forms=forms,
        excluded_forms=tuple(excluded_forms),
    )


def _without_useless_stems(
    query: Query,
    counts_as_spelled: Mapping[str, int],
    counts_of_forms: Sequence[int],
) -> Query:
    """Return the query without the stems that add no note to those that contain the word itself.

    Such stems would only favour the notes of their language.
    """
    useful_forms: dict[str, tuple[Term, ...]] = {}
    for word, count in zip(query.words, counts_of_forms, strict=True):
        if count > counts_as_spelled[word]:
            useful_forms[word] = query.forms[word]
    return replace(query, forms=useful_forms)


def _stem_pairs(query: Query, languages: Collection[str]) -> tuple[Term, ...]:
    """Return the stems of each pair of which at least one word has a useful stem.

    The pairs are neighbours among `query.words`, where stop words and repeats are left out. A pair
    with a word that has no stem, such as a number, has none.
    """
    stem_pairs: list[Term] = []
    for pair in pairwise(query.words):
        has_useful_stem = not query.forms.keys().isdisjoint(pair)
        if has_useful_stem:
            stem_pairs += _stem_terms(pair, languages)
    return tuple(stem_pairs)


def _stem_terms(
    words: tuple[str, ...],
    languages: Collection[str],
) -> tuple[Term, ...]:
    """Return one term per language with the stems of all `words`; none if a word has no stem."""
    stems_of_words = [_stems(word, languages) for word in words]
    # A word without stems ends this at once; other words have one stem per language.
    stems_by_language = zip(*stems_of_words, strict=False)
    return tuple(Term(stems, stem_of=words) for stems in stems_by_language)


def _stems(word: str, languages: Collection[str]) -> tuple[str, ...]:
    """Return the stem of a word in each language, in their order.

    Returns none for a word with anything but letters, such as `v2`, or in a script without spaces.
    """
    if not word.isalpha() or is_unspaced(word):
        return ()
    return tuple(stem(word, language) for language in languages)


def _with_substitutes(
    query: Query,
    missing: Sequence[str],
    vocabulary: Vocabulary,
) -> Query:
    """Return the query with what to search for in place of the words that no note contains.

    `missing` are these words. Also adds the beginnings that were typed with a `*`. Sets `absent` to
    the missing words for which nothing else is searched for, and adds to `notice` at most one
    sentence on characters and one on the unfinished word.
    """
    forms = dict(query.forms)
    for word in query.beginnings:
        stems = forms.get(word, ())
        beginning = Term((word,), beginning=True)
        forms[word] = (*stems, beginning)

    characters = _characters_of_missing(query, missing, vocabulary)
    completions = _completions_of_unfinished(query, missing, vocabulary)
    forms |= characters
    forms |= completions

    notices = [query.notice] if query.notice else []
    # Where no note contains any of a word's characters, `characters` has no terms for it.
    by_characters = [word for word, terms in characters.items() if terms]
    notices += [
        f'No note contains "{word}"; its characters were searched for.'
        for word in by_characters[:1]
    ]
    notices += [
        f'No note contains "{word}"; words that begin with it were searched for.'
        for word in completions
    ]

    # The characters of a word replace a beginning that was typed, even if there are none.
    substituted = {*query.beginnings, *completions}
    substituted -= characters.keys()
    substituted |= set(by_characters)
    absent = [word for word in missing if word not in substituted]

    return replace(
        query,
        forms=forms,
        notice=" ".join(notices),
        absent=tuple(absent),
    )


def _characters_of_missing(
    query: Query,
    missing: Sequence[str],
    vocabulary: Vocabulary,
) -> dict[str, tuple[Term, ...]]:
    """Return for each word in a script without spaces those of its characters that notes contain.

    The tuple of a word is empty if no note contains any of them. There is no word in the result if
    a note contains one of the query's words in such a script: then that word is enough.
    """
    unspaced = [word for word in query.words if is_unspaced(word)]
    if not set(unspaced) <= set(missing):
        return {}
    characters_of_words: dict[str, tuple[Term, ...]] = {}
    for word in unspaced:
        characters = [Term((character,)) for character in word]
        characters_of_words[word] = _terms_in_notes(characters, vocabulary)
    return characters_of_words


def _completions_of_unfinished(
    query: Query,
    missing: Sequence[str],
    vocabulary: Vocabulary,
) -> dict[str, tuple[Term, ...]]:
    """Return the unfinished word with a term for the words that begin with it.

    The result is empty if a note contains the word itself, if none contains a word that begins with
    it, if it is too short, was typed with a `*`, or is in a script without spaces, and if no word
    is unfinished.
    """
    word = query.unfinished_word
    is_candidate = (
        word in missing
        and word not in query.beginnings
        and not is_unspaced(word)
        and len(word) >= _MIN_BEGINNING
    )
    if not is_candidate:
        return {}

    beginning = Term((word,), beginning=True)
    terms = _terms_in_notes([beginning], vocabulary)
    if not terms:
        return {}
    return {word: terms}


def _terms_in_notes(
    terms: Sequence[Term],
    vocabulary: Vocabulary,
) -> tuple[Term, ...]:
    """Return those terms that at least one note contains."""
    groups = [(term,) for term in terms]
    counts, _ = vocabulary(groups)
    counted_terms = zip(terms, counts, strict=True)
    return tuple(term for term, count in counted_terms if count)
