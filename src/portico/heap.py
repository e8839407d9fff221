"""The garbage collector, for a process that runs for weeks and keeps thousands of events in its hands at once."""

import gc

_YOUNG = 20_000
"""New containers before a collection. Python's 700 are fewer than one batch of the log has, so every batch was looked
at again and again while it was alive."""


def settle() -> None:
    """When everything is imported: what is there now is never looked at again, and the rest less often."""
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
