"""What narrows a list, a search or a context pack: the same arguments wherever they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from simplemem.faces.arguments import Arguments, OtherName, Tags

if TYPE_CHECKING:
    from simplemem.memory import Filter


class Narrowing(Arguments):
    """By what a memory is and when it changed."""

    tags: Tags = Field(default=None, description='{"status": "done", "todo": ""}; "" is any value')
    require_all: bool = Field(default=False, description="all of the tags, not any")
    type: str | None = None
    prefix: str | None = Field(default=None, description="a folder, or how names begin")
    since: str | None = Field(default=None, description='changed since: ISO date, "last week"')
    until: str | None = None

    shown_types: ClassVar[dict[str, str]] = {"tags": "object"}

    def filter(self) -> Filter:
        from simplemem.memory import Filter

        return Filter.of(**self.model_dump(include=_NARROWING, exclude_none=True))


class LinkNarrowing(Narrowing):
    """And by its links."""

    link_to: OtherName = Field(default=None, description="only what links to this memory")
    linked_by: OtherName = Field(default=None, description="only what this memory links to")


_NARROWING = set(LinkNarrowing.model_fields)
