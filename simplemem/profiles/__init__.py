"""One package per server that simplemem emulates."""
