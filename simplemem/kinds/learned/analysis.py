"""What entries show when they are compared: what belongs together, what cannot all be right, and who would win.

Compared are the vectors that the index has of them, else their words; nothing is embedded for it and no model is asked.
Contradictions are told by three rules, each pair labelled with its own (capabilities.md §3.5): *slot*, one subject with two
values; *polarity*, the same words once affirmed and once denied; *duplicate?*, alike but of different confidence. Which
of two is true, only a reader can say.
"""

from __future__ import annotations

import math
import re
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from simplemem.errors import TooLong
from simplemem.kinds.learned import counts
from simplemem.kinds.learned.counts import EntryFinding, Patterns
from simplemem.kinds.learned.entry import LEARNED, KnowledgeEntry, entry_of_note, plain, read_entry
from simplemem.kinds.learned.knowledge import NEVER, Reads, knowledge_of
from simplemem.memory import Filter
from simplemem.note.sentences import Sentence, disagree, sentences
from simplemem.note.words import STOP_WORDS, content_words, words_in_order

if TYPE_CHECKING:
    from simplemem.memory import Listed
    from simplemem.store import EnhancedStore

Rule = Literal["slot", "polarity", "duplicate?"]
_RULES: Final[tuple[Rule, ...]] = ("slot", "polarity", "duplicate?")
_MOST: Final = 20_000  # entries that are compared with each other
_MOST_ALIKE: Final = 40  # sentences of one form: more are a form that is filled in again and again
_PAGE: Final = 1000
_BUCKETS: Final = 1024  # of words, where there are no vectors
_LABEL_WORDS: Final = 4
_NEGATIONS: Final = frozenset("not never no cannot without avoid don't nicht kein keine nie jamais nunca".split())
_SHOULD: Final = frozenset("always should must shall please prefer we you i".split())
_CONTRACTED: Final = re.compile(r"\b(?:ca|wo|[a-z]+)n['’]t\b", re.IGNORECASE)
_IS: Final = r"(?:is|are|was|were|=|:|equals|defaults? to|(?:is|are) set to|must be|should be)"
# `the A of B is V`, `B's A is V`, `the default A is V`, `A defaults to V`, `use V for A`: forms that leave little doubt.
_SLOTS: Final = (
    re.compile(
        r"(?:we |you |always |please |should |must |decided to )*(?:use|using|chose|prefer|adopt|go with|switch to) "
        r"(?P<v>[^,;:()]{1,60}?) (?P<a>(?:for|as|when|in) [^,;:()]{3,80})"
    ),
    re.compile(rf"(?:the |our |its )?(?P<a>[\w .`/-]{{2,60}}? (?:of|for|in) [\w .`/'-]{{2,60}}?) {_IS} (?P<v>.+)"),
    re.compile(rf"(?P<a>[\w .`/-]{{2,60}}?['’]s [\w .`/-]{{2,60}}?) {_IS} (?P<v>.+)"),
    re.compile(
        rf"(?:the |our )?(?P<a>(?:default|maximum|minimum|current|preferred|main|only) [\w .`/-]{{2,60}}?) {_IS} (?P<v>.+)"
    ),
    re.compile(r"(?P<a>[\w .`/-]{2,60}?) (?:defaults? to|(?:is|are) set to|listens on) (?P<v>.+)"),
)
_REASON: Final = re.compile(r",? (?:because|since|so that) .*")
_STOPPING: Final = re.compile(
    r"\s(?:because|since|so that|which|where|but|and|or|instead|rather|unless|if)\b.*|[,;:(].*"
)


class Contradiction(NamedTuple):
    """Two entries that disagree: by which rule, and the words of each that do. `similarity` is theirs as a whole."""

    rule: Rule
    one: KnowledgeEntry
    other: KnowledgeEntry
    said: str
    instead: str
    similarity: float
    about: str = ""


class Verdict(NamedTuple):
    """A contradiction with the entry that would win, and why."""

    contradiction: Contradiction
    winner: KnowledgeEntry
    loser: KnowledgeEntry
    why: str


class Theme(NamedTuple):
    """Some entries that belong together, the one in the middle first, and words that are theirs more than the others'."""

    members: tuple[KnowledgeEntry, ...]
    words: tuple[str, ...]


class TagSuggestion(NamedTuple):
    """A tag, and the entries that lack it; `is_known` when the vault has it already."""

    tag: str
    entries: tuple[KnowledgeEntry, ...]
    having: int
    of: int
    is_known: bool


