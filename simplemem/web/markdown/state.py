"""What the rules know while one text is rendered, as the environment of the parser."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from simplemem.web.markdown.addresses import Destination, destination_of
from simplemem.web.markdown.context import MAX_EMBEDS, NoteContext

Environment = MutableMapping[str, Any]
"""What markdown-it passes to every rule. It also keeps its own values there."""

_KEY: Final = "rendering"
_MAX_EMBEDDED_CHARACTERS: Final = 400_000  # in one page; a text counts each time it is shown


@dataclass
class EmbedBudget:
    """How many notes, and how much text, may still be embedded in a page."""

    embeds: int = MAX_EMBEDS
    characters: int = _MAX_EMBEDDED_CHARACTERS

    def take(self, text: str) -> bool:
        """Return whether a text may be embedded. If so, the budget gets smaller by it."""
        if self.embeds < 1 or len(text) > self.characters:
            return False

        self.embeds -= 1
        self.characters -= len(text)
        return True


@dataclass(frozen=True, slots=True)
class Rendering:
    """The rendering of one text: of the note itself, or of a text that it embeds.

    Attributes:
        prefix: The path of the vault on the server, with which addresses begin.
        context: Where links lead, and what is embedded.
        path: The path of the note that the text is from.
        embeds: The keys of the texts around this one, the outermost first; () for the note itself.
        budget: What may still be embedded. All texts of a page share it.
    """

    prefix: str
    context: NoteContext
    path: str
    embeds: tuple[str, ...] = ()
    budget: EmbedBudget = field(default_factory=EmbedBudget)

    @property
    def is_embedded(self) -> bool:
        """Whether the text is embedded in another."""
        return bool(self.embeds)

    def environment(self) -> Environment:
        """Return a new environment for the parser, from which `rendering_of` returns this."""
        environment: Environment = {_KEY: self}
        if self.is_embedded:
            # By this number, the footnotes of each embedded text have ids of their own.
            number = MAX_EMBEDS - self.budget.embeds
            environment["docId"] = str(number)
        return environment

    def destination(self, target: str, subpath: str) -> Destination:
        """Return where a link of the text leads."""
        return destination_of(self.context, self.prefix, self.path, target, subpath)


def rendering_of(environment: Environment) -> Rendering:
    """Return the rendering that an environment belongs to."""
    rendering: Rendering = environment[_KEY]
    return rendering
