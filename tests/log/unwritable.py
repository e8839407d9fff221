"""Run by a test as its own process: opens a log that its user may only read. Root may write everything, so a root
process becomes nobody first."""

import asyncio
import importlib
import os
import sys
from pathlib import Path

from portico.kernel.errors import LogUnavailable
from portico.kernel.log.sqlite import SqliteLog

importlib.import_module("concurrent.futures.thread")  # now: nobody may not look into root's own interpreter
if os.geteuid() == 0:
    os.setuid(65534)
try:
    asyncio.run(SqliteLog.open(Path(sys.argv[1])))
except LogUnavailable as error:
    print(error.message)
