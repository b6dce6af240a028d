"""Servers that agents connect to: a profile over a transport. They decide nothing about memories."""
