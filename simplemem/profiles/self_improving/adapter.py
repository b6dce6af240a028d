"""How self-improving-memory words failures, and the arguments that its tools have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from simplemem.features.lessons.service import lesson_service
from simplemem.tools.arguments import about, clamp
from simplemem.tools.tool import Tool, ToolAdapter

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

Query = Annotated[str, about("up to 500 characters"), Field(max_length=500)]
Limit = Annotated[int, clamp(100), Field(ge=1)]


class _LessonAdapter(ToolAdapter):
    """Words failures like self-improving-memory, and records how long each tool takes."""

    failure = "Error: "

    def record_duration(self, tool: Tool, store: EnhancedStore, seconds: float) -> None:
        """Record how many seconds a call of a tool took, for the statistics of this process."""
        milliseconds = 1000 * seconds
        lesson_service(store).durations[tool.name].append(milliseconds)


ADAPTER: Final = _LessonAdapter()
