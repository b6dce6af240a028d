"""Servers that agents connect to: tools, resources and prompts put together over a transport. They decide
nothing about memories."""
