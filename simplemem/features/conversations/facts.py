"""What a person states, by rules that say nothing when in doubt: only what somebody says of their own, no question,
condition, quotation or word of others. A fact as the note `facts/<key>.md`: its value, the sentence it was said in, and
its history with links to the turns; and which facts a question asks for. Pure."""

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
from simplemem.note.header import read_header
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
_TELLING: Final = re.compile(r"^- (.*?) · (\S+) · \[\[([^\[\]\n]*)\]\]", re.MULTILINE)
_MOST_SENTENCE, _MOST_QUOTE, _MOST_KEY = 500, 300, 80  # characters
_NAMES: Final = (
    "key",
    "value",
    "category",
    "confidence",
    "valid_from",
    "block_id",
    "decided_by",
)  # of properties
_UNKNOWN_CONFIDENCE: Final = 0.8  # of a note that states none
_OTHERS: Final = ("her", "his", "its", "their")
_GENERIC, _IN_EVERY_KEY = WORDS["generic"], WORDS["key"]


class StatedFact(NamedTuple):
    """What a sentence states. `decided_by` names the rule, the agent or the model that read it."""

    key: str
    value: str
    category: str
    sentence: str
    decided_by: str
    confidence: float


class FactVersion(NamedTuple):
    """A line of a fact's history: when something was said, what, and a link to where."""

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
    """A fact as clients know it."""
    return {
        "key": fact.key,
        "value": fact.value,
        "block_id": block_id,
        "confidence": fact.confidence,
    }


def stated_sentences(message: str) -> Iterator[str]:
    """The sentences in which a person states something of their own."""
    text = _QUOTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), message)
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) <= _MOST_SENTENCE and not PATTERNS["not_stated"].search(sentence):
            yield sentence


def stated_changes(message: str) -> dict[str, Change]:
    """Return the sentences in which a person states that something changed, with what."""
    changes = {sentence: read_change(sentence) for sentence in stated_sentences(message)}
    return {sentence: change for sentence, change in changes.items() if change is not None}


def read_stated_facts(message: str) -> list[StatedFact]:
    """The facts in a user's message."""
    found: dict[str, StatedFact] = {}
    subject = credential = (
        ""  # of whom and of what was told last, for "her phone number is" and "the new one is"
    )
    for sentence, (category, confidence, about, rule) in product(
        stated_sentences(message), RULES["statements"]
    ):
        for match in rule.finditer(sentence):
            said = defaultdict(
                str, {name: text for name, text in match.groupdict().items() if text}
            )
            value = said["value"].strip().rstrip(".,;:!)")
            said["start"] = " ".join(value.split()[:5])
            if category == "name":
                subject = said["of"]
            elif said["whose"].lower() in _OTHERS and not said["of"]:
                if not subject:
                    continue
                said["of"] = subject
            name = about.format_map(said)
            if category == "secret":
                name = credential = name or credential
            if (key := key_of(name)) and value:
                found[key] = StatedFact(
                    key, value, category, sentence, f"rule:{category}", confidence
                )
    return list(found.values())


def fact_stated_by(who: str, name: str, value: str, sentence: str, confidence: float) -> StatedFact:
    """What no rule read, but an agent or a model: what opens something is for nobody else."""
    key = key_of(name)
    category = (
        "secret" if PATTERNS["credential"].search(key.replace("_", " ")) else who.partition(":")[0]
    )
    return StatedFact(key, value, category, sentence, who, confidence)


def key_of(text: str) -> str:
    """A key in snake case, without words that every key could have."""
    said = re.findall(r"\w+", re.sub(r"['’]s\b", "", text.lower()).replace("_", " "))
    return "_".join(word for word in said if word not in _IN_EVERY_KEY)[:_MOST_KEY].strip("_")


def read_conversation_fact(read: Read) -> Fact:
    """Return the fact that a note is, with what a person changed in it."""
    note, fields = CONVERSATION_FACT.parse(read)
    versions = [version for _, version in fact_versions(note.text)]
    last = versions[-1] if versions else FactVersion(EPOCH, "", "")
    key = key_of(note.text_property("key") or note.text_property("title") or base_name(read.path))
    value = unspelled(note.text_property("value") or last.value)
    confidence = note.header.get("confidence")
    is_confidence = isinstance(confidence, (int, float)) and 0 < confidence <= 1
    quote = _QUOTE.search(note.text, note.header.body_start)
    disputed = parse_moment(note.text_property("disputed") or "")
    return Fact(
        id=base_name(read.path),
        statement=quote[1].strip() if quote else "",
        scope="default",
        slot=Slot("", key.replace("_", " "), value),
        confidence=float(confidence) if is_confidence else _UNKNOWN_CONFIDENCE,
        valid_from=parse_moment(note.text_property("valid_from") or "") or last.at,
        status="active" if disputed is None else "disputed",
        disputed=disputed,
        disputed_by=_block_of_link(note.text_property("disputed_by") or ""),
        block_id=note.text_property("block_id") or "",
        text=note.text,
        **fields,
    )


