"""A vault over the network: MCP, REST and a page in one process. Nothing of it is imported by a server over stdio."""
