"""How the chats of the natural material are routed by rules, in this process and without notes.

    python bench/natural_routing.py [--half development|held_out] [--turns] [--embedder local]

Prints a row per chat: the share of messages in the topic of their subject, of changes noticed, and
of the other messages that stayed, as `bench/natural_chats.py` counts them. A run takes seconds,
because nothing is stored: `bench/talk.py` plays the chats. With `--embedder`, texts are compared by
its vectors in place of the bundled ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.natural_chats import (
    RoutedExchange,
    count_kept,
    count_noticed_changes,
    count_right,
    count_right_decisions,
)
from bench.natural_figures import sum_counts
from bench.natural_material import HALVES, Chat, read_material
from bench.talk import Message, Vectors, play, route_by_rules
from simplemem.providers.api import Embedder
from simplemem.providers.embeddings import create_embedder
from simplemem.providers.word_vectors import unit_length

_COUNTS = {
    "right": count_right,
    "noticed": count_noticed_changes,
    "kept": count_kept,
    "decisions": count_right_decisions,
}


def main() -> None:
    """Print the figures of each chat, and of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--half", choices=HALVES, default="development")
    parser.add_argument("--turns", action="store_true", help="print each message with its topic")
    parser.add_argument("--embedder", help="a provider, as in the setting embed.provider")
    options = parser.parse_args()

    vectors = None
    if options.embedder:
        vectors = vectors_of(create_embedder(options.embedder))
    chats = read_material(options.half).chats
    routed_chats = [route_chat(chat, vectors) for chat in chats]
    if options.turns:
        for routed in routed_chats:
            _print_turns(routed)
    print(f"{'':8}" + "".join(f"{name:>18}" for name in _COUNTS))
    for chat, routed in zip(chats, routed_chats, strict=True):
        _print_row(chat.id, [routed])
    _print_row("all", routed_chats)


def vectors_of(embedder: Embedder) -> Vectors:
    """Return a function that makes unit vectors of texts with an embedder; blank ones get zeros."""

    def vectors(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [np.frombuffer(vector, np.int8) for vector in embedder.documents(texts)]
        return unit_length(np.array(rows, np.float32))

    return vectors


def route_chat(chat: Chat, vectors: Vectors | None = None) -> list[RoutedExchange]:
    """Return the exchanges of a chat with the topics that the rules put them in.

    Texts are compared by the bundled vectors if `vectors` is None.
    """
    start = chat.exchanges[0].at
    stream = []
    for exchange in chat.exchanges:
        minute = (exchange.at - start) / timedelta(minutes=1)
        message = Message(exchange.topic, exchange.message, exchange.response, minute, kind="")
        stream.append(message)

    topic_ids = play(stream, route_by_rules(vectors))
    routed = []
    for number, exchange in enumerate(chat.exchanges):
        routed.append(RoutedExchange(exchange, topic_ids[number], f"turn_{number}"))
    return routed


def _print_turns(routed: Sequence[RoutedExchange]) -> None:
    for item in routed:
        exchange = item.exchange
        mark = "*" if exchange.is_change else " "
        print(f"{exchange.topic}{mark} {item.block_id:9} {exchange.message[:90]!r}")


def _print_row(title: str, routed_chats: Sequence[Sequence[RoutedExchange]]) -> None:
    cells = []
    for count in _COUNTS.values():
        total = sum_counts(map(count, routed_chats))
        cells.append(f"{total!s:>11}{total.share:7.2f}")
    print(f"{title:8}" + "".join(cells))


if __name__ == "__main__":
    main()
