"""Call one tool of the vault in the current folder, as an agent does in a tutorial.

python docs/call_tool.py NAME VERSION '{"tool": "search_memories", "arguments": {"query": "wind"}}'
"""

from __future__ import annotations

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import Implementation


async def call(name: str, version: str, tool: str, arguments: dict[str, object]) -> str:
    """Call a tool as a client of this name and version, and return the text of its answer.

    Raises:
        RuntimeError: The tool failed.
    """
    server = StdioServerParameters(command=sys.executable, args=["-m", "simplemem", "serve"])
    async with Client(server, client_info=Implementation(name=name, version=version)) as client:
        answer = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in answer.content if block.type == "text")
    if answer.is_error:
        raise RuntimeError(text)
    return text


def main() -> None:
    """Print the answer to the call that the arguments describe."""
    name, version, request = sys.argv[1:]
    call_of_agent = json.loads(request)
    tool = call_of_agent["tool"]
    arguments = call_of_agent["arguments"]
    print(anyio.run(call, name, version, tool, arguments))


if __name__ == "__main__":
    main()