# -- alike


class Similarity:
    """How alike some entries are, by a vector of each; one without a vector is like none."""

    def __init__(self, vectors: Sequence[bytes]) -> None:
        width = max(map(len, vectors), default=0)
        self._known = [k for k, vector in enumerate(vectors) if len(vector) == width and any(vector)]
        self._vectors = {k: memoryview(vectors[k]).cast("b", [1, width]) for k in self._known}
        self._all, self._width = b"".join(vectors[k] for k in self._known), width
        self._pairs: dict[float, dict[tuple[int, int], float]] = {}

    def of(self, one: int, other: int) -> float:
        import simsimd

        if one not in self._vectors or other not in self._vectors:
            return 0.0
        found: Any = simsimd.cdist(self._vectors[one], self._vectors[other], "cosine")
        return _share(1 - memoryview(found).cast("B").cast("d")[0])

    def pairs(self, least: float) -> dict[tuple[int, int], float]:
        """All pairs that are at least so near, each once."""
        if least not in self._pairs:
            self._pairs[least] = dict(self._near(least))
        return self._pairs[least]

    def _near(self, least: float) -> Iterator[tuple[tuple[int, int], float]]:
        import simsimd

        farthest = 1 - least + 1e-6
        for at, one in enumerate(self._known[:-1]):
            rest = memoryview(self._all)[(at + 1) * self._width :]
            found: Any = simsimd.cdist(
                self._vectors[one], rest.cast("b", [len(rest) // self._width, self._width]), "cosine"
            )
            row = memoryview(found).cast("B").cast("d")
            if min(row) <= farthest:
                for k, far in enumerate(row, at + 1):
                    if far <= farthest:
                        yield (one, self._known[k]), _share(1 - far)


def _share(similarity: float) -> float:
    return round(max(0.0, min(1.0, similarity)), 4)


def _mean(passages: Sequence[bytes]) -> bytes:
    """The vector of a note: that of its one passage, or what its passages have in common."""
    if len(passages) < 2:
        return passages[0] if passages else b""
    sums = [0.0] * len(passages[0])
    for vector in (array("b", each) for each in passages if len(each) == len(sums)):
        length = math.sqrt(sum(number * number for number in vector)) or 1.0
        sums = [total + number / length for total, number in zip(sums, vector, strict=True)]
    return _as_bytes(sums)


def _by_words(entries: Sequence[KnowledgeEntry]) -> list[bytes]:
    """Vectors of words, weighed by how few entries have them."""
    said = [Counter(content_words(words_in_order(entry.text))) for entry in entries]
    having = Counter(word for words in said for word in words)
    vectors = []
    for words in said:
        numbers = [0.0] * _BUCKETS
        for word, times in words.items():
            rare = math.log(1 + len(entries) / having[word])
            numbers[zlib.crc32(word.encode()) % _BUCKETS] += (1 + math.log(times)) * rare
        vectors.append(_as_bytes(numbers))
    return vectors


def _as_bytes(numbers: Sequence[float]) -> bytes:
    most = max(map(abs, numbers), default=0.0) or 1.0
    return array("b", [round(127 * number / most) for number in numbers]).tobytes()


# -- contradictions


class _Statement(NamedTuple):
    """A sentence of an entry with what it can be compared by."""

    entry: int
    sentence: Sentence
    claim: frozenset[str]
    is_denied: bool
    value: frozenset[str]


def contradictions(
    entries: Sequence[KnowledgeEntry],
    similarity: Similarity,
    *,
    threshold: float = 0.85,
    least_delta: float = 0.1,
    same_type_only: bool = False,
) -> list[Contradiction]:
    """Every pair that disagrees, told once by the strongest rule. What is superseded, or says itself that it supersedes or
    contradicts the other, takes no part."""
    found: dict[tuple[int, int], Contradiction] = {}
    for rule, a, b, about in _disagreeing(entries):
        first, second = sorted((a, b), key=lambda each: each.entry)
        pair = first.entry, second.entry
        one, other = entries[pair[0]], entries[pair[1]]
        if pair not in found and not (same_type_only and one.type != other.type) and not _are_settled(one, other):
            said = first.sentence.text, second.sentence.text
            found[pair] = Contradiction(rule, one, other, *said, similarity.of(*pair), about)
    for pair, score in similarity.pairs(threshold).items():
        one, other = entries[pair[0]], entries[pair[1]]
        if pair in found or one.is_superseded or other.is_superseded or (same_type_only and one.type != other.type):
            continue
        if one.confidence is None or other.confidence is None or _links(one, other) or _links(other, one):
            continue
        if abs(one.confidence - other.confidence) >= least_delta - 1e-9:
            words = [f"{entry.headline} (confidence {entry.confidence:g})" for entry in (one, other)]
            found[pair] = Contradiction("duplicate?", one, other, words[0], words[1], score)
    return sorted(
        found.values(), key=lambda each: (_RULES.index(each.rule), -each.similarity, each.one.name, each.other.name)
    )


def _disagreeing(entries: Sequence[KnowledgeEntry]) -> Iterator[tuple[Rule, _Statement, _Statement, str]]:
    """Pairs of sentences, in the order of the rules: those of one subject, of one frame, of one claim."""
    by_subject: dict[object, list[_Statement]] = defaultdict(list)
    by_frame: dict[object, list[_Statement]] = defaultdict(list)
    by_claim: dict[object, list[_Statement]] = defaultdict(list)
    for number, entry in enumerate(entries):
        for sentence in () if entry.is_superseded else sentences(plain(entry.text)):
            words = words_in_order(_CONTRACTED.sub(" not ", sentence.text))
            denied = sum(word in _NEGATIONS for word in words) % 2 == 1
            claim = frozenset(words) - _NEGATIONS - STOP_WORDS - _SHOULD
            subject, value = _slot(sentence.text)
            said = _Statement(number, sentence, claim, denied, value)
            if subject:
                by_subject[subject].append(said)
            by_frame[sentence.frame].append(said)
            if len(claim) > 2:
                by_claim[claim].append(said)
    # What a note is called tells two subjects apart; an entry is called by what it says.
    abouts = ["" if entry.is_own else entry.name for entry in entries]
    for a, b in _pairs(by_subject):
        if (
            not a.value <= b.value
            and not b.value <= a.value
            and 2 * len(a.value & b.value) <= min(len(a.value), len(b.value))
        ):
            yield "slot", a, b, " ".join(sorted(a.claim & b.claim))
    for a, b in _pairs(by_frame):
        if disagree(a.sentence, b.sentence, abouts[a.entry], abouts[b.entry]):
            rule: Rule = "polarity" if a.sentence.values == b.sentence.values else "slot"
            yield rule, a, b, " ".join(a.sentence.frame)
    for a, b in _pairs(by_claim):
        if a.is_denied != b.is_denied:
            yield "polarity", a, b, " ".join(sorted(a.claim))


def _pairs(groups: Mapping[object, Sequence[_Statement]]) -> Iterator[tuple[_Statement, _Statement]]:
    for group in groups.values():
        if 1 < len(group) <= _MOST_ALIKE:
            yield from ((a, b) for a, b in combinations(group, 2) if a.entry != b.entry)


def _slot(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a sentence says the value of, and which; nothing where it is no such form."""
    said = _REASON.sub("", " ".join(text.replace("*", "").replace("`", "").split()).lower()).rstrip(".!… ")
    for form in _SLOTS if not said.endswith("?") else ():
        if (found := form.fullmatch(said)) is not None:
            subject = frozenset(words_in_order(re.sub("['’]s ", " ", found["a"]))) - STOP_WORDS
            value = frozenset(words_in_order(_STOPPING.sub("", found["v"]))) - STOP_WORDS
            is_denied = _NEGATIONS & {*words_in_order(_CONTRACTED.sub(" not ", found["v"]))}
            if subject and 0 < len(value) <= 5 and not is_denied:
                return subject, value
    return frozenset(), frozenset()


def _links(one: KnowledgeEntry, other: KnowledgeEntry) -> list[str]:
    """The words of the relations that lead from one entry to another."""
    names = (other.name.casefold(), other.name.casefold().rsplit("/", 1)[-1], other.id.casefold())
    return [tie.relationship for tie in one.ties if tie.target.removesuffix(".md").casefold() in names]


def _are_settled(one: KnowledgeEntry, other: KnowledgeEntry) -> bool:
    """Whether one says of the other that it supersedes or contradicts it."""
    said = (*_links(one, other), *_links(other, one))
    return any(word.casefold().startswith(("supersed", "contradict", "replace")) for word in said)


def verdicts(found: Sequence[Contradiction], is_by_hand: Callable[[KnowledgeEntry], bool]) -> list[Verdict]:
    """For each contradiction who wins, in this order: edited by a person, verified, newer, surer. An entry that lost takes
    no part any more, and what nothing decides between is left out."""
    lost: set[str] = set()
    decided = []
    for each in found:
        if each.one.id in lost or each.other.id in lost:
            continue
        tests: tuple[tuple[str, Callable[[KnowledgeEntry], Any]], ...] = (
            ("a person edited it", is_by_hand),
            ("it is verified", lambda entry: entry.verified),
            ("it is newer", lambda entry: entry.modified[:19].replace(" ", "T")),
            ("it has the higher confidence", lambda entry: entry.confidence or 0.0),
        )
        for why, test in tests:
            a, b = test(each.one), test(each.other)
            if a != b:
                winner, loser = (each.one, each.other) if a > b else (each.other, each.one)
                decided.append(Verdict(each, winner, loser, why))
                lost.add(loser.id)
                break
    return decided


# -- themes


def themes(
    entries: Sequence[KnowledgeEntry],
    near: Mapping[tuple[int, int], float],
    reads: Mapping[str, Reads],
    *,
    least: int = 2,
    most: int | None = 10,
) -> list[Theme]:
    """Groups of entries that are `near`, grown around the most read, then the surest, then the newest; the largest first.
    No entry is in two of them."""
    around: dict[int, dict[int, float]] = defaultdict(dict)
    for (one, other), score in near.items():
        if not entries[one].is_superseded and not entries[other].is_superseded:
            around[one][other] = around[other][one] = score
    spread = Counter(word for entry in entries for word in _words(entry))
    free = {k for k, entry in enumerate(entries) if not entry.is_superseded}
    found = []

    def weight(k: int) -> tuple[int, float, str, str]:
        entry = entries[k]
        return reads.get(entry.id, NEVER).count, entry.confidence or 0.0, entry.created, entry.name

    for seed in sorted(free, key=weight, reverse=True):
        close = [k for k in around[seed] if k in free] if seed in free else []
        if seed in free and len(close) + 1 >= least:
            free -= {seed, *close}
            close.sort(key=lambda k: (-around[seed][k], entries[k].name))
            members = tuple(entries[k] for k in (seed, *close))
            found.append(Theme(members, _own_words(members, spread)))
    found.sort(key=lambda theme: (-len(theme.members), theme.members[0].name))
    return found[:most]


def _words(entry: KnowledgeEntry) -> set[str]:
    """The words of an entry that may say what it is about."""
    words = content_words(words_in_order(plain(entry.text[:20_000])))
    return {word for word in words if len(word) > 2 and not any(map(str.isdigit, word))}


def _own_words(members: Sequence[KnowledgeEntry], spread: Mapping[str, int]) -> tuple[str, ...]:
    """Words that at least half of the members have, those that few others have first."""
    having = Counter(word for entry in members for word in _words(entry))
    shared = (word for word, count in having.items() if count >= max(2, len(members) / 2))
    return tuple(sorted(shared, key=lambda word: (spread[word] / having[word], -having[word], word))[:_LABEL_WORDS])


def suggested_tags(found: Sequence[Theme], known: Mapping[str, int]) -> list[TagSuggestion]:
    """Tags for themes of three and more: what most members are tagged and some are not, and words that most of them have
    and none is tagged with. `known` are the tags of the vault."""
    spelled = {tag.casefold(): tag for tag in known}
    suggested = []
    for members, words in found:
        if len(members) < 3:
            continue
        tags = [{tag.casefold() for tag in entry.tags} for entry in members]
        states = ("status", "state", "todo", "done")  # how far something is, is nobody else's
        tagged = Counter(tag for some in tags for tag in some if tag.split("/")[0] not in states)
        wanted = [tag for tag, count in tagged.most_common() if len(members) / 2 <= count < len(members)]
        have = {part for tag in tagged for part in tag.split("/")}
        new = [word for word in words if word not in have and word.rstrip("s") not in have]
        for tag in (wanted + sorted(new, key=lambda word: word not in spelled))[:3]:
            lacking = [entry for entry, some in zip(members, tags, strict=True) if tag not in some]
            having = len(members) - len(lacking)
            if some_entries := tuple(entry for entry in lacking if having or tag in _words(entry)):
                suggested.append(
                    TagSuggestion(spelled.get(tag, tag), some_entries, having, len(members), tag in spelled)
                )
    return suggested


# -- all of it


@dataclass(frozen=True)
class Analysis:
    """Some entries, and what can be said of them. Everything is found when it is asked for."""

    store: EnhancedStore
    entries: tuple[KnowledgeEntry, ...]
    what: str  # "entries", or which notes

    @cached_property
    def reads(self) -> Mapping[str, Reads]:
        """How often each was read, by its id."""
        return knowledge_of(self.store).reads()

    @cached_property
    def similarity(self) -> Similarity:
        """How alike each is to each."""
        if len(self.entries) > _MOST:
            raise TooLong(
                f"{len(self.entries):,} entries are too many to be compared; at most {_MOST:,} are",
                hint="Choose a folder or a type.",
            )
        if not self._vectors:
            return Similarity(_by_words(self.entries))
        return Similarity([_mean(self._vectors.get(entry.path, ())) for entry in self.entries])

    @cached_property
    def _vectors(self) -> Mapping[str, Sequence[bytes]]:
        return self.store.bench.vectors(entry.path for entry in self.entries)

    @cached_property
    def method(self) -> str:
        """By what they are compared."""
        if not self._vectors:
            return "words (there are no vectors)"
        unknown = sum(entry.path not in self._vectors for entry in self.entries)
        missing = f"; {unknown} of {len(self.entries)} have no vectors yet" if unknown else ""
        return f"embedding ({self.store.bench.embedder}){missing}"

    @cached_property
    def _solved(self) -> set[str]:
        return counts.solved_errors(self.entries, knowledge_of(self.store).leading_to(self.entries, self.entries))

    def _is_solved(self, entry: KnowledgeEntry) -> bool:
        return entry.id in self._solved

    def contradictions(
        self, threshold: float = 0.85, least_delta: float = 0.1, *, same_type_only: bool = False
    ) -> list[Contradiction]:
        """What cannot all be right."""
        return contradictions(
            self.entries, self.similarity, threshold=threshold, least_delta=least_delta, same_type_only=same_type_only
        )

    def verdicts(self, found: Sequence[Contradiction]) -> list[Verdict]:
        """Who would win each contradiction."""
        return verdicts(found, lambda entry: self.store.bench.is_by_hand(entry.path, entry.sha256))

    def clusters(self, threshold: float = 0.75, least: int = 2, most: int | None = 10) -> list[Theme]:
        """What belongs together."""
        return themes(self.entries, self.similarity.pairs(threshold), self.reads, least=least, most=most)

    def suggestions(self, threshold: float = 0.75) -> list[TagSuggestion]:
        """Tags that what belongs together lacks."""
        return suggested_tags(self.clusters(threshold, 3, None), self.store.tags())

    def patterns(self, today: date | None = None) -> Patterns:
        """What recurs."""
        return counts.patterns(self.entries, today or date.today())  # noqa: DTZ011  (local, as notes are)

    def insights(self, threshold: float = 0.75, least: int = 2) -> list[EntryFinding]:
        """What they show together."""
        return counts.insights(self.entries, self.clusters(threshold, least, None), self.reads, self._is_solved)

    def antipatterns(self) -> list[EntryFinding]:
        """Habits that make them worth less."""
        return counts.antipatterns(self.entries, self._is_solved)


def analysis_of(store: EnhancedStore, notes: str = "") -> Analysis:
    """The entries of a store, or ordinary notes in the same way: those of a folder (`projects/`), of a type
    (`type:decision`), or all (`*`)."""
    wanted = notes.strip()
    if not wanted:
        return Analysis(store, tuple(knowledge_of(store).entries()), "entries")
    kind = wanted[5:].strip() if wanted.casefold().startswith("type:") else ""
    folder = "" if kind or wanted in ("*", "/", "all") else wanted.rstrip("/*") + "/"
    listed: dict[str, Listed] = {}
    cursor: str | None = ""
    while cursor is not None:
        page = store.list(filter=Filter(type=kind, prefix=folder), sort="name", limit=_PAGE, cursor=cursor or None)
        listed |= {each.path: each for each in page.items}
        cursor = page.next_cursor
    entries = []
    for read in store.bench.read(sorted(listed)):
        each = listed[read.path]
        if LEARNED.holds(read.path, "" if each.type == "memory" else each.type):
            entries.append(replace(read_entry(read.path, read.text, read.sha256), is_own=True))
        else:
            entries.append(entry_of_note(read.path, read.text, read.sha256, each.created or "", each.modified))
    named = f"notes of type {kind}" if kind else f"notes in {folder}" if folder else "notes of the vault"
    return Analysis(store, tuple(entries), named)
