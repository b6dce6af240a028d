"""Check what is to be written into a note: its length, and the secrets that it would contain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simplemem.errors import Invalid, TooLong
from simplemem.settings.model import Settings

if TYPE_CHECKING:
    from simplemem.note.secrets import Secret

MAX_TEXT = 10 * 1024 * 1024  # characters of a note that simplemem writes
_MAX_SECRETS_NAMED = 5
_MAX_SECRETS_LISTED = 50  # in the details of an error


def check_text(
    settings: Settings, name: str, old_text: str, new_text: str, *, is_new: bool = True
) -> list[str]:
    """Return warnings about the secrets that a change adds to the text of a note.

    Without a `name`, the texts are the old and the new name of a note. Raises TooLong if a text
    grew beyond the limit, and Invalid if the settings refuse secrets. If the text is not new but
    restored (`is_new=False`), it raises neither.
    """
    if is_new and len(new_text) > max(MAX_TEXT, len(old_text)):
        message = f"the text has {len(new_text)} characters; the limit for a note is {MAX_TEXT}"
        raise TooLong(message, hint="Split it into several notes.")
    if settings.write.secrets == "off" or old_text == new_text:
        return []

    # Its patterns take a moment to compile, which only a write should cost.
    from simplemem.note.secrets import added_secrets

    secrets = added_secrets(old_text, new_text)
    if not secrets:
        return []

    warnings = [_describe_secret(secret, name) for secret in secrets[:_MAX_SECRETS_NAMED]]
    if is_new and settings.write.secrets == "refuse":
        raise _secrets_refused(warnings, secrets)
    warnings.append(
        "Notes and their names are plain text, and the history keeps earlier versions."
        " Keep secrets elsewhere."
    )
    return warnings


def _describe_secret(secret: Secret, name: str) -> str:
    """Return the sentence that says where a secret is, and of which kind."""
    place = f"line {secret.line} of {name}" if name else "the name"
    article = "an" if secret.kind[0] in "AaEeIiOo" else "a"
    return f"{place} seems to contain {article} {secret.kind}, {secret.shown}"


def _secrets_refused(descriptions: Sequence[str], secrets: Sequence[Secret]) -> Invalid:
    """Return the error for a text that would bring secrets into a vault that refuses them."""
    details = [
        {"kind": secret.kind, "line": secret.line} for secret in secrets[:_MAX_SECRETS_LISTED]
    ]
    return Invalid(
        "; ".join(descriptions) + ": nothing was written",
        hint="Write where the secret is stored instead of the secret, or set write.secrets = warn.",
        secrets=details,
    )
