"""Regular expressions out of a vault's own settings, matched in time proportional to the path.

The person's `/regex/` filters come from a file in the vault, so they may be hostile or merely unlucky: a
backtracking engine could spend minutes on one path. Here a pattern becomes a small automaton whose states
are walked side by side. That fits what people write for paths: literals, `.`, classes, groups, `|`, `?`,
`*`, `+`, `{m,n}`, `^` and `$`. What needs backtracking (look-around, back-references) is refused, never
half understood. This raises nothing but `Invalid`, and never looks at a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simplemem.errors import Invalid

MAX_PATTERN = 500  # characters; a filter is a line somebody typed
MAX_STATES = 1_000  # of the automaton, after `{m,n}` has been written out
MAX_DEPTH = 50  # of nested groups
MAX_REMEMBERED = 4_096  # steps kept for reuse: paths share their beginnings, so nearly every step is a repeat

Test = Callable[[str], bool]
_SETS: dict[str, Test] = {
    "d": lambda c: c in "0123456789",
    "w": lambda c: c == "_" or (c.isascii() and c.isalnum()),
    "s": str.isspace,
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


@dataclass(slots=True)
class _Piece:
    """A part of the automaton: where it is entered, and the one state it is left by."""

    start: int
    end: int


@dataclass(slots=True)
class Pattern:
    """A compiled pattern. `search` says whether it occurs anywhere in a text, in either case of letters."""

    source: str
    tests: list[Test | None] = field(default_factory=list)  # what a state consumes to move on, if anything
    following: list[list[int]] = field(default_factory=list)  # where it leads
    anchors: list[str] = field(default_factory=list)  # "^" or "$" when it may only be passed there
    start: int = 0
    accept: int = 0
    steps: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)

    def search(self, text: str) -> bool:
        here = self._closure({self.start}, first=True, last=not text)
        if self.accept in here:
            return True
        for index, char in enumerate(text):
            last = index == len(text) - 1
            key = (here, char)
            reached = None if last else self.steps.get(key)
            if reached is None:
                moved = {n for s in here if (test := self.tests[s]) and test(char) for n in self.following[s]}
                # A match may begin at every character: the start is always among the states.
                reached = self._closure(moved | {self.start}, first=False, last=last)
                if not last:
                    if len(self.steps) >= MAX_REMEMBERED:
                        self.steps.clear()
                    self.steps[key] = reached
            here = reached
            if self.accept in here:
                return True
        return False

    def _closure(self, states: set[int], *, first: bool, last: bool) -> frozenset[int]:
        """Everything reachable without consuming a character; `^` and `$` are passed only at the ends."""
        seen = set(states)
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            anchor = self.anchors[state]
            if self.tests[state] or (anchor == "^" and not first) or (anchor == "$" and not last):
                continue
            for reached in self.following[state]:
                if reached not in seen:
                    seen.add(reached)
                    waiting.append(reached)
        return frozenset(seen)


def compile_pattern(source: str) -> Pattern:
    """The automaton of a pattern; `Invalid` when it is wrong, too large, or needs what this does not do."""
    if len(source) > MAX_PATTERN:
        raise Invalid(f"The pattern is longer than {MAX_PATTERN} characters.", hint="Split it into several.")
    return _Compiler(source).compile()


class _Compiler:
    """Reads a pattern once, left to right, building the automaton as it goes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.made = Pattern(source)

    def compile(self) -> Pattern:
        whole = self._alternatives(0)
        if self.at < len(self.source):
            raise self._refuse("an unmatched closing bracket")
        self.made.start, self.made.accept = whole.start, whole.end
        return self.made

    def _refuse(self, what: str) -> Invalid:
        return Invalid(
            f"The pattern /{self.source}/ has {what} at character {self.at + 1}.",
            hint="Supported are literals, ., [classes], (groups), |, ?, *, +, {m,n}, ^ and $.",
        )

    def _peek(self) -> str:
        return self.source[self.at] if self.at < len(self.source) else ""

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise self._refuse("an end too soon")
        self.at += 1
        return char

    def _state(self, test: Test | None = None, anchor: str = "") -> int:
        if len(self.made.following) >= MAX_STATES:
            raise self._refuse(f"more than {MAX_STATES} steps")
        self.made.tests.append(test)
        self.made.following.append([])
        self.made.anchors.append(anchor)
        return len(self.made.following) - 1

    def _link(self, state: int, following: int) -> None:
        self.made.following[state].append(following)

    def _single(self, test: Test | None = None, anchor: str = "") -> _Piece:
        start, end = self._state(test, anchor), self._state()
        self._link(start, end)
        return _Piece(start, end)

    def _alternatives(self, depth: int) -> _Piece:
        if depth > MAX_DEPTH:
            raise self._refuse("groups nested too deeply")
        start, end = self._state(), self._state()
        while True:
            branch = self._sequence(depth)
            self._link(start, branch.start)
            self._link(branch.end, end)
            if self._peek() != "|":
                return _Piece(start, end)
            self.at += 1

    def _sequence(self, depth: int) -> _Piece:
        first = last = self._state()
        while self._peek() not in ("", "|", ")"):
            item = self._repeated(depth)
            self._link(last, item.start)
            last = item.end
        return _Piece(first, last)

    def _repeated(self, depth: int) -> _Piece:
        began = self.at
        piece = self._atom(depth)
        least, most = self._count()
        if (least, most) == (1, 1):
            return piece
        # A repetition is written out: the atom is read again for every copy it needs.
        after = self.at
        copies = [piece]
        while len(copies) < (most if most is not None else max(least, 1)):
            self.at = began
            copies.append(self._atom(depth))
        self.at = after
        start, end = self._state(), self._state()
        leave_from = start
        for index, copy in enumerate(copies[: most if most is not None else None]):
            if index >= least:
                self._link(leave_from, end)
            self._link(leave_from, copy.start)
            leave_from = copy.end
        self._link(leave_from, end)
        if most is None:
            self._link(leave_from, copies[-1].start)
        return _Piece(start, end)

    def _count(self) -> tuple[int, int | None]:
        """How often the atom just read may stand there: (least, most), `None` for no end."""
        char = self._peek()
        least: int
        most: int | None
        if char in ("?", "*", "+"):
            self.at += 1
            least, most = (1 if char == "+" else 0), (1 if char == "?" else None)
        elif char == "{":
            close = self.source.find("}", self.at)
            low, comma, high = self.source[self.at + 1 : close].partition(",") if close > 0 else ("", "", "")
            if not _is_count(low) or not (high == "" or _is_count(high)):
                return 1, 1  # as in JavaScript: a brace that counts nothing is a brace
            least = int(low)
            most = int(high) if high else (None if comma else least)
            if most is not None and most < least:
                raise self._refuse("a repetition that ends before it begins")
            self.at = close + 1
        else:
            return 1, 1
        if self._peek() == "?":  # lazy or greedy: it matters to what is captured, not to whether it matches
            self.at += 1
        if self._peek() in ("?", "*", "+"):
            raise self._refuse("a repetition of a repetition")
        return least, most

    def _atom(self, depth: int) -> _Piece:
        char = self._take()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._single(self._class())
        if char == ".":
            return self._single(lambda c: c not in "\n\r\u2028\u2029")
        if char in "^$":
            return self._single(anchor=char)
        if char == "\\":
            return self._single(self._escape())
        if char in "?*+":
            self.at -= 1
            raise self._refuse("a repetition of nothing")
        return self._single(_either_case(char))

    def _group(self, depth: int) -> _Piece:
        if self._peek() == "?":
            self.at += 1
            if self._take() != ":":
                raise self._refuse("a look-around or a named group")
        inside = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise self._refuse("a group that is not closed")
        self.at += 1
        return inside

    def _escape(self) -> Test:
        char = self._take()
        if char.lower() in _SETS:
            test = _SETS[char.lower()]
            return test if char.islower() else (lambda c: not test(c))
        return _either_case(self._escaped_literal(char))

    def _escaped_literal(self, char: str) -> str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "xu":
            digits = self.source[self.at : self.at + (2 if char == "x" else 4)]
            if len(digits) != (2 if char == "x" else 4) or any(d not in "0123456789abcdefABCDEF" for d in digits):
                raise self._refuse("an escape that is no character")
            self.at += len(digits)
            return chr(int(digits, 16))
        if char.isascii() and char.isalnum():
            raise self._refuse(f"the escape \\{char}, which is not supported")
        return char

    def _class(self) -> Test:
        negated = self._peek() == "^"
        if negated:
            self.at += 1
        tests: list[Test] = []
        while (char := self._take()) != "]":
            low = self._class_member(char, tests)
            if low is None:
                continue
            if self._peek() == "-" and self.source[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._class_member(self._take(), tests)
                if high is None or high < low:
                    raise self._refuse("a range that is none")
                tests.append(_between(low, high))
            else:
                tests.append(_either_case(low))
        return lambda c: any(test(c) for test in tests) != negated

    def _class_member(self, char: str, tests: list[Test]) -> str | None:
        """One character of a class; None when it was a whole set such as `\\d`, which is added to `tests`."""
        if char != "\\":
            return char
        following = self._take()
        if following.lower() in _SETS:
            self.at -= 1
            tests.append(self._escape())
            return None
        return self._escaped_literal(following)


def _is_count(text: str) -> bool:
    return 0 < len(text) <= 3 and text.isascii() and text.isdigit()


def _either_case(char: str) -> Test:
    same = {char, char.lower(), char.upper()}
    return lambda c: c in same


def _between(low: str, high: str) -> Test:
    # `İ`.lower() is two characters; those never equal one, and comparing strings stays harmless.
    return lambda c: any(low <= variant <= high for variant in {c, c.lower(), c.upper()} if len(variant) == 1)
