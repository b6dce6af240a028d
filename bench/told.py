"""How soon a subscribed client hears of an edit by hand, in both generations of the protocol.

    python bench/told.py [--notes 2000] [--edits 20]

The official client subscribes to a note; an editor saves it as editors do (a file beside it, then a rename). Prints the
time from the save to the notification; the goal is 300 ms. Wall time: an idle machine tells the truth.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters

from bench.vaults import make_vault

URI = "memory://watched"
PATIENCE = 60


@asynccontextmanager
async def subscribed(vault: Path, mode: str) -> AsyncIterator[tuple[Client, Any]]:
    """A client and a stream of the moments at which it hears of the note."""
    send, heard = anyio.create_memory_object_stream[float](1000)

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            send.send_nowait(time.perf_counter())

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "simplemem", "serve", "--vault", str(vault)], env=dict(os.environ)
    )
    async with Client(command, mode=mode, message_handler=hear) as client, anyio.create_task_group() as tasks:
        if mode == "legacy":
            await client.subscribe_resource(URI)
            yield client, heard
            return

        async def listen(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with client.listen(resource_subscriptions=[URI]) as events:
                task_status.started()
                async for _ in events:
                    send.send_nowait(time.perf_counter())

        await tasks.start(listen)
        yield client, heard
        tasks.cancel_scope.cancel()


async def waits(vault: Path, mode: str, edits: int) -> list[float]:
    """Milliseconds from each save to its notification."""
    found: list[float] = []
    note = vault / "watched.md"
    async with subscribed(vault, mode) as (client, heard):
        while (await client.call_tool("list_memories", {"limit": 1})).structured_content["index"]["state"] != "ready":
            await anyio.sleep(0.1)
        for k in range(edits + 1):
            await anyio.sleep(0.3)
            while heard.statistics().current_buffer_used:
                heard.receive_nowait()
            fresh = note.with_suffix(".saving")
            fresh.write_text(f"saved for the {k}th time\n")
            began = time.perf_counter()
            os.replace(fresh, note)
            with anyio.fail_after(PATIENCE):
                found.append(1000 * (await heard.receive() - began))
    return found[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--edits", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # the client calls the older generation deprecated, which is why it is here
    with tempfile.TemporaryDirectory(prefix="simplemem-told-") as folder:
        vault = Path(folder)
        make_vault(vault, given.notes)
        (vault / "watched.md").write_text("at first\n")
        for mode in ("legacy", "2026-07-28"):
            found = anyio.run(waits, vault, mode, given.edits)
            print(
                f"{mode}: told after {statistics.median(found):.0f} ms (median), {max(found):.0f} ms at most",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
