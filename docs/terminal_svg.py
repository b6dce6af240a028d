"""An animated picture of a terminal, as an SVG file that needs no script.

A picture has scenes. In a scene, lines appear one after the other; the next scene begins with an empty screen. A viewer
that shows no animation shows the last scene.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

COLUMNS = 92
ROWS = 24

_CHARACTER_WIDTH = 8.4
_LINE_HEIGHT = 19
_MARGIN = 16
_TITLE_HEIGHT = 34
_PAUSE_BETWEEN_SCENES = 2.6  # seconds
_COLORS = {
    "": "#d8dee9",
    "caption": "#88c0d0",
    "prompt": "#a3be8c",
    "dim": "#7b869c",
    "added": "#a3be8c",
    "removed": "#e07a84",
    "strong": "#eceff4",
}


@dataclass(frozen=True)
class Line:
    """A line of text, its color by name, and the seconds that pass before it appears."""

    text: str
    color: str = ""
    delay: float = 0.12


@dataclass
class Recording:
    """The scenes of a picture, in order."""

    title: str
    scenes: list[list[Line]] = field(default_factory=list)

    def start_scene(self, caption: str) -> None:
        """Clear the screen and write what happens now."""
        self.scenes.append([Line(f"# {caption}", "caption", 0.2), Line("")])

    def write(self, text: str, color: str = "", delay: float = 0.12) -> None:
        """Write lines; what is longer than the screen is cut with an ellipsis."""
        for line in text.rstrip("\n").split("\n"):
            text_of_line = line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"
            self.scenes[-1].append(Line(text_of_line, color, delay))

    def svg(self) -> str:
        """Return the picture."""
        width = round(COLUMNS * _CHARACTER_WIDTH + 2 * _MARGIN)
        height = ROWS * _LINE_HEIGHT + 2 * _MARGIN + _TITLE_HEIGHT
        rules, texts = self._animated_lines()
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" role="img" aria-label="{escape(self.title, quote=True)}">',
                f"<title>{escape(self.title)}</title>",
                "<style>",
                "text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; }",
                *rules,
                "@media (prefers-reduced-motion: reduce) { text { animation: none !important; } }",
                "</style>",
                f'<rect width="{width}" height="{height}" rx="9" fill="#2b303b"/>',
                *(
                    f'<circle cx="{_MARGIN + 6 + 20 * number}" cy="17" r="6" fill="{color}"/>'
                    for number, color in enumerate(("#e07a84", "#ebcb8b", "#a3be8c"))
                ),
                *texts,
                "</svg>",
                "",
            ]
        )

    def _animated_lines(self) -> tuple[list[str], list[str]]:
        """Return the rules and the elements of all lines."""
        duration = sum(line.delay for scene in self.scenes for line in scene)
        duration += _PAUSE_BETWEEN_SCENES * len(self.scenes)
        rules: list[str] = []
        texts: list[str] = []
        time = 0.0
        for scene in self.scenes:
            appearances: list[float] = []
            for line in scene:
                time += line.delay
                appearances.append(time)
            time += _PAUSE_BETWEEN_SCENES
            is_last = scene is self.scenes[-1]
            for row, (line, appears) in enumerate(
                zip(scene[-ROWS:], appearances[-ROWS:], strict=True)
            ):
                if not line.text.strip():
                    continue
                name = f"l{len(texts)}"
                rules += _rules_of(
                    name, appears / duration, time / duration, duration, is_last=is_last
                )
                texts.append(_text_of(name, row, line))
        return rules, texts


def _rules_of(name: str, start: float, end: float, duration: float, *, is_last: bool) -> list[str]:
    """Return the rules that show a line from `start` to `end`, both shares of the whole duration."""
    visible = "opacity: 1"
    hidden = "opacity: 0"
    frames = f"0% {{ {hidden} }} {start:.4%} {{ {visible} }} {min(end, 1):.4%} {{ {hidden} }}"
    resting = visible if is_last else hidden
    return [
        f"@keyframes {name} {{ {frames} }}",
        f"#{name} {{ {resting}; animation: {name} {duration:.2f}s step-end infinite; }}",
    ]


def _text_of(name: str, row: int, line: Line) -> str:
    y = _TITLE_HEIGHT + _MARGIN + row * _LINE_HEIGHT
    color = _COLORS[line.color]
    return f'<text id="{name}" x="{_MARGIN}" y="{y}" fill="{color}" xml:space="preserve">{escape(line.text)}</text>'
