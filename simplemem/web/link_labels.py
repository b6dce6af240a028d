"""Shows links to sections in the snippets of a search as rendered notes show them. Pure.

A snippet has a link as it is written, `Note#Heading` or `Note#^block`, without its brackets. The
text of the note says which words of the snippet are such a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simplemem.web.markdown.addresses import label_of_link

# A link with a label is shown as its label already. Possessive, so that the time stays linear.
_LINK_TO_SECTION: Final = re.compile(r"\[\[([^\[\]|#\n]*+)#([^\[\]|\n]++)\]\]")
_LINK_IN_CODE: Final = r"\[\[[^\[\]\n]*+\]\]"


def label_links(snippet: str, text: str) -> str:
    """Return a snippet in which links to sections have the text that a rendered note shows.

    `text` is that of the whole note. Links within code stay as they are written.
    """
    if "#" not in snippet:
        return snippet

    # Only those that the snippet has: a note may have thousands of links.
    labels = {written: label for written, label in _labels_around_signs(text) if written in snippet}
    if not labels:
        return snippet

    longest_first = sorted(labels, key=len, reverse=True)
    pattern = "|".join([_LINK_IN_CODE, *map(_pattern_of, longest_first)])
    return re.sub(pattern, lambda match: labels.get(match[0], match[0]), snippet)


def _labels_around_signs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words around the `#` of each link to a section, with their label.

    Only the last word before the sign and the first one after it are needed: a snippet may begin or
    end within a link.
    """
    for link in _LINK_TO_SECTION.finditer(text):
        words_of_target = link[1].split()
        words_of_section = link[2].split()
        if words_of_section:
            last_word = words_of_target[-1] if words_of_target else ""
            written = f"{last_word}#{words_of_section[0]}"
            yield written, label_of_link(written)


def _pattern_of(written: str) -> str:
    """Return the pattern that finds the words around the `#` of a link in a snippet."""
    pattern = re.escape(written)
    if written.startswith("#"):
        # A link within the note may begin as a tag does.
        return rf"(?<!\w){pattern}(?![\w/-])"
    return pattern
