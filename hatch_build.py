"""Builds the web pages into the package, for whoever installs Portico from its source.

A wheel and an sdist carry the pages as they were built, so installing from those needs no Node. They are ignored by
git, so a checkout builds them here once; an editable install (`make run`) builds them with make instead.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "PORTICO_WITHOUT_PAGES"
NEEDS = (
    "Portico's web pages are not built yet, and building them needs Node 20.19 or newer with npm, which {problem}. "
    f"Install Node and try again, or install a released wheel or sdist, or set {WITHOUT}=1 for a host without pages."
)


class PagesHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        pages = Path(self.root, "src", "portico", "doors", "pages")
        if version == "editable" or (pages / "index.html").is_file() or os.environ.get(WITHOUT):
            return
        npm = shutil.which("npm")
        if npm is None:
            self.app.abort(NEEDS.format(problem="is not on the PATH"))
        self.app.display_info("building Portico's web pages with npm")
        for arguments in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["run", "--silent", "build"]):
            command = [str(npm), *arguments]
            done = subprocess.run(command, cwd=Path(self.root, "web"), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                self.app.display_error((done.stdout + done.stderr).strip())
                self.app.abort(NEEDS.format(problem=f"failed at `npm {' '.join(arguments)}` (its output is above)"))