def _block_of_link(link: str) -> str:
    """Return the block id of a link to a block, without the caret."""
    return link.strip("[] ").rpartition("#^")[2]


CONVERSATION_FACT: Final[NoteType[Fact]] = NoteType(
    "facts", "fact", read=read_conversation_fact, sort_key=lambda fact: fact.path
)


def fact_versions(text: str) -> list[tuple[int, FactVersion]]:
    """The lines of a history with where they begin."""
    lines = _TELLING.finditer(text, *(section_span(text, "History") or (0, 0)))
    return [
        (line.start(), FactVersion(at, unspelled(line[1]), line[3]))
        for line in lines
        if (at := parse_moment(line[2]))
    ]


def new_fact(said: StatedFact, told: FactVersion, block_id: str, now: str) -> str:
    """The text of a new fact's note."""
    properties = {"title": said.key.replace("_", " ")} | _properties(said, told, block_id)
    return CONVERSATION_FACT.render(properties, f"{_quote(said)}\n\n## History\n\n{told}\n", now)


def add_version(text: str, fact: Fact, said: StatedFact, told: FactVersion, block_id: str) -> str:
    """The note with one telling more, where it belongs in time; what was said last is the value."""
    lines = fact_versions(text)
    if any(each[:2] == told[:2] for _, each in lines):
        return text
    later = [at for at, each in lines if each[:2] > told[:2]]
    behind = [text.find("\n", at) + 1 or None for at, _ in lines[-1:]]
    text = add_line(text, "History", str(told), next(iter([*later, *behind]), None))
    if told[:2] >= (stated_at(fact), fact.value):
        start = read_header(text).body_start
        text = text[:start] + _QUOTE.sub(lambda _: _quote(said), text[start:], count=1)
        for key, value in _properties(said, told, block_id).items():
            text = set_property(text, key, value)
        if fact.disputed is not None and told.at >= fact.disputed:
            text = remove_property(remove_property(text, "disputed"), "disputed_by")
    return text


def _properties(said: StatedFact, told: FactVersion, block_id: str) -> dict[str, object]:
    about = said._asdict() | {
        "value": spell(said.value),
        "valid_from": format_moment(told.at),
        "block_id": block_id,
    }
    return {name: about[name] for name in _NAMES} | (
        {"private": True} if said.category == "secret" else {}
    )


def _quote(said: StatedFact) -> str:
    return f"> {spell(shorten(said.sentence, _MOST_QUOTE))}"


def find_facts(question: str, facts: Sequence[Fact], labels: Mapping[str, str]) -> list[Fact]:
    """The facts that a question asks for, best first; what was never said is not answered (docs/decisions.md)."""
    phrases = [_parts(phrase) - _ASKING for phrase in _BREAK.split(question.lower())]
    asked = set[str]().union(*phrases)
    own, kinds, found = asked - _GENERIC, asked & _KINDS, []
    for fact in facts:
        key = _parts(fact.key.replace("_", " "))
        about = key | _parts(fact.statement) | _parts(labels.get(fact.block_id, ""))
        special, foreign = key - _GENERIC, own - about
        is_meant = bool(own) and len(foreign) * 2 <= len(own) if special else not foreign
        is_other = (kinds and not kinds & key) or any(
            phrase & key and phrase & foreign for phrase in phrases
        )
        if asked & key and special <= asked and is_meant and not is_other:
            found.append((len(asked & key) / len(asked | key), stated_at(fact), fact.path, fact))
    return [each[-1] for each in sorted(found, key=lambda each: each[:3], reverse=True)]


def _parts(text: str) -> set[str]:
    said = (
        word for word in re.findall(r"(?<!['’])\b[\w-]+", text.lower()) if word not in STOP_WORDS
    )
    return {stem(SYNONYMS.get(word, word), "") for word in said}


_ASKING, _KINDS = (_parts(" ".join(WORDS[name])) for name in ("asking", "kind"))
# Of a question, where one noun with all that belongs to it ends.
_BREAK: Final = re.compile(rf"[^\w\s'’-]+|\b(?:{'|'.join(STOP_WORDS - _IN_EVERY_KEY)})\b")
