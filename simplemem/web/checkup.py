"""A check of a vault in the background, with its progress, for the page of its problems."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from simplemem.errors import SimplememError
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import FixPlan


@dataclass(frozen=True)
class CheckupState:
    """How far a check is.

    Attributes:
        number: Counts the checks of the view, with this one; 0 if there was none.
        phase: Whether it was never started, is running, has ended, or could not be completed.
        stage: The name that the store gives to what it does now; "" unless it is running.
        done: How many items of the stage are done.
        total: How many items the stage has; 0 if that is not known.
        plan: What it found, and what can be fixed; None unless it has ended.
        problem: Why it could not be completed; "" if it was.
    """

    number: int
    phase: Literal["none", "running", "done", "failed"]
    stage: str = ""
    done: int = 0
    total: int = 0
    plan: FixPlan | None = None
    problem: str = ""


class Checkup:
    """Checks one view of a vault. Guards the state of the latest check. Use it in the event loop.

    On a large vault, a check takes a minute or longer. It reads in a thread of the view's executor,
    and the server answers other requests meanwhile.
    """

    def __init__(self) -> None:
        self.state = CheckupState(0, "none")
        # The event loop itself would let a task that runs be deleted.
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether a check is in progress."""
        return self.state.phase == "running"

    def start(self, view: VaultView) -> None:
        """Begin to check a view. Returns at once. Does nothing while a check is running."""
        if self.is_running:
            return
        self.state = CheckupState(self.state.number + 1, "running")
        self._task = asyncio.create_task(self._check(view))

    async def _check(self, view: VaultView) -> None:
        """Check a view, and keep what is found. The view counts as in use meanwhile."""
        loop = asyncio.get_running_loop()
        number = self.state.number

        def report(stage: str, done: int, total: int) -> None:
            state = CheckupState(number, "running", stage, done, total)
            loop.call_soon_threadsafe(self._set_progress, state)

        view.begin_request()
        try:
            plan = await view.executor.run(lambda: view.executor.store().plan_fixes(report))
        except SimplememError as error:
            problem = f"{error.message}. {error.hint}".strip()
            self.state = CheckupState(number, "failed", problem=problem)
        except BaseException:  # also for a cancelled task, so that the next check can start
            self.state = CheckupState(number, "failed", problem="the check was interrupted")
            raise
        else:
            self.state = CheckupState(number, "done", plan=plan)
        finally:
            view.end_request()

    def _set_progress(self, state: CheckupState) -> None:
        """Replace the state of a check that is running. A late report changes nothing."""
        if self.is_running and state.number == self.state.number:
            self.state = state

    def forget(self) -> None:
        """Forget what the latest check found, for example because it was fixed."""
        if not self.is_running:
            self.state = CheckupState(self.state.number, "none")


class Checkups:
    """Guards the checks of all views of one vault, by the places that the views show."""

    def __init__(self) -> None:
        self._by_places: dict[tuple[str, ...], Checkup] = {}

    def of(self, view: VaultView) -> Checkup:
        """Return the check of a view, which was never started if the view is new."""
        return self._by_places.setdefault(view.only, Checkup())
