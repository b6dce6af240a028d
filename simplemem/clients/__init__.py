"""The configuration files of clients, and the entry for this server in each of them."""
