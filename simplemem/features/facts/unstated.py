"""Leave out the sentences of a message that state nothing to remember.

Beside small talk these are questions without a question mark, words of others, conditions, sarcasm,
and requests to the assistant. A sentence that goes on with one of these, and names nothing that
somebody could look up, is left out too. `words/unstated/` has the patterns, one file per language.
In doubt a sentence is kept. Pure, but for reading those files when the first sentence is judged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from simplemem.features.changes.vague import read_vague_change
from simplemem.features.facts.small_talk import is_small_talk
from simplemem.features.facts.statements import statement_to_forget
from simplemem.features.pattern_pieces import compile_pattern
from simplemem.note.small_letters import in_small_letters

_FOLDER: Final = Path(__file__).parent / "words" / "unstated"
_LANGUAGE_CODES: Final = ("en", "es", "de", "fr")
_MAX_CHARACTERS: Final = 400  # a longer sentence is taken for a statement
_NUMBER: Final = re.compile(r"\d")
_NAME: Final = re.compile(r"(?<=[\w,;:] )[A-ZÀ-Þ][a-zà-ÿ]")

_Kind = Literal["stated", "unstated", "small talk"]


@dataclass(frozen=True)
class UnstatedLanguage:
    """The patterns of what states nothing in one language, as its file has them.

    All but `not_own` match a sentence as `_plain` returns it.
    """

    question: re.Pattern[str]  # without its question mark
    condition: re.Pattern[str]
    sarcasm: re.Pattern[str]
    chatter: re.Pattern[str]  # the weather, moods, the assistant itself, requests
    hearsay: re.Pattern[str]  # words of others
    authorities: re.Pattern[str]  # others whose words are true: "my doctor"
    instruction: re.Pattern[str]  # from now on, perhaps as a question: "can you always …"
    forget: re.Pattern[str]  # a request to forget; its groups are the topic
    goes_on: re.Pattern[str]  # the beginning of a sentence that goes on with another one
    anchor: re.Pattern[str]  # a word that tells something to look up: "my", "never"
    lasting: re.Pattern[str]  # what says how things are, and not only what happened
    not_own: re.Pattern[str] | None = None  # matches a sentence as it was written


def stated_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the sentences of one message that state something, in their order.

    Of a message that asks to forget something only that request is returned: the rest of it would
    keep the matter alive. Of several sentences of which none names anything, none is returned.
    """
    requests = [sentence for sentence in sentences if topic_to_forget(sentence)]
    if requests:
        return requests

    stated: list[str] = []
    follows_unstated = False
    for sentence in sentences:
        kind = _kind_of(sentence)
        if kind == "unstated":
            follows_unstated = True
        elif kind == "stated" and not (follows_unstated and _goes_on(sentence)):
            stated.append(sentence)
    return [] if _is_only_chat(sentences, stated) else stated


def _kind_of(sentence: str) -> _Kind:
    """Return whether a sentence states something, is unstated, or is small talk.

    An instruction from now on states something, although it may be a question: "Can you stop giving
    me recipes with aubergine?" The sentence is no request to forget something.
    """
    text = _plain(sentence)
    if any(language.instruction.search(text) for language in unstated_languages()):
        return "stated"
    if is_unstated(sentence):
        return "unstated"
    return "small talk" if is_small_talk(sentence) else "stated"


def _is_only_chat(sentences: Sequence[str], stated: Sequence[str]) -> bool:
    """Return whether several sentences are small talk, and others of which none names anything.

    `stated` are those that state something. A sentence that asks, mocks or requests makes the
    message no mere chat.
    """
    beside_small_talk = [sentence for sentence in sentences if not is_small_talk(sentence)]
    if len(sentences) < 2 or beside_small_talk != stated:
        return False
    return all(_names_nothing(sentence) for sentence in stated)


def topic_to_forget(sentence: str) -> str:
    """Return the topic about which a sentence asks to forget all that was said, "" for none.

    It is in small letters, as in "callum and the course".
    """
    text = _plain(sentence[:_MAX_CHARACTERS])
    for language in unstated_languages():
        request = language.forget.search(text)
        if request is not None:
            topics = [topic for topic in request.groups() if topic]
            return topics[0].strip()
    return ""


def is_statement(sentence: str) -> bool:
    """Return whether a sentence is neither small talk nor a request to forget something."""
    return not is_small_talk(sentence) and statement_to_forget(sentence) is None


def is_own(sentence: str) -> bool:
    """Return whether a sentence of a message states something of its author's own.

    Small talk does not. A fact with a key is read only in such a sentence. This is stricter than
    `is_unstated`.
    """
    for language in unstated_languages():
        if language.not_own is not None and language.not_own.search(sentence):
            return False
    return not is_small_talk(sentence)


def is_unstated(sentence: str) -> bool:
    """Return whether a sentence asks, supposes, mocks, requests, or has words of others.

    A request to forget something is no such sentence, and neither is one of more than 400
    characters.
    """
    if len(sentence) > _MAX_CHARACTERS or statement_to_forget(sentence):
        return False
    text = _plain(sentence)
    return any(_is_unstated_in(language, text) for language in unstated_languages())


def _is_unstated_in(language: UnstatedLanguage, text: str) -> bool:
    """Return whether a text is such a sentence by the patterns of one language."""
    for pattern in (language.question, language.condition, language.sarcasm, language.chatter):
        if pattern.search(text):
            return True
    is_hearsay = language.hearsay.search(text) is not None
    return is_hearsay and language.authorities.search(text) is None


def _goes_on(sentence: str) -> bool:
    """Return whether a sentence goes on with one before it, and names nothing by itself."""
    if _NUMBER.search(sentence):
        return False
    text = _plain(sentence)
    if any(language.goes_on.search(text) for language in unstated_languages()):
        return True
    if _NAME.search(sentence):
        return False
    return not any(language.anchor.search(text) for language in unstated_languages())


def _names_nothing(sentence: str) -> bool:
    """Return whether a sentence tells of a moment that nobody will look up.

    It has no number, no name, no word such as "my", "never" or "is", and tells no change.
    """
    if _NUMBER.search(sentence) or _NAME.search(sentence) or read_vague_change(sentence):
        return False
    text = _plain(sentence)
    return not any(_says_what_lasts(language, text) for language in unstated_languages())


def _says_what_lasts(language: UnstatedLanguage, text: str) -> bool:
    """Return whether a text says in a language what somebody may look up later."""
    patterns = (language.anchor, language.lasting, language.authorities, language.instruction)
    return any(pattern.search(text) for pattern in patterns)


def _plain(sentence: str) -> str:
    """Return a sentence in small letters, with straight apostrophes, without its full stop."""
    return in_small_letters(sentence).rstrip(".! ")


@cache
def unstated_languages() -> tuple[UnstatedLanguage, ...]:
    """Return the patterns of all languages, those of English first.

    Their files are read by the first call.
    """
    return tuple(_load(code) for code in _LANGUAGE_CODES)


def _load(code: str) -> UnstatedLanguage:
    """Return the patterns of a language.

    Raise TypeError or re.error if its file is not complete.
    """
    table = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    patterns: dict[str, re.Pattern[str]] = {}
    for name, source in table.items():
        patterns[name] = compile_pattern(source, pieces={})
    return UnstatedLanguage(**patterns)
