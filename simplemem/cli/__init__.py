"""The command line: a module for each group of commands. It calls the store and prints."""
