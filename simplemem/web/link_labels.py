"""Shows links to sections in the snippets of a search as rendered notes show them. Pure.

A snippet has `Note#Heading` where a rendered note has `Note › Heading`: the index keeps what is
within the brackets of a link, but not the brackets. Only the text of the note tells whether such
words are a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simplemem.web.markdown.addresses import label_of_link

# A link with a label is left out: a snippet has only its label. Possessive, so that the time stays
# linear.
_LINK_TO_SECTION: Final = re.compile(r"\[\[([^\[\]|#\n]*+)#([^\[\]|\n]++)\]\]")
# Within code, the index keeps the brackets.
_LINK_IN_CODE: Final = r"\[\[[^\[\]\n]*+\]\]"


def label_links(snippet: str, text: str) -> str:
    """Return a snippet in which links to sections have the text that a rendered note shows.

    `text` is that of the whole note. Links within code stay as they are written.
    """
    if "#" not in snippet:
        return snippet

    # A note may have thousands of links: the pattern has only those that the snippet has.
    cores = {core for core in _link_cores(text) if core in snippet}
    if not cores:
        return snippet

    # The longest comes first, so that no other core replaces only a part of it. A link in code
    # comes before all cores: it is found as a whole, and left as it is.
    longest_first = sorted(cores, key=len, reverse=True)
    pattern = "|".join([_LINK_IN_CODE, *map(_core_pattern, longest_first)])

    def label(match: re.Match[str]) -> str:
        if match[0] in cores:
            return label_of_link(match[0])
        return match[0]

    return re.sub(pattern, label, snippet)


def _link_cores(text: str) -> Iterator[str]:
    """Yield `Notes#First` for each link such as `[[My Notes#First heading]]`.

    The last word before the `#` and the first word after it are enough to find the link. A snippet
    may begin or end within the link, and then has no more of it.
    """
    for link in _LINK_TO_SECTION.finditer(text):
        target_words = link[1].split()
        section_words = link[2].split()
        if section_words:
            last_target_word = target_words[-1] if target_words else ""
            yield f"{last_target_word}#{section_words[0]}"


def _core_pattern(core: str) -> str:
    """Return the pattern that finds the core of a link in a snippet."""
    pattern = re.escape(core)
    if core.startswith("#"):
        # A link within its own note looks like a tag: `#First` must not match in `#First-aid`.
        return rf"(?<!\w){pattern}(?![\w/-])"
    return pattern
