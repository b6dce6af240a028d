"""What the user states in conversations, and the facts that are kept of it.

Rules read only what the user says of their own: no question, condition, quotation or word of others. In doubt they read
nothing. A fact is the note `facts/<key>.md`: its value, the sentence in which it was stated, and its history with links
to the turns. `find_facts` finds the facts that a question asks for. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Final, NamedTuple

from simplemem.features.answers import FactOut
from simplemem.features.changes import Change, StatedSubject, read_change, subject_of
from simplemem.features.conversations.patterns import PATTERNS, RULES, SYNONYMS, WORDS
from simplemem.features.conversations.topic import EPOCH
from simplemem.features.fact import Fact, Slot
from simplemem.features.graph.page import spell, unspelled
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import Header, read_header
from simplemem.note.names import base_name
from simplemem.note.passages import add_line, section_span
from simplemem.note.properties import remove_property, set_property
from simplemem.note.sentences import sentence_spans
from simplemem.note.stems import stem
from simplemem.note.words import STOP_WORDS, shorten
from simplemem.store import Read

_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*>.*?$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»", re.MULTILINE | re.DOTALL
)
_QUOTE: Final = re.compile(r"^> ?([^\r\n]*)", re.MULTILINE)
_VERSION: Final = re.compile(r"^- (.*?) · (\S+) · \[\[([^\[\]\n]*)\]\]", re.MULTILINE)
_MAX_SENTENCE: Final = 500  # characters
_MAX_QUOTE: Final = 300  # characters
_MAX_KEY: Final = 80  # characters
_VALUE_WORDS: Final = 5  # of a value that may become part of a key
_UNKNOWN_CONFIDENCE: Final = 0.8  # of a note that states none
_PROPERTIES: Final = (
    "key",
    "value",
    "category",
    "confidence",
    "valid_from",
    "block_id",
    "decided_by",
)
_OTHERS: Final = ("her", "his", "its", "their")
_GENERIC: Final = WORDS["generic"]
_IN_EVERY_KEY: Final = WORDS["key"]


class StatedFact(NamedTuple):
    """What a sentence states. `decided_by` names the rule, the agent or the model that read it."""

    key: str
    value: str
    category: str
    sentence: str
    decided_by: str
    confidence: float


class FactVersion(NamedTuple):
    """A line of a fact's history: when a value was stated, and a link to the turn."""

    at: datetime
    value: str
    link: str

    def __str__(self) -> str:
        return f"- {spell(self.value)} · {format_moment(self.at)} · [[{self.link}]]"


def stated_at(fact: Fact) -> datetime:
    """Return when a fact was stated last."""
    return fact.valid_from or EPOCH


def stated_subject(fact: Fact) -> StatedSubject:
    """Return what a fact is about, as later turns are compared with it."""
    subject = subject_of(fact.statement, fact.key.replace("_", " "), fact.value)
    return StatedSubject(subject, stated_at(fact).year)


def fact_out(fact: Fact | StatedFact, block_id: str) -> FactOut:
    """Return a fact as clients know it."""
    return FactOut(key=fact.key, value=fact.value, block_id=block_id, confidence=fact.confidence)


def stated_sentences(message: str) -> Iterator[str]:
    """Yield the sentences in which the user states something of their own."""
    text = _QUOTED.sub(_blank_out, message)
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) <= _MAX_SENTENCE and not PATTERNS["not_stated"].search(sentence):
            yield sentence


