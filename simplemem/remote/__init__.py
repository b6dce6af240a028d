"""Asking a service over the network, politely: retries, a time budget, a pause when it is down, keys kept secret.

What is asked and what an answer means is the business of who asks. Nothing here knows a note, and nothing that a
service or a note said can make a message carry a key or a note's text.
"""
