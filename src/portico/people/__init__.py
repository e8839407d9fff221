"""What one person sees of a host, how much they may have, and when it goes.

May import the core and `terminals`; who owns what is the core's rule (`host/ownership.py`).
"""
