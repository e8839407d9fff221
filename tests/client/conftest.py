"""The same shared server as the tests of the doors have."""

from tests.doors.sharing import anyio_backend, shared

__all__ = ["anyio_backend", "shared"]
