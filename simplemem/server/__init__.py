"""MCP servers: a profile, its tools, resources and prompts, over any transport.

They decide nothing about notes: every call of a tool goes to the store.
"""
