"""What a sentence says about what: a subject and a value, or a claim that is made or denied. Pure, and by rules alone.

Only forms that leave little doubt are read: `the A of B is V`, `B's A is V`, `A defaults to V`, `use V for P`. Everything
else is no slot: two sentences are never said to contradict each other for what was guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from simplemem.kinds.learned.entries import plain
from simplemem.note.words import STOP_WORDS, words_in_order
from simplemem.search.alike import Sentence, sentences

_LEAST_WORDS: Final = 3  # that carry meaning: fewer say too little to be denied
_MOST_VALUE: Final = 5  # words of a value; more is an explanation
_OVERLAP: Final = 0.8

_NEGATIONS: Final = frozenset("not never no cannot without avoid don't nicht kein keine nie jamais nunca".split())
_OPPOSITES: Final = (
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("enables", "disables"),
    ("allow", "forbid"),
    ("allowed", "forbidden"),
    ("on", "off"),
    ("true", "false"),
    ("safe", "unsafe"),
    ("supported", "unsupported"),
    ("required", "optional"),
    ("required", "unnecessary"),
    ("works", "fails"),
    ("possible", "impossible"),
    ("open", "closed"),
    ("increase", "decrease"),
    ("increases", "decreases"),
    ("faster", "slower"),
    ("more", "less"),
    ("include", "exclude"),
    ("synchronous", "asynchronous"),
    ("valid", "invalid"),
    ("stable", "unstable"),
    ("public", "private"),
)
_POLE: Final = {word: (one, k) for one, other in reversed(_OPPOSITES) for k, word in enumerate((one, other))}
_CONTRACTED: Final = re.compile(r"\b(?:ca|wo|[a-z]+)n['’]t\b", re.IGNORECASE)
_SHOULD: Final = frozenset("always should must shall please prefer we you i".split())

_IS: Final = r"(?:is|are|was|were|=|:|equals|defaults to|default to|is set to|are set to|must be|should be|will be)"
_OF: Final = re.compile(
    rf"(?:the |our |its )?(?P<a>[\w .`/-]{{2,60}}?) (?:of|for|in) (?P<b>[\w .`/'-]{{2,60}}?) {_IS} (?P<v>.+)"
)
_OWNED: Final = re.compile(rf"(?P<b>[\w .`/-]{{2,60}}?)['’]s (?P<a>[\w .`/-]{{2,60}}?) {_IS} (?P<v>.+)")
_NAMED: Final = re.compile(
    r"(?P<a>(?:the |our )?(?:default|maximum|minimum|current|preferred|official|primary|main|only) [\w .`/-]{2,60}?) "
    rf"{_IS} (?P<v>.+)"
)
_DEFAULTS: Final = re.compile(
    r"(?P<a>[\w .`/-]{2,60}?) (?:defaults? to|(?:is|are) set to|runs on port|listens on) (?P<v>.+)"
)
_CHOSEN: Final = re.compile(
    r"(?:we |you |always |please |should |must |decided to |will )*(?:use|using|choose|chose|prefer|adopt|pick|picked|"
    r"go with|switch to|migrate to|standardi[sz]e on) (?P<v>[^,;:()]{1,60}?) (?P<p>for|as|to|when|in) (?P<a>[^,;:()]{3,80})"
)
_REASON: Final = re.compile(r",? (?:because|since|so that) .*", re.IGNORECASE)
_PICKING: Final = ("choose ", "pick ")
_STOPPING: Final = re.compile(
    r"\s(?:because|since|so that|which|who|where|but|and|or|instead|rather|unless|until|if)\b.*|[,;:(].*"
)


class Slot(NamedTuple):
    """What a sentence fills in: of what, with which value. The keys are compared, the value is shown."""

    subject: frozenset[str]
    value: frozenset[str]
    shown: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with what it can be compared by."""

    sentence: Sentence
    slot: Slot | None
    claim: frozenset[str]  # its words that carry meaning, opposites under one name
    denied: bool


@lru_cache(maxsize=20_000)
def statements(text: str) -> tuple[Statement, ...]:
    """The sentences of a text that say enough to be compared."""
    return tuple(_statements(text))


def _statements(text: str) -> Iterator[Statement]:
    for sentence in sentences(plain(text)):
        claim, denied = _claim(sentence.text)
        slot = _slot(sentence.text)
        if slot is not None or len(claim) >= _LEAST_WORDS:
            yield Statement(sentence, slot, claim, denied)


def _claim(text: str) -> tuple[frozenset[str], bool]:
    """What is claimed, and whether it is denied: every negation and every opposite turns it around."""
    words = words_in_order(_CONTRACTED.sub(" not ", text))
    denied = False
    kept = set()
    for word in words:
        if word in _NEGATIONS:
            denied = not denied
        elif word in _POLE:
            name, pole = _POLE[word]
            denied ^= bool(pole)
            kept.add(name)
        elif word not in STOP_WORDS and word not in _SHOULD:
            kept.add(word)
    return frozenset(kept), denied


def deny(one: Statement, other: Statement) -> bool:
    """Whether one says what the other denies: nearly the same words, the opposite sense."""
    if one.denied == other.denied or min(len(one.claim), len(other.claim)) < _LEAST_WORDS:
        return False
    shared = len(one.claim & other.claim)
    return shared >= _OVERLAP * len(one.claim | other.claim)


def _slot(text: str) -> Slot | None:
    plain_text = _REASON.sub("", " ".join(text.replace("*", "").replace("`", "").split())).rstrip(".!?… ").lower()
    if not plain_text or text.rstrip().endswith("?"):
        return None
    for form in (_CHOSEN, _DEFAULTS, _NAMED, _OWNED, _OF):
        found = form.fullmatch(plain_text)
        if found is None:
            continue
        parts = found.groupdict()
        value = _STOPPING.sub("", parts["v"]).strip()
        subject = _meaning(f"{parts.get('a') or ''} {parts.get('b') or ''}")
        if form is _CHOSEN:
            if parts["p"] == "to" and plain_text.startswith(_PICKING):
                continue  # "choose the file to import" says what to click, not what was decided
            subject = subject | {f"{parts['p']}:"} if subject else subject
        filled = _meaning(value)
        if subject and 0 < len(filled) <= _MOST_VALUE and not _is_denied(value):
            return Slot(subject, filled, value)
    return None


def _meaning(text: str) -> frozenset[str]:
    return frozenset(word for word in words_in_order(text) if word not in STOP_WORDS and word not in _NEGATIONS)


def _is_denied(text: str) -> bool:
    return any(word in _NEGATIONS for word in words_in_order(_CONTRACTED.sub(" not ", text)))


def differ(one: Slot, other: Slot) -> bool:
    """Whether two slots are one and are filled with what cannot both be: neither value says only more of the other."""
    if one.subject != other.subject or one.value <= other.value or other.value <= one.value:
        return False
    return len(one.value & other.value) * 2 <= min(len(one.value), len(other.value))
