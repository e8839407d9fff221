"""The certificates that connections to the world outside are checked with, read once."""

import functools
import ssl

import httpx


@functools.cache
def certificates() -> ssl.SSLContext:
    """Reading the system's certificates takes 20 ms: once for all, and not in the event loop."""
    return httpx.create_ssl_context()
