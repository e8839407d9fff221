"""A bound on the time that people's own regular expressions take.

The attack: a rule such as `/^(a+)+$/`, careless or planted, and a command line that was made for it. Python's engine
would run for hours, and the whole host stands still meanwhile. But the engine looks for signals now and then, so a
timer over the process's own computing time can end it. (Threads do not help: the engine holds the lock of them all.)
"""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class RegexTimeout(Exception):
    """It took too long, or there is no way to end it here."""


@contextmanager
def regex_timeout(seconds: float) -> Iterator[None]:
    """Raises `RegexTimeout` inside the block after so much computing. Only the main thread can be interrupted; in any
    other one nothing is tried at all."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise RegexTimeout
    before = signal.signal(signal.SIGVTALRM, _raise)
    collects = gc.isenabled()
    gc.disable()  # what is raised while it runs callbacks would be lost, and it would count as computing
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
