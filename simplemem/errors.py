"""The errors that users and programs meet.

Each has a message for people, a hint that says what to do, and a code, which is a contract with
programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple


class HintSentence(NamedTuple):
    """A sentence of a hint that each interface words in its own way.

    `key` says what the caller can do, such as "undo". `text` is the sentence for Python. `values`
    has what the sentence names, such as a version. With `argument`, the sentence is only for a
    caller who can pass an argument of this name.
    """

    key: str
    text: str
    values: Mapping[str, str] = {}  # never changed
    argument: str = ""


class Hint(str):
    """A hint that remembers its sentences. As a text, it is worded for Python."""

    __slots__ = ("sentences",)
    sentences: tuple[str | HintSentence, ...]

    def __new__(cls, *sentences: str | HintSentence) -> Hint:
        """Return a hint of sentences, each with its full stop or semicolon."""
        texts = [
            sentence.text if isinstance(sentence, HintSentence) else sentence
            for sentence in sentences
        ]
        hint = super().__new__(cls, " ".join(texts))
        hint.sentences = sentences
        return hint

    def __getnewargs__(self) -> tuple[str | HintSentence, ...]:  # type: ignore[override]
        """Return the arguments of `__new__`, for `pickle` and `copy`."""
        return self.sentences

    def with_replaced(self, old: str, new: str) -> Hint:
        """Return the hint with another text wherever it contains `old`."""
        sentences: list[str | HintSentence] = []
        for sentence in self.sentences:
            if isinstance(sentence, HintSentence):
                text = sentence.text.replace(old, new)
                values = {key: value.replace(old, new) for key, value in sentence.values.items()}
                sentences.append(sentence._replace(text=text, values=values))
            else:
                sentences.append(sentence.replace(old, new))
        return Hint(*sentences)

    def worded(self, word: Callable[[HintSentence], str | None]) -> str:
        """Return the hint for another interface.

        `word` returns the words of a sentence there, or None if that has no meaning for its caller.
        """
        texts = []
        for sentence in self.sentences:
            text = word(sentence) if isinstance(sentence, HintSentence) else sentence
            if text:
                texts.append(text)

        hint = " ".join(texts)
        if hint.endswith(";"):  # the rest of the sentence was left out
            return hint.removesuffix(";") + "."
        return hint


class SimplememError(Exception):
    """The base of all errors of simplemem. Callers catch it; code raises one of its subclasses.

    `details` has further facts for programs, as JSON values.
    """

    code: ClassVar[str] = "unavailable"

    def __init__(self, message: str, *, hint: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = details

    @property
    def hint(self) -> str:
        """What the caller can do; "" if there is nothing to say. Tracebacks show it too."""
        return self._hint

    @hint.setter
    def hint(self, text: str) -> None:
        self._hint = text
        self.__notes__ = [text] if text else []

    def as_dict(self) -> dict[str, Any]:
        """Return code, message, hint (if there is one) and details in one map."""
        result: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            result["hint"] = self.hint
        return result | self.details

    def withhold_folders(self, folders: Iterable[str]) -> None:
        """Replace folders with `…` in message and hint, for a caller who must not see their paths.

        The details stay as they are.
        """
        longest_first = sorted(folders, key=len, reverse=True)
        for folder in longest_first:
            self.message = self.message.replace(folder, "…")
            if isinstance(self.hint, Hint):
                self.hint = self.hint.with_replaced(folder, "…")
            else:
                self.hint = self.hint.replace(folder, "…")


def install_hint(extra: str) -> str:
    """Return a hint that says how to install the optional dependencies of an extra."""
    # No release is published, so they are installed from a checkout.
    return (
        f"In a checkout of simplemem, run `pip install '.[{extra}]'`,"
        f" or `uv tool install --reinstall '.[{extra}]'`."
    )


class Invalid(SimplememError):
    """The request is wrong: a name that no file can have, an edit whose text is not in the note."""

    code = "invalid"


class TooLong(SimplememError):
    """A name or a text is over its limit."""

    code = "too_long"


class NotFound(SimplememError):
    """There is no such note, version or section. `candidates` are the most similar names."""

    code = "not_found"

    def __init__(
        self, message: str, *, hint: str = "", candidates: Sequence[str] = (), **details: object
    ) -> None:
        if candidates:
            details["candidates"] = list(candidates)
        super().__init__(message, hint=hint, **details)


class AlreadyExists(SimplememError):
    """There is already a note of this name."""

    code = "already_exists"


class Ambiguous(SimplememError):
    """Several notes could be meant. The detail `candidates` lists them all."""

    code = "ambiguous"


class Conflict(SimplememError):
    """The note is no longer what the caller has read.

    `current_sha256` is its hash now (None if it does not exist), and `diff` what has changed.
    """

    code = "conflict"

    def __init__(
        self,
        message: str,
        *,
        current_sha256: str | None,
        diff: str = "",
        hint: str = "",
        **details: object,
    ) -> None:
        super().__init__(message, hint=hint, current_sha256=current_sha256, diff=diff, **details)


class Proposed(SimplememError):
    """A person decides about the change, which was written down as a proposal, and not made.

    The detail `proposal` is the name of its note.
    """

    code = "proposed"


class ReadOnly(SimplememError):
    """The vault, the disk or the settings do not allow writing."""

    code = "read_only"


class Unreadable(SimplememError):
    """The frontmatter or the encoding of a note is broken, at `line` if that is known.

    Such a note is served and searched, but never rewritten.
    """

    code = "unreadable"

    def __init__(
        self, message: str, *, hint: str = "", line: int | None = None, **details: object
    ) -> None:
        if line is not None:
            details["line"] = line
        super().__init__(message, hint=hint, **details)


class Unavailable(SimplememError):
    """Something that is needed cannot be used now: a lock, the disk, a service, the index."""

    code = "unavailable"
