"""Memory tuning for a process that runs for weeks and holds thousands of events in memory."""

import contextlib
import gc

_WHILE_STARTING = 200_000
"""More objects than all imports create: none of them is garbage, and scanning them repeatedly took 20 of 280 ms."""

_YOUNG = 20_000
"""New containers before a collection. Python's 700 are fewer than one batch of the log has, so every batch was scanned
repeatedly while it was alive."""


_LARGE = 256 * 1024
"""Blocks of at least this size are returned to the system when freed. glibc starts at half of it, and raises it up to
32 MB when such blocks are freed: what was read once for slow readers then stayed, 5 MB for 400 of them. Half of it is
about what a client has missed when it reconnects, and copies on fresh pages were a third of the cost of that answer."""
_SPARE = 4 * _LARGE
"""Free memory to keep at the end of the heap. With less, the copies of such an answer were returned together, and 35
pages of 4 KB were allocated again each time: a third of its cost."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h


def begin() -> None:
    """Call before all imports."""
    gc.set_threshold(_WHILE_STARTING, 10, 10)


def settle() -> None:
    """Call after all imports: existing objects are never scanned again, and new ones less often."""
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
    import ctypes  # late: only a host needs it

    with contextlib.suppress(AttributeError, OSError):  # another C library has no such options
        for option, size in ((_TRIM_THRESHOLD, _SPARE), (_MMAP_THRESHOLD, _LARGE)):
            ctypes.CDLL(None).mallopt(option, size)
