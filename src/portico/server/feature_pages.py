"""Pages of the workbench that features declare (`Feature.pages`): which of them are valid, and where their files are.

The attack: a page serves files that are not meant for browsers, or replaces a built-in page. So only the folder of its
module is served, that folder is not the one with the Python code, and the names of built-in pages are reserved.
"""

import logging
import re
import sys
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from portico.kernel.feature import Feature, WorkbenchPage
from portico.kernel.host import Host

logger = logging.getLogger("portico.features")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
RESERVED = frozenset({"automations", "inbox", "j", "job", "jobs", "more", "new", "s", "session", "settings", "usage"})
"""Pages of the workbench itself (web/src/app/places.ts and router.ts)."""


class FeaturePage(Struct):
    name: str
    """Its path below `/app`."""
    title: str
    icon: str
    module: str
    """Address of its JavaScript module, relative to the root of the host."""


class FeaturePages(Struct):
    pages: list[FeaturePage]


class ServedPage(NamedTuple):
    page: FeaturePage
    folder: Path


def served_pages(host: Host) -> dict[str, ServedPage]:
    """Return the valid pages of all features by name. An invalid one is left out and logged."""
    found: dict[str, ServedPage] = {}
    for feature in host.parts:
        if isinstance(feature, Feature):
            for name, page in feature.pages.items():
                try:
                    if name in found:
                        raise ValueError("Another feature has a page of this name.")
                    found[name] = _served(feature, name, page)
                except ValueError as error:
                    logger.error("the page %r of the feature %r is left out: %s", name, feature.name, error)
    return found


def _served(feature: Feature, name: str, page: WorkbenchPage) -> ServedPage:
    if not _NAME.fullmatch(name):
        raise ValueError("Use a name of up to 32 lower-case letters, digits and hyphens.")
    if name in RESERVED:
        raise ValueError("The workbench has a page of this name. Choose another name.")
    if not page.title.strip():
        raise ValueError("Its title is empty.")
    package = Path(sys.modules[type(feature).__module__].__file__ or "").resolve().parent
    module = (package / page.module).resolve()
    if module.suffix != ".js" or not module.is_file():
        raise ValueError(f"There is no JavaScript module {str(module)!r}.")
    if not module.is_relative_to(package) or module.parent == package:
        raise ValueError("Its module must be in a folder inside the package, such as 'pages/page.js'.")
    address = f"pages/{name}/{module.name}"
    return ServedPage(FeaturePage(name, page.title, page.icon, address), module.parent)
