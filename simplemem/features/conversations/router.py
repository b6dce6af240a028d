"""Which block a message belongs to, by rules that say why: the one it goes back to by name, the current one while it is
vague, else the nearest by what was said last and what it is about, or a new one. In doubt the conversation goes on. Pure
but for the vectors it is given; never asks a model, never writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from simplemem.errors import Ambiguous, NotFound
from simplemem.features.conversations import patterns
from simplemem.features.conversations.topic import Topic
from simplemem.note.names import base_name
from simplemem.providers.wordllama import WordLlama

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXCHANGES: Final = 4  # of a block, the latest, that stand for it
_ROWS: Final = _EXCHANGES + 2  # vectors of a block: those, the first, and the last as it was said
_NEAREST: Final = 12  # blocks that a model is shown
# The numbers of rule 5, by the manner of the message; `bench/talk.py` measures and moves them.
NEAR, STAY, BACK, NEW, LIMITS = (
    patterns.NUMBERS[each] for each in ("near", "stay", "back", "new", "limits")
)
_bundled: Final = cache(WordLlama)
_BY_LAST: Final = attrgetter("last", "id")
_stem: Final = partial(patterns.PATTERNS["ending"].sub, "")


def current_topic(every: Sequence[Topic], session: str, at: datetime) -> Topic | None:
    """The block a session is in: the active one; for what is told late, the one that was spoken in last before."""
    mine = [each for each in every if each.session == session and not each.problem]
    newest = max((each for each in mine if each.status == "active"), key=_BY_LAST, default=None)
    if newest is None or at >= newest.last:
        return newest
    before = [
        (turn.at, each)
        for each in mine
        if each.status != "closed"
        for turn in each.turns
        if turn.at <= at
    ]
    return max(before, key=lambda each: each[0], default=(at, newest))[1]


def within(every: Sequence[Topic], session: str) -> list[Topic]:
    """The blocks a session may go on in: all that can be changed, but for the active ones of others."""
    return [
        each
        for each in every
        if not each.problem and (each.session == session or each.status != "active")
    ]


def named(every: Sequence[Topic], topic: str, session: str) -> Topic | None:
    """Rule 1, the block that an agent means: by its id, else the newest live one of that label; None for a new one."""
    if topic.startswith("block_"):
        return found(every, topic)
    alike = (each for each in within(every, session) if each.label.casefold() == topic.casefold())
    return max((each for each in alike if each.status != "closed"), key=_BY_LAST, default=None)


def found(every: Sequence[Topic], ref: str) -> Topic:
    """The block of this id, label or note name. NotFound names near ids, Ambiguous all there are."""
    wanted = ref.casefold()
    called = (
        e for e in every if wanted in map(str.casefold, (e.label, base_name(e.path), e.path[:-3]))
    )
    alike = [each for each in every if each.id == ref] or [*called]
    if len(alike) > 1:
        candidates = [f"{each.id} ({each.path[:-3]})" for each in alike]
        raise Ambiguous(f"{ref[:80]} matches {len(alike)} topics", candidates=candidates)
    if not alike:
        near = get_close_matches(ref[:80], [each.id for each in every], 3, 0.5)
        hint = (
            f"Did you mean {' or '.join(near)}?" if near else "list_active_topics lists the topics."
        )
        raise NotFound(f"no topic called {ref[:80]}", hint=hint, candidates=near)
    return alike[0]


class Decision(NamedTuple):
    """The block, None for a new one, and the reason. Where numbers decided, the live blocks, nearest first, and whether
    the two best numbers are so close that a model may be asked."""

    block: Topic | None
    reason: str
    ranked: tuple[Topic, ...] = ()
    is_close: bool = False
    method: str = "rules"


class _Recent(NamedTuple):
    """What stands for a block: its last exchanges, and the first, which says what it is about."""

    words: frozenset[str]  # and names, which have a capital
    is_asked: bool
    rows: NDArray[np.float32]  # how the last was said, then what each is about


class TopicRouter:
    """Remembers what stands for each block, which is another when its note changes."""

    def __init__(
        self, vectors: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
    ) -> None:
        self._vectors = vectors or (lambda texts: _bundled().unit_vectors(texts))
        self._recent: WeakKeyDictionary[Topic, _Recent] = WeakKeyDictionary()

    def decide(
        self, message: str, at: datetime, blocks: Sequence[Topic], current: Topic | None
    ) -> Decision:
        """Rules 2 to 6: where a message belongs that no agent placed. `blocks` are all that can be read."""
        if not blocks:
            return Decision(None, "the first message")
        head = message[: LIMITS["text"]]
        words, kinds = (
            patterns.content_words(head),
            ("shift", "greeting", "opening", "follow", "news"),
        )
        manner = {kind: bool(patterns.PATTERNS[kind].match(head)) for kind in kinds} | {
            "always": True,
            "begun": False,
        }
        if (object_ := patterns.back_to(head)) and (block := _named(object_, blocks)):
            return Decision(block, f'returns to "{" ".join(object_)}"')
        manner["day"] = (
            current is not None and (at - current.last).total_seconds() >= 3600 * LIMITS["hours"]
        )
        is_hello = manner["greeting"] and manner["news"]
        is_vague = object_ == () or (
            len(words) < LIMITS["few_words"] and not manner["shift"] and not is_hello
        )
        if current and is_vague and not manner["day"]:
            return Decision(current, "too short to start another topic")
        live = [block for block in blocks if block.status != "closed" and block is not current]
        live = [
            *sorted(live, key=attrgetter("last"), reverse=True)[: LIMITS["live"]],
            *filter(None, [current]),
        ]
        if current and not manner["day"]:
            before = current.turns[-2].at if len(current.turns) > 1 else None
            others = [
                block.last
                for block in live
                if block is not current and block.session == current.session
            ]
            manner["begun"] = before is None or any(last > before for last in others)
        new, stay, back = (
            sum(table[kind] for kind in table if manner[kind]) for table in (NEW, STAY, BACK)
        )
        scores: dict[Topic | None, float] = {None: new}
        method, near = "rules", list[float]()
        try:
            near += self.nearness(head, words, live) if live else ()
        except Exception as error:  # noqa: BLE001 - rule 6: whatever fails, the turn is kept
            import numpy as np

            method = f"rules (words only: {getattr(error, 'message', type(error).__name__)})"
            near = TopicRouter(lambda texts: np.zeros((len(texts), 1), np.float32)).nearness(
                head, words, live
            )
        scores |= {
            each: n + (stay if each is current else back)
            for each, n in zip(live, near, strict=True)
        }
        best, *rest = sorted(scores, key=lambda block: (-scores[block], block is not current))
        ranked = tuple(block for block in (best, *rest) if block is not None)[:_NEAREST]
        reason = (
            "continues the current topic"
            if best is current
            else "closest to the last messages of that topic"
        )
        is_close = bool(rest) and scores[best] - scores[rest[0]] < LIMITS["close"]
        return Decision(best, reason if best else "starts a new topic", ranked, is_close, method)

    def nearness(self, head: str, words: Sequence[str], live: Sequence[Topic]) -> list[float]:
        """How near a message is to each block, however it is said."""
        import numpy as np

        fresh = {block: _said_last(block) for block in live if block not in self._recent}
        rows = self._vectors(
            [head, " ".join(words), *(text for *_, texts in fresh.values() for text in texts)]
        )
        for at, (block, (held, is_asked, _)) in enumerate(fresh.items()):
            self._recent[block] = _Recent(held, is_asked, rows[2 + at * _ROWS :][:_ROWS])
        recents = [self._recent[block] for block in live]
        stacked = np.stack([recent.rows for recent in recents])
        cosines = np.einsum(
            "bed,sd->bes", stacked, rows[:2]
        )  # so few rows would wait for threads of a product
        follows, about = (
            NEAR["follows"] * cosines[:, 0, 0],
            NEAR["about"] * cosines[:, 1:, 1].max(axis=1),
        )
        near: list[float] = (follows + about).tolist()
        names, wanted = set(patterns.PATTERNS["capital"].findall(head)), set(map(_stem, words))
        names = {name for name in names if any(name in recent.words for recent in recents)}
        known = [wanted & recent.words for recent in recents]
        holders = Counter(word for each in known for word in each)
        rare = {word: math.log(1 + (len(live) + 1) / number) for word, number in holders.items()}
        whole = sum(rare.values()) or 1.0
        for k, recent in enumerate(recents):
            near[k] += (
                NEAR["shared"] * sum(map(rare.__getitem__, known[k])) / whole
                + NEAR["asked"] * recent.is_asked
            )
            near[k] += NEAR["stranger"] * (bool(names) and not names & recent.words)
        return near


def _said_last(block: Topic) -> tuple[frozenset[str], bool, Sequence[str]]:
    """What stands for a block, with texts for its vectors."""
    turns = (*block.turns[:-_EXCHANGES][:1], *block.turns[-_EXCHANGES:])
    said = [f"{turn.message[: LIMITS['text']]} {turn.answer[: LIMITS['text']]}" for turn in turns]
    about = [patterns.content_words(text) for text in said]
    words = {_stem(word) for each in about for word in each}.union(
        *map(patterns.PATTERNS["capital"].findall, said)
    )
    texts = [*said[-1:], *map(" ".join, about), *[""] * _ROWS][:_ROWS]
    return frozenset(words), bool(turns) and "?" in turns[-1].answer[-60:], texts


def _named(object_: Sequence[str], blocks: Sequence[Topic]) -> Topic | None:
    """The block that holds most of the rare words of what is gone back to, where most of its turns do."""
    wanted, shares = set(map(_stem, object_)), dict[Topic, dict[str, float]]()
    for block in blocks:
        told = [
            f"{block.label} {' '.join(block.keywords)}",
            *(f"{t.message} {t.answer}".lower() for t in block.turns),
        ]
        told = [text for text in told if any(word in text for word in wanted)]
        held = Counter(
            word
            for text in told
            for word in wanted.intersection(map(_stem, patterns.content_words(text)))
        )
        shares[block] = {word: 1 + number / (1 + len(block.turns)) for word, number in held.items()}
    number = {word: sum(word in each for each in shares.values()) or 0.5 for word in wanted}
    rare = {word: math.log(1 + (len(blocks) + 1) / number[word]) for word in wanted}
    best = max(
        blocks, key=lambda b: (sum(rare[word] * share for word, share in shares[b].items()), b.last)
    )
    return (
        best
        if sum(map(rare.__getitem__, shares[best])) >= LIMITS["named"] * sum(rare.values())
        else None
    )
