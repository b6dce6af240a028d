"""What entries show when they are counted and compared: contradictions, themes, habits; and all of them, exported. Each
finding names its entries and says no more than a count does. Compared are vectors of the index; no model is asked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simplemem.features.lessons import TYPES
from simplemem.features.lessons.entry import KnowledgeEntry, plain, read_entry
from simplemem.features.lessons.knowledge import NEVER, knowledge_of
from simplemem.models import Filter
from simplemem.note.sentences import Sentence, contradicts, sentences
from simplemem.note.words import STOP_WORDS, content_words, words_in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.store import EnhancedStore

Data = dict[str, Any]
_BLOCK: Final = 256  # entries that are compared with all others at once
_MOST_ALIKE: Final = 40  # sentences of one form: more are a form that is filled in again and again
_PRIORITIES: Final = ("critical", "high", "medium", "low")
_EMPHASIS: Final = frozenset(
    "always should must shall please prefer we you i the a an not never no do does".split()
)
# Forms that leave little doubt: `use V for A`, `A is set to V`, `the B of A is V`.
_CLAIM: Final = re.compile(
    r"(?:we |you |always |please |should |must |decided to )*(?:use|using|chose|prefer|adopt|go with|switch to) "
    r"(?P<v>.{1,60}?) (?P<a>(?:for|as|when|in) .{3,80})"
    r"|(?:the |our |its )?(?P<b>.{2,80}?) (?:set to|defaults? to|listens on|(?P<plain>is|=|must be|should be)) (?P<w>.+)"
)
_REASON: Final = re.compile(r"[,;]?\s\b(?:because|since|so that|instead|rather)\b.*")
# What is so in staging, on Safari or when it rains says nothing of elsewhere.
_QUALIFIER: Final = re.compile(
    r"[,;:(].*|\b(?:in|on|at|by|of|for|from|with|under|during|before|after|until|via|per|within|while|when|where|which"
    r"|if|unless|and|or|but)\s.*"
)
# Numbers that name (versions, steps, tickets, dates) tell two facts apart. One that measures follows such a verb.
_NAMES: Final = frozenset(
    """version release build step ticket issue pr bug task sprint phase stage week day quarter chapter section page part
    line row rule item room floor model revision commit id error code adr rfc migration episode level round run""".split()
)
_MEASURES: Final = re.compile(
    r"\b(?:is|are|was|were|be|=|equals?|has|have|had|takes?|took|costs?|weighs?|weighed|lasts?|lasted|needs?|needed"
    r"|holds?|listens|(?:set|limited|raised|lowered|defaults?) to)"
    r"(?: (?:about|around|exactly|only|at|on|to|of|up|most|least|a|than|more|less))*\W*$"
)
_PLAIN_NUMBER: Final = re.compile(
    r"(?!(?:19|20)\d\d\b)\d[\d ,_]*(?![\d.:/-]*\d)|\d+[.,]\d+(?=\s?[^\W\d])"
)
_NAMES_A_VALUE: Final = re.compile(r" (?:of|for|in) |['’]s |^(?:current|main|only) ")
_HAS_ONE_VALUE: Final = re.compile(r"(?:default|maximum|minimum|preferred) ")


class Contradiction(NamedTuple):
    """Two entries that disagree, who would win against whom, and why. The rule is *slot*, one subject with two values,
    *polarity*, the same words affirmed and denied, or *duplicate?*, alike but of different confidence."""

    data: Data
    verdict: tuple[KnowledgeEntry, KnowledgeEntry, str] | None


class Analysis:
    """Some entries of a store (`what` says which), and what can be said of them, found when it is asked for."""

    def __init__(
        self, store: EnhancedStore, entries: Sequence[KnowledgeEntry], what: str = "entries"
    ) -> None:
        self.store, self.entries, self.what = store, entries, what
        self.standing = [entry for entry in entries if not entry.is_superseded]
        self.knowledge = knowledge_of(store)
        self.reads = self.knowledge.reads()
        self._by_hand: dict[str, bool] = {}
        embedder = store.extension.embedder
        self.method = f"embedding ({embedder})" if embedder else "nothing (there are no vectors)"

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        """A row for each entry that holds; zeros, which are near to nothing, where there is no vector."""
        import numpy as np

        vectors = self.store.extension.vectors_of([entry.path for entry in self.standing])
        width = max(map(len, vectors.values()), default=1)
        rows = [vectors.get(entry.path) or [0.0] * width for entry in self.standing]
        return np.array(rows, np.float32).reshape(-1, width)

    def near(self, least: float) -> list[tuple[int, int]]:
        """All pairs of entries that hold and are at least so much alike, by their places."""
        import numpy as np

        found, vectors = list[tuple[int, int]](), self._vectors
        for start in range(0, len(vectors), _BLOCK):
            block = vectors[start : start + _BLOCK]
            is_near = block @ vectors[start:].T >= max(1e-9, least - 1e-6)
            own = is_near[
                :, : len(block)
            ]  # where each pair would be found twice, and each entry near itself
            own &= np.triu(np.ones_like(own), 1)
            pairs = np.argwhere(is_near) + start
            found += [(one, other) for one, other in pairs.tolist()]
        return found

    def contradictions(
        self, threshold: float = 0.85, least_delta: float = 0.1, *, same_type_only: bool = False
    ) -> list[Contradiction]:
        """Every pair of entries that disagree, told once; not two that are linked, as somebody looked at them."""
        told = sorted(self._disagreeing(), key=lambda each: each[0] == "polarity")
        for ends in self.near(threshold):
            one, other = (self.standing[end] for end in ends)
            a, b = one.confidence, other.confidence
            if (
                a is not None
                and b is not None
                and abs(a - b) >= least_delta - 1e-9
                and _is_part(one.text, other.text)
            ):
                said, instead = (
                    f"{one.headline} (confidence {a:g})",
                    f"{other.headline} (confidence {b:g})",
                )
                told.append(("duplicate?", ends, said, instead, ""))
        related = self.knowledge.leading_to(self.standing)
        seen = {
            frozenset((path, other.path)) for path, ties in related.items() for _, other in ties
        }
        found, lost = list[Contradiction](), set[str]()  # what lost takes no part any more
        for rule, ends, said, instead, about in told:
            one, other = (self.standing[end] for end in ends)
            paths = frozenset((one.path, other.path))
            if paths in seen or (same_type_only and one.type != other.type):
                continue
            seen.add(paths)
            verdict = None if lost & paths else self._verdict(one, other)
            data: Data = {
                "rule": rule,
                "one": brief(one) | {"said": said, "confidence": one.confidence},
            }
            data |= {
                "other": brief(other) | {"said": instead, "confidence": other.confidence},
                "about": about,
            }
            data["similarity"] = max(
                0.0, round(float(self._vectors[ends[0]] @ self._vectors[ends[1]]), 4)
            )
            if verdict:
                lost.add(verdict[1].path)
                data |= {"winner": verdict[0].id, "why": verdict[2]}
            found.append(Contradiction(data, verdict))
        return found

    def _verdict(
        self, one: KnowledgeEntry, other: KnowledgeEntry
    ) -> tuple[KnowledgeEntry, KnowledgeEntry, str] | None:
        """Who wins against whom and why: edited by a person, verified, newer, surer; None when nothing decides."""
        whys = (
            "the user edited it",
            "it is verified",
            "it is newer",
            "it has the higher confidence",
        )
        a, b = (
            (
                self._is_by_hand(e),
                e.verified,
                e.modified[:19].replace(" ", "T"),
                e.confidence or 0.0,
            )
            for e in (one, other)
        )
        why = next((why for why, this, that in zip(whys, a, b, strict=True) if this != that), "")
        return None if not why else (one, other, why) if a > b else (other, one, why)

    def _is_by_hand(self, entry: KnowledgeEntry) -> bool:
        """Whether a person gave an entry its text; the history is asked once for each, however many pairs it is in."""
        if entry.path not in self._by_hand:
            self._by_hand[entry.path] = self.store.extension.is_by_hand(entry.path, entry.sha256)
        return self._by_hand[entry.path]

    def _disagreeing(self) -> Iterator[tuple[str, tuple[int, int], str, str, str]]:
        """Pairs of sentences and what they are about: those that give a subject two values, and those of one frame."""
        groups: dict[tuple[bool, tuple[str, ...]], list[tuple[int, Sentence, frozenset[str]]]] = (
            defaultdict(list)
        )
        for number, entry in enumerate(self.standing):
            for each in sentences(plain(entry.text)):
                subject, value, qualifier = _slot(each)
                sentence = replace(
                    each, frame=tuple(word for word in each.frame if word not in _EMPHASIS)
                )
                groups[True, sentence.frame].append((number, sentence, value))
                if subject and 0 < len(value) <= 5:
                    groups[False, (*subject, "", *qualifier)].append((number, sentence, value))
        # What a note is called tells two subjects apart; an entry is called by what it says.
        names = ["" if entry.is_own else entry.name for entry in self.standing]
        for (is_frame, about), some in groups.items():
            for (a, one, this), (b, other, that) in combinations(
                some if len(some) <= _MOST_ALIKE else (), 2
            ):
                if is_frame:
                    differ = contradicts(one, other, names[a], names[b]) and _are_of_one(one, other)
                else:
                    differ = 2 * len(this & that) <= min(len(this), len(that))
                if differ and a != b:
                    rule = "polarity" if is_frame and one.values == other.values else "slot"
                    yield rule, (a, b), one.text, other.text, " ".join(filter(None, about))

    def superseded(self) -> list[Data]:
        """What no longer holds, the latest first, with what took its place."""
        named = {
            key: brief(each)
            for each in self.entries
            for key in (each.name.rsplit("/", 1)[-1], each.name)
        }
        gone = sorted(
            (each for each in self.entries if each.is_superseded),
            key=lambda each: each.superseded_at,
        )
        return [
            brief(each)
            | {
                "confidence": each.confidence,
                "at": each.superseded_at,
                "reason": each.superseded_reason,
            }
            | {"winner": named.get(each.superseded_by), "by": each.superseded_by}
            for each in reversed(gone)
        ]

    def themes(
        self, threshold: float = 0.75, least: int = 2
    ) -> list[tuple[list[str], list[KnowledgeEntry]]]:
        """Groups of near entries, with words that most have, grown around the most read, the surest, the newest."""
        around: dict[int, set[int]] = defaultdict(set)
        for one, other in self.near(threshold):
            around[one].add(other)
            around[other].add(one)
        entries, found = self.standing, []
        weight = [
            (self.reads.get(e.id, NEVER)[0], e.confidence or 0.0, e.created, e.name)
            for e in entries
        ]
        free = set(range(len(entries)))
        for seed in sorted(free, key=weight.__getitem__, reverse=True):
            close = sorted(free & around[seed])
            if seed in free and len(close) + 1 >= least:
                free -= {seed, *close}
                members = [entries[place] for place in (seed, *close)]
                words = [
                    word
                    for entry in members
                    for word in set(content_words(words_in_order(plain(entry.text))))
                ]
                having = sorted(Counter(words).items(), key=lambda each: (-each[1], each[0]))
                shared = [
                    word
                    for word, count in having
                    if count >= max(2, len(members) / 2) and len(word) > 2
                ]
                found.append((shared[:4], members))
        return sorted(found, key=lambda theme: -len(theme[1]))

    def clusters(self, threshold: float = 0.75, least: int = 2) -> list[Data]:
        """The themes as they are told."""
        themes = self.themes(threshold, least)
        return [
            {"words": words, "size": len(some), "entries": list(map(brief, some))}
            for words, some in themes
        ]

    def suggested_tags(self, threshold: float = 0.75) -> list[Data]:
        """Words that most of a theme of three and more have, as tags for those that lack them."""
        spelled, suggested = {tag.casefold(): tag for tag in self.store.tags()}, []
        for words, members in self.themes(threshold, 3):
            for tag in words:
                lacking = [
                    brief(entry) for entry in members if tag not in map(str.casefold, entry.tags)
                ]
                facts = {
                    "having": len(members) - len(lacking),
                    "of": len(members),
                    "entries": lacking,
                }
                suggested += (
                    [{"tag": spelled.get(tag, tag), "known": tag in spelled} | facts]
                    if lacking
                    else []
                )
        return suggested

    def stats(self) -> Data:
        """How much there is of what; confidence is high from 0.8 on, medium from 0.5 on."""
        reads, sure = self.reads, [e.confidence for e in self.entries if e.confidence is not None]
        often = sorted(
            (e for e in self.entries if e.id in reads), key=lambda e: (-reads[e.id][0], e.name)
        )
        high, low = sum(each >= 0.8 for each in sure), sum(each < 0.5 for each in sure)
        return {
            "total": len(self.entries),
            "by_type": dict(sorted(Counter(entry.type for entry in self.entries).items())),
            "by_confidence": {"high": high, "medium": len(sure) - high - low, "low": low},
            "verified": sum(entry.verified for entry in self.entries),
            "superseded": len(self.entries) - len(self.standing),
            "never_read": sum(entry.id not in reads for entry in self.entries),
            "most_accessed": [
                {"id": e.id, "says": e.headline, "count": reads[e.id][0], "last": reads[e.id][1]}
                for e in often[:5]
            ],
        }

    def patterns(self, today: date) -> Data:
        """What recurs, how much there is of what, and whether there is more of late."""
        days, kinds = (
            [entry.created[:10] for entry in self.entries],
            Counter(entry.type for entry in self.entries),
        )
        made = {
            span: sum(day > (today - timedelta(span)).isoformat() for day in days)
            for span in (7, 30, 60, 90)
        }
        lately, before = made[30], made.pop(60) - made[30]
        known = [
            (entry.type, entry.confidence) for entry in self.entries if entry.confidence is not None
        ]
        sure = {kind: [share for of, share in known if of == kind] for kind in sorted(kinds)}
        return {
            "recurring": [
                {
                    "type": some[0].type,
                    "says": some[0].headline,
                    "count": len(some),
                    "entries": list(map(brief, some)),
                }
                for some in sorted(
                    _alike(self.entries, 50), key=lambda some: (-len(some), some[0].name)
                )
            ],
            "types": dict(kinds.most_common()),
            "tags": dict(
                Counter(tag for entry in self.entries for tag in entry.tags).most_common(50)
            ),
            "lately": {str(days): count for days, count in made.items()},
            "before": before,
            "trend": "rising" if lately > before else "falling" if lately < before else "steady",
            "confidence": {
                kind: round(sum(each) / len(each), 3) for kind, each in sure.items() if each
            },
        }

    def insights(self, threshold: float = 0.75, least: int = 2) -> list[Data]:
        """What the entries that hold show, the most pressing first."""
        found = [each for each in self._habits() if each["kind"] not in ("untagged", "duplicates")]
        for words, members in self.themes(threshold, least):
            kind, priority = ("theme", "high") if len(members) >= 5 else ("group", "low")
            if sum(entry.type == "error" for entry in members) >= 3:
                kind, priority = "recurring error", "critical"
            says = f"{len(members)} entries share a topic: {', '.join(words)}".rstrip(": ")
            found.append(_finding(kind, priority, says, members, words=words))
        return sorted(found, key=lambda each: _PRIORITIES.index(each["priority"]))

    def antipatterns(self) -> list[Data]:
        """Habits that make what is kept worth less, the most pressing first."""
        found = (each for each in self._habits() if each["kind"] != "never read")
        return sorted(found, key=lambda each: _PRIORITIES.index(each["priority"]))

    def _habits(self) -> Iterator[Data]:
        """What is so of more of the entries than it should be, and what begins alike."""
        standing, related = self.standing, self.knowledge.leading_to(self.standing)
        ties = [(entry, other) for entry in standing for _, other in related[entry.path]]
        solved = {
            each.path for tie in ties if "solution" in (tie[0].type, tie[1].type) for each in tie
        }
        sure = [entry for entry in standing if entry.confidence is not None]
        own = [
            entry for entry in standing if entry.is_own
        ]  # nobody counts how often a person reads a note
        errors = [entry for entry in standing if entry.type == "error"]
        for kind, priority, of, most, some in (
            (
                "errors without solution",
                "high",
                errors,
                0.5,
                [e for e in errors if e.path not in solved],
            ),
            (
                "low confidence",
                "medium",
                sure,
                0.2,
                [e for e in sure if (e.confidence or 0.0) < 0.5],
            ),
            ("never read", "medium", own, 0.3, [e for e in own if e.id not in self.reads]),
            ("untagged", "low", standing, 0.3, [e for e in standing if not e.tags]),
        ):
            if len(some) > most * len(of):
                share = round(len(some) / len(of), 3)
                yield _finding(
                    kind,
                    priority,
                    f"{kind}: {len(some)} of {len(of)}",
                    some[:20],
                    numbers={"share": share},
                )
        for some in _alike(standing, 100):
            yield _finding("duplicates", "high", f"{len(some)} entries begin the same way", some)


def analysis_of(store: EnhancedStore, notes: str = "") -> Analysis:
    """The entries of a store, or notes: of a folder (`projects/`), of a type (`type:decision`), or all (`*`)."""
    if not (wanted := notes.strip()):
        return Analysis(store, knowledge_of(store).entries())
    kind = wanted[5:].strip() if wanted.casefold().startswith("type:") else ""
    folder = "" if kind or wanted in ("*", "/") else wanted.rstrip("/*") + "/"
    listed = {
        each.path: each for each in store.extension.list_all(Filter(type=kind, prefix=folder))
    }
    entries = [
        replace(
            read_entry(*read[:3]),
            created=listed[read.path].created or "",
            modified=listed[read.path].modified,
        )
        for read in store.extension.read(sorted(listed))
    ]
    named = (
        f"notes of type {kind}"
        if kind
        else f"notes in {folder}"
        if folder
        else "notes of the vault"
    )
    return Analysis(store, entries, named)


def brief(entry: KnowledgeEntry) -> Data:
    """An entry as it is named in a finding."""
    return {"id": entry.id, "name": entry.name, "type": entry.type, "says": entry.headline}


def _finding(
    kind: str, priority: str, says: str, some: Iterable[KnowledgeEntry], **more: Any
) -> Data:
    shown = {"kind": kind, "priority": priority, "says": says, "entries": list(map(brief, some))}
    return shown | {"words": [], "numbers": {}} | more


def _slot(sentence: Sentence) -> tuple[tuple[str, ...], frozenset[str], Sequence[str]]:
    """What a sentence says the value of, which, and under what condition; nothing where it is no such form."""
    said = _REASON.sub(
        "", " ".join(sentence.text.replace("*", "").replace("`", "").split()).lower()
    )
    found = (
        None if sentence.negated or said.endswith("?") else _CLAIM.fullmatch(said.rstrip(".!… "))
    )
    if found is None:
        return (), frozenset(), ()
    about, stated = found["a"] or found["b"], found["v"] or found["w"]
    said, subject = _QUALIFIER.sub("", stated), {*words_in_order(about)}
    value, qualifier = {*words_in_order(said)} - STOP_WORDS, words_in_order(stated[len(said) :])
    if found["plain"] and not _HAS_ONE_VALUE.match(
        about
    ):  # a name or number is a value there, what it is like is none
        is_named = all(word.isdigit() or word not in sentence.text for word in value)
        value = value if is_named and _NAMES_A_VALUE.search(about) else set()
    if subject & _NAMES and any(map(str.isdigit, said)):
        value = set()
    return tuple(sorted(subject - STOP_WORDS - {"s"})), frozenset(value), qualifier


def _are_of_one(one: Sentence, other: Sentence) -> bool:
    """Whether sentences of one frame are of one thing: no small word differs (on, off), a number only if it measures."""
    differ, values = {*one.words} ^ {*other.words}, " ".join((*one.values, *other.values)).split()
    return differ <= {*values, *_EMPHASIS} and (
        one.values == other.values or (_measures(one) and _measures(other))
    )


def _measures(sentence: Sentence) -> bool:
    """Whether the one number of a sentence counts or measures; one that names a thing does not."""
    if len(sentence.values) != 1 or not _NAMES.isdisjoint(sentence.frame):
        return False
    start = (text := sentence.text.lower()).find(sentence.values[0].split()[0])
    return bool(_MEASURES.search(text[:start]) and _PLAIN_NUMBER.match(text, start))


def _is_part(one: str, other: str) -> bool:
    """Whether a text says all that another does, or the other way round, with the same numbers."""
    a, b = (set(words_in_order(plain(text))) - STOP_WORDS for text in (one, other))
    return (a <= b or b <= a) and not any(map(str.isdigit, "".join(a ^ b)))


def _alike(entries: Iterable[KnowledgeEntry], characters: int) -> list[list[KnowledgeEntry]]:
    """Entries of one type whose first characters are the same, without regard to case and blanks."""
    groups: dict[tuple[str, str], list[KnowledgeEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.type, " ".join(plain(entry.content).casefold().split())[:characters]].append(
            entry
        )
    return [some for (_, said), some in groups.items() if said and len(some) > 1]


def export_text(store: EnhancedStore, form: str) -> str:
    """All entries of a store: `md`, by type and the surest first; or with the graph of entities a picture or data."""
    from simplemem.features.graph.graph import graph_of
    from simplemem.features.graph.values import Entity, Graph, Observation, Relation
    from simplemem.features.picture import PICTURES, cytoscape, drawing_of, node_link

    knowledge = knowledge_of(store)
    entries = knowledge.entries()
    related = knowledge.leading_to(entries)
    if form != "md":
        name, whole = (
            {entry.path: entry.name.rsplit("/", 1)[-1] for entry in entries},
            graph_of(store).read(),
        )
        nodes = [Entity(name[e.path], e.type, (Observation(e.text),), e.path) for e in entries]
        nodes += [entity for entity in whole.entities if entity.path not in name]
        ties = [
            Relation(name[path], kind, name[to.path])
            for path, found in related.items()
            for kind, to in found
        ]
        told = {entry.path: {"text": entry.text} for entry in entries}
        drawing = drawing_of(
            store.root.name, Graph((*nodes,), (*ties, *whole.relations)), told=told
        )
        return {**PICTURES, "d3": node_link, "cytoscape": cytoscape}[form](drawing)
    lines = ["# Knowledge\n"]
    for kind in dict.fromkeys((*TYPES, *(entry.type for entry in entries))):
        some = sorted(
            (e for e in entries if e.type == kind),
            key=lambda e: (e.is_superseded, -(e.confidence or 0.0)),
        )
        lines += [f"## {kind.capitalize()} ({len(some)})\n"] if some else []
        for entry in some:
            sure = "unknown" if entry.confidence is None else f"{entry.confidence:g}"
            facts = [
                f"confidence {sure}",
                *["verified"] * entry.verified,
                *["superseded"] * entry.is_superseded,
            ]
            facts += [f"#{tag}" for tag in entry.tags]
            lines += [
                f"### {entry.headline}\n",
                f"*{' · '.join(facts)}* · [[{entry.name}]] · `{entry.id}`\n",
            ]
            lines += [
                f"{entry.content}\n",
                *[f"**Context:** {entry.context}\n"] * bool(entry.context),
            ]
            lines += [
                "".join(f"- {words} [[{other.name}]]\n" for words, other in related[entry.path])
            ]
    return "\n".join(filter(None, lines))
