"""Leave out the sentences of a message that state nothing to remember.

Beside small talk these are questions without a question mark, words of others, conditions, sarcasm,
and requests to the assistant. A sentence that goes on with one of these, and names nothing that
somebody could look up, is left out too. `words/unstated/` has the patterns, one file per language.
In doubt a sentence is kept. Pure, but for reading those files when the first sentence is judged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from simplemem.features.changes.vague import read_vague_change
from simplemem.features.facts.small_talk import is_small_talk
from simplemem.features.facts.statements import statement_to_forget
from simplemem.features.pattern_pieces import compile_pattern
from simplemem.note.small_letters import in_small_letters

_FOLDER: Final = Path(__file__).parent / "words" / "unstated"
_LANGUAGE_CODES: Final = ("en", "es", "de", "fr")
_MAX_CHARACTERS: Final = 400  # a longer sentence is taken for a statement
_KINDS: Final = ("question", "condition", "sarcasm", "chatter")
_NAMING_KINDS: Final = ("anchor", "lasting", "authorities", "instruction")
_NUMBER: Final = re.compile(r"\d")
_NAME: Final = re.compile(r"(?<=[\w,;:] )[A-ZÀ-Þ][a-zà-ÿ]")


def stated_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the sentences of one message that state something, in their order.

    Of a message that asks to forget something only that request is returned: the rest of it would
    keep the matter alive. Of several sentences of which none names anything, none is returned.
    """
    requests = [sentence for sentence in sentences if topic_to_forget(sentence)]
    if requests:
        return requests

    are_empty = [_is_empty(sentence) for sentence in sentences]
    stated: list[str] = []
    follows_unstated = False
    for sentence, is_empty in zip(sentences, are_empty, strict=True):
        if is_empty:
            follows_unstated = follows_unstated or is_unstated(sentence)
        elif follows_unstated and _goes_on(sentence):
            continue
        else:
            stated.append(sentence)

    return [] if _is_only_chat(sentences, stated) else stated


def _is_only_chat(sentences: Sequence[str], stated: Sequence[str]) -> bool:
    """Return whether several sentences are small talk, and others of which none names anything.

    `stated` are those that state something. A sentence that asks, mocks or requests makes the
    message no mere chat.
    """
    small_talk_count = sum(map(is_small_talk, sentences))
    if len(sentences) < 2 or len(stated) + small_talk_count != len(sentences):
        return False
    return all(_names_nothing(sentence) for sentence in stated)


def _is_empty(sentence: str) -> bool:
    """Return whether a sentence is small talk or states nothing.

    A request to forget something is not empty, and neither is an instruction from now on, although
    it may be a question: "Can you stop giving me recipes with aubergine?"
    """
    if topic_to_forget(sentence):
        return False
    text = _plain(sentence)
    if any(patterns["instruction"].search(text) for patterns in unstated_patterns()):
        return False
    return is_small_talk(sentence) or is_unstated(sentence)


def topic_to_forget(sentence: str) -> str:
    """Return the topic about which a sentence asks to forget all that was said, "" for none.

    It is in small letters, as in "callum and the course".
    """
    text = _plain(sentence[:_MAX_CHARACTERS])
    for patterns in unstated_patterns():
        match = patterns["forget"].search(text)
        if match is not None:
            return next(filter(None, match.groups()), "").strip()
    return ""


def is_statement(sentence: str) -> bool:
    """Return whether a sentence is neither small talk nor a request to forget something."""
    return not is_small_talk(sentence) and statement_to_forget(sentence) is None


def is_own(sentence: str) -> bool:
    """Return whether a sentence of a message states something of its author's own.

    Small talk does not. A fact with a key is read only in such a sentence. This is stricter than
    `is_unstated`.
    """
    patterns_of_languages = unstated_patterns()
    not_own = [patterns["not_own"] for patterns in patterns_of_languages if "not_own" in patterns]
    if any(pattern.search(sentence) for pattern in not_own):
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
    return any(_is_unstated_in(patterns, text) for patterns in unstated_patterns())


def _is_unstated_in(patterns: Mapping[str, re.Pattern[str]], text: str) -> bool:
    """Return whether a text is such a sentence by the patterns of one language."""
    if any(patterns[kind].search(text) for kind in _KINDS):
        return True
    if patterns["hearsay"].search(text) is None:
        return False
    return patterns["authorities"].search(text) is None


def _goes_on(sentence: str) -> bool:
    """Return whether a sentence goes on with one before it, and names nothing by itself."""
    text = _plain(sentence)
    if _NUMBER.search(sentence):
        return False
    if any(patterns["goes_on"].search(text) for patterns in unstated_patterns()):
        return True
    if _NAME.search(sentence):
        return False
    return not any(patterns["anchor"].search(text) for patterns in unstated_patterns())


def _names_nothing(sentence: str) -> bool:
    """Return whether a sentence tells of a moment that nobody will look up.

    It has no number, no name, no word such as "my", "never" or "is", and tells no change.
    """
    text = _plain(sentence)
    if _NUMBER.search(sentence) or _NAME.search(sentence) or read_vague_change(sentence):
        return False
    for patterns in unstated_patterns():
        if any(patterns[kind].search(text) for kind in _NAMING_KINDS):
            return False
    return True


def _plain(sentence: str) -> str:
    """Return a sentence in small letters, with straight apostrophes, without its full stop."""
    return in_small_letters(sentence).rstrip(".! ")


@lru_cache(maxsize=1)
def unstated_patterns() -> tuple[Mapping[str, re.Pattern[str]], ...]:
    """Return the patterns of each language by name, those of English first."""
    return tuple(_load(code) for code in _LANGUAGE_CODES)


def _load(code: str) -> Mapping[str, re.Pattern[str]]:
    """Return the patterns of a language by name. Raise re.error if one is not valid."""
    table = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    return {name: compile_pattern(source, pieces={}) for name, source in table.items()}
