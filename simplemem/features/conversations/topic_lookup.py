"""Find the current topic of a session, or the topic that an agent or a user names. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches

from simplemem.errors import Ambiguous, NotFound
from simplemem.features.conversations.topic import Topic
from simplemem.note.names import base_name

_MAX_SUGGESTIONS = 3  # ids that are similar to one that does not exist
_MIN_SIMILARITY = 0.5
_MAX_REFERENCE = 80  # characters of a reference in a message


def current_topic(topics: Sequence[Topic], session: str, at: datetime) -> Topic | None:
    """Return the active topic of a session, None if it has none.

    `at` is the time of a message. For a back-dated message, which is earlier than the last turn of
    the active topic, returns the open topic that was active at that time, or the active topic if
    the session had no turn yet. Topics whose notes cannot be changed are left out.
    """
    own_topics = []
    active_topics = []
    for topic in topics:
        if topic.session != session or topic.problem:
            continue
        own_topics.append(topic)
        if topic.status == "active":
            active_topics.append(topic)

    active_topic = _latest_topic(active_topics)
    if active_topic is None or at >= active_topic.last:
        return active_topic
    return _topic_at(own_topics, at) or active_topic


def _topic_at(topics: Sequence[Topic], at: datetime) -> Topic | None:
    """Return the open topic with the last turn that is not later than a time.

    If several topics have a turn at the same time, the first of them is returned. Returns None if
    there is no such turn.
    """
    latest_topic = None
    latest_at = None
    for topic in topics:
        if topic.status == "closed":
            continue
        for turn in topic.turns:
            is_later = latest_at is None or turn.at > latest_at
            if turn.at <= at and is_later:
                latest_topic = topic
                latest_at = turn.at
    return latest_topic


def _latest_topic(topics: Sequence[Topic]) -> Topic | None:
    """Return the topic with the last turn, None if there are no topics."""
    return max(topics, key=_rank, default=None)


def _rank(topic: Topic) -> tuple[datetime, str]:
    """Return the key by which topics are ordered: the time of the last turn, then the id."""
    return topic.last, topic.id


def reachable_topics(topics: Sequence[Topic], session: str) -> list[Topic]:
    """Return the topics in which a session may continue.

    They keep their order. Left out are the active topics of other sessions, and topics whose notes
    cannot be changed. Closed topics are included.
    """
    reachable = []
    for topic in topics:
        is_taken = topic.status == "active" and topic.session != session
        if not is_taken and not topic.problem:
            reachable.append(topic)
    return reachable


def named_topic(topics: Sequence[Topic], name: str, session: str) -> Topic | None:
    """Return the topic that an agent names for a message, None for a new one.

    A name is an id, or the label of an open topic in which the session may continue; of several
    with one label, the one with the last turn. Returns None if no such topic has the label. A name
    that begins with "block_" is an id: raises NotFound if no topic has it, Ambiguous if several do.
    """
    if name.startswith("block_"):
        return find_topic(topics, name)

    label = name.casefold()
    same_label = []
    for topic in reachable_topics(topics, session):
        is_open = topic.status != "closed"
        if is_open and topic.label.casefold() == label:
            same_label.append(topic)
    return _latest_topic(same_label)


def find_topic(topics: Sequence[Topic], ref: str) -> Topic:
    """Return the topic with this id, label or note name.

    Raises NotFound, which suggests similar ids, or Ambiguous, which lists all topics that match.
    """
    matches = [topic for topic in topics if topic.id == ref]
    if not matches:
        name = ref.casefold()
        matches = [topic for topic in topics if name in _names_of(topic)]
    if not matches:
        raise _not_found(topics, ref)

    if len(matches) > 1:
        reference = ref[:_MAX_REFERENCE]
        raise Ambiguous(
            f"{reference} matches {len(matches)} topics",
            candidates=[f"{topic.id} ({topic.name})" for topic in matches],
        )
    return matches[0]


def _names_of(topic: Topic) -> list[str]:
    """Return the names by which a topic can be found, besides its id. They are casefolded."""
    return [
        topic.label.casefold(),
        base_name(topic.path).casefold(),
        topic.name.casefold(),
    ]


def _not_found(topics: Sequence[Topic], ref: str) -> NotFound:
    """Return the error for a reference that matches no topic."""
    reference = ref[:_MAX_REFERENCE]
    ids = [topic.id for topic in topics]
    similar = get_close_matches(reference, ids, _MAX_SUGGESTIONS, _MIN_SIMILARITY)
    hint = "list_active_topics lists the topics."
    if similar:
        suggestions = " or ".join(similar)
        hint = f"Did you mean {suggestions}?"
    return NotFound(f"no topic called {reference}", hint=hint, candidates=similar)
