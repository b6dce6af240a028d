"""Find statements in texts, and read whether a text asks to forget one. By rules. Pure."""

from __future__ import annotations

import re
from typing import Final

from simplemem.features.facts.language import LANGUAGES, MAX_READ, plain_text
from simplemem.features.facts.reading import read_statement
from simplemem.note.sentences import sentence_spans

_MAX_CHARACTERS: Final = 400  # of a text whose lines or sentences are statements
_MAX_STATEMENTS: Final = 5  # of a text; one with more is a document
_WORD_CHARACTER: Final = re.compile(r"\w")
_CODE_OR_QUOTATION: Final = re.compile(
    r"""
    ^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)   # a block of code, perhaps without its end
    | ^[ \t]*[>#|].*?$                   # a line of a quotation, heading or table
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


def statements_in(text: str) -> list[str] | None:
    """Return the statements of a short text, word for word and each once.

    Return None if the text is long or has no or many statements: it is a document.
    """
    if len(text) > _MAX_CHARACTERS:
        return None

    statements: dict[str, None] = {}
    for line in text.splitlines():
        whole_line = [(0, len(line))]
        for start, stop in sentence_spans(line) or whole_line:
            statement = " ".join(line[start:stop].split())
            if _WORD_CHARACTER.search(statement):
                statements[statement] = None

    if not 0 < len(statements) <= _MAX_STATEMENTS:
        return None
    return list(statements)


def own_statements_in(text: str) -> list[str]:
    """Return the sentences of a text whose author states something about himself or herself.

    That is the value of a slot, or what he or she likes. Each sentence is returned once. Code,
    quotations, headings and tables are skipped.
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
    for language in LANGUAGES:
        if language.patterns["first_person"].match(plain):
            break
    else:
        return False

    reading = read_statement(sentence)
    if reading.hedged:
        return False
    return reading.slot is not None or language.matches("liking", plain)


def statement_to_forget(text: str) -> str | None:
    """Return the statement that a text asks to forget, None if it asks for nothing.

    It is in the form of `plain_text`.
    """
    plain = plain_text(text)
    for language in LANGUAGES:
        request = language.patterns["forget"].fullmatch(plain)
        if request is not None:
            return request[1]

    return None
