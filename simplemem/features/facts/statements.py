"""Find statements in texts, and read whether a text asks to forget one. By rules. Pure."""

from __future__ import annotations

import re
from typing import Final

from simplemem.features.facts.language import LANGUAGES, MAX_READ, Language, plain_text
from simplemem.features.facts.reading import read_statement
from simplemem.note.sentences import sentence_spans

_MAX_CHARACTERS: Final = 400  # of a text whose lines or sentences are statements
_MAX_STATEMENTS: Final = 5  # of a text; one with more is a document
_WORD_CHARACTER: Final = re.compile(r"\w")
_ENDS_IN_DATE: Final = re.compile(
    r"(?<!\d)\d{1,2}\.\d{1,2}\.$|\b(?:am|zum|vom|bis|ab|den|dem) \d{1,2}\.$"
)
_CODE_OR_QUOTATION: Final = re.compile(
    r"""
    ^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)   # a block of code, perhaps without its end
    | ^[ \t]*[>#|].*?$                   # a line of a quotation, heading or table
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


def statements_in(text: str) -> list[str] | None:
    """Return the statements of a short text: its sentences, each once, in their order.

    Return None if the text has more than 400 characters, no statement or more than 5: callers store
    such a text as a document. Blanks in a statement become single spaces.
    """
    if len(text) > _MAX_CHARACTERS:
        return None

    statements: dict[str, None] = {}
    for line in text.splitlines():
        for start, stop in _spans_in_line(line):
            statement = " ".join(line[start:stop].split())
            if _WORD_CHARACTER.search(statement):
                statements[statement] = None

    if not 0 < len(statements) <= _MAX_STATEMENTS:
        return None
    return list(statements)


def _spans_in_line(line: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of a line, of which there is at least one.

    The full stop behind the month of a German date, as in "am 19.2. um 9", ends no sentence.
    """
    spans: list[tuple[int, int]] = []
    for start, stop in sentence_spans(line) or [(0, len(line))]:
        if spans and line[start].islower():
            previous_start, previous_stop = spans[-1]
            if _ENDS_IN_DATE.search(line, previous_start, previous_stop):
                spans[-1] = (previous_start, stop)
                continue
        spans.append((start, stop))
    return spans


def own_statements_in(text: str) -> list[str]:
    """Return the sentences of a text whose author states something about himself or herself.

    That is the value of a slot, or what he or she likes. Each sentence is returned once, in the
    order of the text; there may be none. Code, quotations, headings, tables and sentences of 300
    characters or more are skipped.
    """
    prose = _CODE_OR_QUOTATION.sub("", text)
    sentences: dict[str, None] = {}
    for start, stop in sentence_spans(prose):
        sentence = " ".join(prose[start:stop].split())
        if len(sentence) < MAX_READ and _is_own_statement(sentence):
            sentences[sentence] = None
    return list(sentences)


def _is_own_statement(sentence: str) -> bool:
    """Return whether a sentence is in the first person, and states a slot or a liking."""
    plain = plain_text(sentence)
    language = _language_of_first_person(plain)
    if language is None:
        return False

    reading = read_statement(sentence)
    if reading.is_hedged:
        return False
    return reading.slot is not None or language.matches("liking", plain)


def _language_of_first_person(plain: str) -> Language | None:
    """Return the first language in which a text begins in the first person, None if in none."""
    for language in LANGUAGES:
        if language.patterns["first_person"].match(plain):
            return language

    return None


def statement_to_forget(text: str) -> str | None:
    """Return the statement that a text asks to forget, None if it does not ask to forget one.

    It is in small letters, as `plain_text` returns it.
    """
    plain = plain_text(text)
    for language in LANGUAGES:
        request = language.patterns["forget"].fullmatch(plain)
        if request is not None:
            return request[1]

    return None
