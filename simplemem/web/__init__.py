"""A server over HTTP: MCP, REST and a page in one process.

It listens only at a loopback address unless it is told otherwise. Every route except health,
readiness, static files and sign-in needs a token.
"""