def _blank_out(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def stated_changes(message: str) -> dict[str, Change]:
    """Return the sentences in which the user states that something changed, with what."""
    changes = {sentence: read_change(sentence) for sentence in stated_sentences(message)}
    return {sentence: change for sentence, change in changes.items() if change is not None}


def read_stated_facts(message: str) -> list[StatedFact]:
    """Return the facts that the user states in a message, the last one of each key."""
    reader = _FactReader()
    for sentence, (category, confidence, key_form, rule) in product(
        stated_sentences(message), RULES["statements"]
    ):
        for match in rule.finditer(sentence):
            reader.read(match, sentence, category, confidence, key_form)
    return list(reader.facts.values())


class _FactReader:
    """Collects the facts of one message. Guards what "her" and "the new one" refer to."""

    def __init__(self) -> None:
        self.facts: dict[str, StatedFact] = {}
        self._person = ""  # who was named last, for "her phone number is"
        self._credential = ""  # what was named last, for "the new one is"

    def read(
        self,
        match: re.Match[str],
        sentence: str,
        category: str,
        confidence: float,
        key_form: str,
    ) -> None:
        """Add the fact of a match of a rule, if its words name one."""
        groups = {name: text for name, text in match.groupdict().items() if text}
        parts = defaultdict[str, str](str, groups)
        value = parts["value"].strip().rstrip(".,;:!)")
        parts["start"] = " ".join(value.split()[:_VALUE_WORDS])
        if category == "name":
            self._person = parts["of"]
        elif parts["whose"].lower() in _OTHERS and not parts["of"]:
            if not self._person:
                return
            parts["of"] = self._person

        name = key_form.format_map(parts)
        if category == "secret":
            name = name or self._credential
            self._credential = name
        key = key_of(name)
        if key and value:
            self.facts[key] = StatedFact(
                key, value, category, sentence, f"rule:{category}", confidence
            )


def fact_stated_by(who: str, name: str, value: str, sentence: str, confidence: float) -> StatedFact:
    """Return a fact that an agent or a model read. Its category is "secret" if the name is a credential's."""
    key = key_of(name)
    category = who.partition(":")[0]
    if PATTERNS["credential"].search(key.replace("_", " ")):
        category = "secret"
    return StatedFact(key, value, category, sentence, who, confidence)


def key_of(text: str) -> str:
    """Return a key in snake case, without words that every key could have."""
    plain = re.sub(r"['’]s\b", "", text.lower()).replace("_", " ")
    words = [word for word in re.findall(r"\w+", plain) if word not in _IN_EVERY_KEY]
    return "_".join(words)[:_MAX_KEY].strip("_")


def read_conversation_fact(read: Read) -> Fact:
    """Return the fact that a note is, with what a person changed in it."""
    note, fields = CONVERSATION_FACT.parse(read)
    versions = [version for _, version in fact_versions(note.text)]
    last = versions[-1] if versions else FactVersion(EPOCH, "", "")
    name = base_name(read.path)
    key = key_of(note.text_property("key") or note.text_property("title") or name)
    value = unspelled(note.text_property("value") or last.value)
    quote = _QUOTE.search(note.text, note.header.body_start)
    disputed = parse_moment(note.text_property("disputed") or "")
    return Fact(
        id=name,
        statement=quote[1].strip() if quote else "",
        scope="default",
        slot=Slot("", key.replace("_", " "), value),
        confidence=_read_confidence(note.header),
        valid_from=parse_moment(note.text_property("valid_from") or "") or last.at,
        status="active" if disputed is None else "disputed",
        disputed=disputed,
        disputed_by=_block_of_link(note.text_property("disputed_by") or ""),
        block_id=note.text_property("block_id") or "",
        text=note.text,
        **fields,
    )


def _read_confidence(header: Header) -> float:
    confidence = header.get("confidence")
    if isinstance(confidence, (int, float)) and 0 < confidence <= 1:
        return float(confidence)
    return _UNKNOWN_CONFIDENCE


def _block_of_link(link: str) -> str:
    """Return the block id of a link to a block, without the caret."""
    return link.strip("[] ").rpartition("#^")[2]


CONVERSATION_FACT: Final[NoteType[Fact]] = NoteType(
    "facts", "fact", read=read_conversation_fact, sort_key=lambda fact: fact.path
)


def fact_versions(text: str) -> list[tuple[int, FactVersion]]:
    """Return the history of a fact, with the offset of each line."""
    span = section_span(text, "History")
    if span is None:
        return []

    versions = list[tuple[int, FactVersion]]()
    for line in _VERSION.finditer(text, *span):
        value, time, link = line.groups()
        at = parse_moment(time)
        if at:
            versions.append((line.start(), FactVersion(at, unspelled(value), link)))
    return versions


def new_fact(stated: StatedFact, version: FactVersion, block_id: str, now: str) -> str:
    """Return the text of a new fact's note."""
    properties: dict[str, object] = {"title": stated.key.replace("_", " ")}
    properties |= _properties(stated, version, block_id)
    body = f"{_render_quote(stated)}\n\n## History\n\n{version}\n"
    return CONVERSATION_FACT.render(properties, body, now)


def add_version(
    text: str, fact: Fact, stated: StatedFact, version: FactVersion, block_id: str
) -> str:
    """Return a fact's note with a version in its place of the history.

    The latest version is the value. It settles an earlier dispute. A version that the history has changes nothing.
    """
    versions = fact_versions(text)
    if any(_sort_key(known) == _sort_key(version) for _, known in versions):
        return text

    text = add_line(text, "History", str(version), _find_line(text, versions, version))
    if _sort_key(version) < (stated_at(fact), fact.value):
        return text

    body_start = read_header(text).body_start
    body = _QUOTE.sub(lambda _: _render_quote(stated), text[body_start:], count=1)
    text = text[:body_start] + body
    for key, value in _properties(stated, version, block_id).items():
        text = set_property(text, key, value)
    if fact.disputed is not None and version.at >= fact.disputed:
        text = remove_property(text, "disputed")
        text = remove_property(text, "disputed_by")
    return text


def _sort_key(version: FactVersion) -> tuple[datetime, str]:
    return version.at, version.value


def _find_line(
    text: str, versions: Sequence[tuple[int, FactVersion]], version: FactVersion
) -> int | None:
    """Return the offset at which a version belongs, None for the end of the section."""
    for offset, known in versions:
        if _sort_key(known) > _sort_key(version):
            return offset
    if not versions:
        return None
    last_offset, _ = versions[-1]
    return text.find("\n", last_offset) + 1 or None


def _properties(stated: StatedFact, version: FactVersion, block_id: str) -> dict[str, object]:
    fields = stated._asdict()
    fields["value"] = spell(stated.value)
    fields["valid_from"] = format_moment(version.at)
    fields["block_id"] = block_id
    properties: dict[str, object] = {name: fields[name] for name in _PROPERTIES}
    if stated.category == "secret":
        properties["private"] = True
    return properties


def _render_quote(stated: StatedFact) -> str:
    return f"> {spell(shorten(stated.sentence, _MAX_QUOTE))}"


def find_facts(question: str, facts: Sequence[Fact], labels: Mapping[str, str]) -> list[Fact]:
    """Return the facts that a question asks for, best first; none if it asks for what nobody stated.

    `labels` are those of the topics, by id. docs/decisions.md has the reasons.
    """
    phrases = [_stems(phrase) - _ASKING for phrase in _PHRASE_END.split(question.lower())]
    asked = set[str]().union(*phrases)

    found = list[tuple[float, datetime, str, Fact]]()
    for fact in facts:
        key = _stems(fact.key.replace("_", " "))
        about = key | _stems(fact.statement) | _stems(labels.get(fact.block_id, ""))
        if _asks_for(asked, phrases, key, about):
            overlap = len(asked & key) / len(asked | key)
            found.append((overlap, stated_at(fact), fact.path, fact))
    found.sort(key=lambda row: row[:3], reverse=True)
    return [fact for *_, fact in found]


def _asks_for(asked: set[str], phrases: Sequence[set[str]], key: set[str], about: set[str]) -> bool:
    """Return whether a question asks for the fact with this key, which is about these words."""
    special = key - _GENERIC
    if not asked & key or not special <= asked:
        return False

    own = asked - _GENERIC
    foreign = own - about
    if special:
        is_meant = bool(own) and len(foreign) * 2 <= len(own)
    else:
        is_meant = not foreign
    if not is_meant:
        return False

    asked_kinds = asked & _KINDS
    if asked_kinds and not asked_kinds & key:
        return False
    return not any(phrase & key and phrase & foreign for phrase in phrases)


def _stems(text: str) -> set[str]:
    """Return the stems of the words of a text, one for words that mean the same, without stop words."""
    words = re.findall(r"(?<!['’])\b[\w-]+", text.lower())
    return {stem(SYNONYMS.get(word, word), "") for word in words if word not in STOP_WORDS}


_ASKING: Final = _stems(" ".join(WORDS["asking"]))
_KINDS: Final = _stems(" ".join(WORDS["kind"]))
# The end of a noun with all that belongs to it.
_PHRASE_END: Final = re.compile(rf"[^\w\s'’-]+|\b(?:{'|'.join(STOP_WORDS - _IN_EVERY_KEY)})\b")
