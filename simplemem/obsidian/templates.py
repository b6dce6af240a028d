"""Fill in Obsidian's templates. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from simplemem.obsidian.moment_format import format_date
from simplemem.obsidian.settings import ObsidianSettings

_FIELD: Final = re.compile(r"\{\{\s*(?P<name>title|date|time)\s*(?::(?P<format>[^{}\n]*))?\}\}")


def fill_template(template: str, title: str, moment: datetime, settings: ObsidianSettings) -> str:
    """Return the text of a template with its title, dates and times filled in.

    A field is `{{title}}`, `{{date}}` or `{{time}}`. A field may have a format, such as
    `{{date:D.M.}}`; the others have those of the settings. Any other field stays as it is.
    """
    default_formats = {"date": settings.date_format, "time": settings.time_format}

    def fill_field(field: re.Match[str]) -> str:
        """Return what a field stands for."""
        name = field["name"]
        if name == "title":
            return title
        pattern = field["format"] or default_formats[name]
        return format_date(pattern.strip(), moment)

    return _FIELD.sub(fill_field, template)
