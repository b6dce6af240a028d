"""Servers that agents connect to: a face over a transport. They decide nothing about memories."""
