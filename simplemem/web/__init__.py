"""A server over HTTP: MCP, REST and a page in one process.

It listens at a loopback address unless `--http` names another one. Every route except health,
readiness, static files, OAuth metadata and sign-in needs a token.
"""
