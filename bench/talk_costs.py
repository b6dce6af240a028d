"""What a turn, a question and the first call cost in a vault of many topics.

CPU milliseconds, as medians, and in relation to a plain write and a plain search of that vault.
`bench/talk.py --speed 1000` prints them.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bench.measure import cpu_milliseconds, cpu_seconds
from bench.vaults import vocabulary
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import ConversationService, conversation_service
from simplemem.features.conversations.topic import insert_turn, read_topic, render_new_topic
from simplemem.features.conversations.turns import Turn
from simplemem.note.tag_changes import change_tags
from simplemem.store import EnhancedStore, Read, open_store

_SEED: Final = 5
_NOW: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
_HOURS_BETWEEN_TOPICS: Final = 9
_TURNS: Final = 8  # of a topic
_MESSAGE_WORDS: Final = 20
_REPLY_WORDS: Final = 30
_ROUNDS: Final = 30

_COMPARED_CALLS: Final = {
    "a write": "a write",
    "a turn that goes on": "a write",
    "a turn that is routed": "a write",
    "a search": "a search",
    "retrieve_memory": "a search",
}
"""By the title of each call: that of the plain call that it is compared with."""


class TextMaker:
    """Makes random texts. Guards the random generator."""

    def __init__(self) -> None:
        self._rng = random.Random(_SEED)
        self._words = vocabulary(_SEED)

    def make(self, count: int = 8) -> str:
        """Return so many random words."""
        return " ".join(self._rng.choices(self._words, k=count))


def print_costs(count: int) -> None:
    """Make a vault of so many topics, of which the last is active, and print what calls cost."""
    texts = TextMaker()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            status = "active" if number == count - 1 else "paused"
            _write_topic(Path(folder), number, count, status, texts)
        with open_store(folder) as store:
            store.sync()
        with open_store(folder) as store:
            _print_costs_of_calls(store, count, texts)


def _write_topic(vault: Path, number: int, count: int, status: str, texts: TextMaker) -> None:
    """Write the note of a topic with its turns."""
    start = _NOW - timedelta(hours=_HOURS_BETWEEN_TOPICS * (count - number))
    note_text = ""
    for position in range(_TURNS):
        turn = Turn(
            id=f"turn_{start:%Y%m%d_%H%M%S}_{number:04x}{position:02x}",
            at=start + timedelta(minutes=position),
            message=texts.make(_MESSAGE_WORDS),
            answer=texts.make(_REPLY_WORDS),
            context="",
        )
        if note_text:
            topic = read_topic(Read("topics/x.md", note_text, "", ""))
            note_text = insert_turn(topic, turn)
        else:
            label = turn.message[:30]
            topic_id = f"block_{turn.id[5:20]}"
            note_text = render_new_topic(label, turn, [], "", topic_id)

    file = vault / "topics" / f"{number}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(change_tags(note_text, {"status": status}), encoding="utf-8")


def _print_costs_of_calls(store: EnhancedStore, count: int, texts: TextMaker) -> None:
    """Print what the first turn costs, and then each call and its ratio to a plain call."""
    service = conversation_service(store)
    first_seconds = cpu_seconds(lambda: service.record(new_exchange(texts.make())))
    print(f"first turn in a vault of {count} blocks: {first_seconds:.2f} s of CPU")

    medians = _measure_calls(_calls_of(store, service, texts))
    for title, plain_title in _COMPARED_CALLS.items():
        cost = medians[title]
        plain_cost = medians[plain_title]
        print(
            f"{title:24}{cost:6.1f} ms, {cost / plain_cost:.2f} of {plain_title}, "
            f"{cost - plain_cost:+.1f} ms"
        )


def _calls_of(
    store: EnhancedStore, service: ConversationService, texts: TextMaker
) -> dict[str, Callable[[], object]]:
    """Return the calls to measure by their titles."""
    return {
        "a write": lambda: store.create(texts.make(), texts.make()),
        "a turn that goes on": lambda: service.record(new_exchange("And why?")),
        "a turn that is routed": lambda: service.record(new_exchange(texts.make())),
        "a search": lambda: store.search(texts.make()),
        "retrieve_memory": lambda: recall(service, texts.make()),
    }


def _measure_calls(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Make all calls in turn, many times, and return the median milliseconds of each."""
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(_ROUNDS):
        for title, call in calls.items():
            times[title].append(cpu_milliseconds(call))
    return {title: statistics.median(values) for title, values in times.items()}
