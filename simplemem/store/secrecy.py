"""What a write would add that looks like a password or key: told with the answer, or refused, as `write.secrets` says.

Only what is added is judged: a note that holds a secret already can still be changed, and a secret taken out of it.
Nothing here shows, logs or keeps what it found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplemem.config import Settings
from simplemem.errors import Invalid

if TYPE_CHECKING:
    from simplemem.note.secrets import Secret

_MOST_TOLD = 5


def judge(settings: Settings, name: str, before: str, after: str, *, anew: bool = True) -> list[str]:
    """What is to be said of the secrets that a change of a note adds. Invalid when they are refused. What is not `anew`
    comes back from the history, where it lies anyway: that is told, and never refused."""
    found = _added(settings, before, after)
    if not found:
        return []
    told = [f"line {each.line} of {name} seems to hold {_a(each)} {each.shown}" for each in found[:_MOST_TOLD]]
    if len(found) > _MOST_TOLD:
        told.append(f"and {len(found) - _MOST_TOLD} more are in it")
    if anew and settings.write.secrets == "refuse":
        raise Invalid(
            "; ".join(told) + ": nothing was written",
            hint="Leave it out and say where it is kept; write.secrets = warn would let it pass.",
            secrets=[{"kind": each.kind, "line": each.line} for each in found[:50]],
        )
    return [*told, "Notes are plain text, and earlier versions are kept. A secret is better kept elsewhere."]


def judge_name(settings: Settings, name: str, before: str = "") -> list[str]:
    """What is to be said of secrets in the name that a note gets: names are listed, linked and logged. The one that it had
    is not judged."""
    found = _added(settings, before, name)
    if not found:
        return []
    told = [f"the name seems to hold {_a(each)} {each.shown}" for each in found[:_MOST_TOLD]]
    if settings.write.secrets == "refuse":
        hint = "Give it another name; write.secrets = warn would let this one pass."
        raise Invalid("; ".join(told) + ": nothing was written", hint=hint)
    return [*told, "Names stand in lists, links and the history. A secret is better kept elsewhere."]


def _added(settings: Settings, before: str, after: str) -> list[Secret]:
    """The secrets that a text adds to the one before it; none where nobody wants to hear of them."""
    if settings.write.secrets == "off":
        return []
    from simplemem.note.secrets import added_secrets  # its patterns take a moment that only a write should pay

    return added_secrets(before, after)


def _a(secret: Secret) -> str:
    return f"{'an' if secret.kind[0] in 'AaEeIiOo' else 'a'} {secret.kind},"
