"""What Obsidian decides: the meaning of links, the settings of a vault, templates. Pure."""
