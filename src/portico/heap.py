"""The garbage collector, for a process that runs for weeks and keeps thousands of events in its hands at once."""

import gc

_WHILE_STARTING = 200_000
"""More than all imports make: nothing of it is garbage, and to look through it again and again was 20 of 280 ms."""

_YOUNG = 20_000
"""New containers before a collection. Python's 700 are fewer than one batch of the log has, so every batch was looked
at again and again while it was alive."""


def begin() -> None:
    """Before everything is imported."""
    gc.set_threshold(_WHILE_STARTING, 10, 10)


def settle() -> None:
    """When everything is imported: what is there now is never looked at again, and the rest less often."""
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
