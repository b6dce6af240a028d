"""The command line: a module a group of commands. It speaks to the store and prints; it decides nothing."""
