"""Memory, for a process that runs for weeks and keeps thousands of events in its hands at once."""

import contextlib
import gc

_WHILE_STARTING = 200_000
"""More than all imports make: nothing of it is garbage, and to look through it again and again was 20 of 280 ms."""

_YOUNG = 20_000
"""New containers before a collection. Python's 700 are fewer than one batch of the log has, so every batch was looked
at again and again while it was alive."""


_LARGE = 256 * 1024
"""Blocks from here on go back to the system when they are freed. glibc begins at half of it, and raises it to 32 MB
when it sees some: what was read once for slow readers then stayed, 5 MB for 400 of them. Half of it is about what a
client has missed when it comes back, and each copy on fresh pages was a third of that answer's cost."""
_SPARE = 4 * _LARGE
"""What stays free at the end of the heap. With less the copies of such an answer went back together, and each time 35
pages of 4 KB came anew: a third of its cost."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h


def begin() -> None:
    """Before everything is imported."""
    gc.set_threshold(_WHILE_STARTING, 10, 10)


def settle() -> None:
    """When everything is imported: what is there now is never looked at again, and the rest less often."""
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
    import ctypes  # late: only a host needs it

    with contextlib.suppress(AttributeError, OSError):  # another C library has no such options
        for option, size in ((_TRIM_THRESHOLD, _SPARE), (_MMAP_THRESHOLD, _LARGE)):
            ctypes.CDLL(None).mallopt(option, size)
