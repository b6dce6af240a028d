"""Call one tool of the vault in the current folder, as a client of a given name: what an agent does in a tutorial.

python docs/call_tool.py NAME VERSION '{"tool": "search_memories", "arguments": {"query": "wind"}}'
"""

from __future__ import annotations

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import Implementation


async def call(name: str, version: str, tool: str, arguments: dict[str, object]) -> str:
    """Return the text of the answer. Raises RuntimeError if the tool fails."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "simplemem", "serve"])
    async with Client(server, client_info=Implementation(name=name, version=version)) as client:
        answer = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in answer.content if block.type == "text")
    if answer.is_error:
        raise RuntimeError(text)
    return text


def main() -> None:
    name, version, request = sys.argv[1:]
    asked = json.loads(request)
    print(anyio.run(call, name, version, asked["tool"], asked["arguments"]))


if __name__ == "__main__":
    main()
