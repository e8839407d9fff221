"""A timeout for regular expressions written by users.

The attack: a rule such as `/^(a+)+$/`, by mistake or on purpose, and a command line that makes it slow. Python's engine
would run for hours and block the whole host. The engine checks for signals regularly, so a timer on the CPU time of the
process can interrupt it. (Threads do not help: the engine holds the GIL.)
"""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class RegexTimeout(Exception):
    """The expression took too long, or it cannot be interrupted in this thread."""


@contextmanager
def regex_timeout(seconds: float) -> Iterator[None]:
    """Raise `RegexTimeout` inside the block after this much CPU time. Only the main thread can be interrupted; in any
    other thread it is raised immediately."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise RegexTimeout
    before = signal.signal(signal.SIGVTALRM, _raise)
    collects = gc.isenabled()
    gc.disable()  # an exception raised in its callbacks would be lost, and its time would count
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
        if collects:
            gc.enable()


def _raise(number: int, frame: FrameType | None) -> None:
    raise RegexTimeout
