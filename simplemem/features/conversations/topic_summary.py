"""What the frontmatter of a topic says when the topic pauses or grows: summary, status and label.

Pure.
"""

from __future__ import annotations

import re
from typing import Final

from simplemem.features.conversations.labels import label_of_exchanges
from simplemem.features.conversations.outcomes import choose_outcome
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn
from simplemem.note.properties import set_property
from simplemem.note.sentences import sentence_spans
from simplemem.note.tag_changes import change_tags

# A sentence with markup, or one of more than 300 characters, is not quoted in a summary.
_NOT_QUOTABLE: Final = re.compile(r"[`#|<>\[\]]|.{301}", re.DOTALL)


def pause_or_close(text: str, topic: Topic, status: str = "") -> str:
    """Return the text of a topic's note with another status and with a summary of its turns.

    `text` is the text of the note, which may have changes that `topic` lacks; the summary is made
    of the turns of `topic`. Without a `status`, a full topic is closed and any other one paused. A
    description that the user wrote stays, and so does an earlier summary if the turns give none.
    """
    if not status:
        status = "closed" if topic.is_full else "paused"
    text = change_tags(text, {"status": status})

    if topic.summary and not _is_generated(topic.summary):
        return text

    summary = summary_of(topic)
    if not summary:
        return text
    return set_property(text, "description", summary)


def summary_of(topic: Topic) -> str:
    """Return how a topic ended in the user's words: one or two sentences in quotation marks.

    They are those of `choose_outcome`. Returns "" if no sentence can be quoted.
    """
    outcome = choose_outcome(_quotable_sentences(topic))
    if not outcome:
        return ""
    sentences = " … ".join(outcome)
    return f"“{sentences}”"


def refined_label(topic: Topic, turn: Turn) -> str:
    """Return the label of a topic with one more turn at its end.

    It changes only while the topic has few turns, and only if the label was made of them: a label
    that an agent, a model or the user gave stays.
    """
    exchanges = [(topic_turn.message, topic_turn.answer) for topic_turn in topic.turns]
    if topic.named_by or not exchanges:
        return topic.label
    if topic.label != label_of_exchanges(exchanges):
        return topic.label
    return label_of_exchanges([*exchanges, (turn.message, turn.answer)])


def _is_generated(summary: str) -> bool:
    """Return whether a description has the form of those that `summary_of` returns."""
    return summary.startswith("“") and summary.endswith("”")


def _quotable_sentences(topic: Topic) -> list[str]:
    """Return the sentences of a topic's messages that a summary may contain, each once.

    They are in their order, each on one line. Those over 300 characters, or with characters that
    are markup, are left out.
    """
    sentences = dict[str, None]()
    for turn in topic.turns:
        for start, stop in sentence_spans(turn.message):
            sentence = turn.message[start:stop]
            if not _NOT_QUOTABLE.search(sentence):
                on_one_line = " ".join(sentence.split())
                sentences[on_one_line] = None
    return list(sentences)
