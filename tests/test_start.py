"""Where the process begins."""

import subprocess
import sys

INTERRUPTED = """
import os, signal, sys
from portico.start import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "portico.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
main()
"""


def test_ctrl_c_is_clean_while_the_command_line_is_still_being_imported() -> None:
    """It ended in a traceback of whatever was being imported."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (130, "")
