"""What one person sees of a host, how much they may have, and when it goes.

Also who they are: people and tokens, in two files of the home folder. May import the core, `home`, `settings` and
`terminals`; who owns what is the core's rule (`host/ownership.py`).
"""
