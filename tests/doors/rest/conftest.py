"""All tests of this door share one server per module."""

from tests.doors.sharing import anyio_backend, shared

__all__ = ["anyio_backend", "shared"]
