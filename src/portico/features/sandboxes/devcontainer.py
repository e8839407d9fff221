"""The image of a project's `.devcontainer/devcontainer.json`. Other parts of the file have no effect."""

import json
import os
import re

from portico.kernel.errors import SandboxUnavailable

_FILES = (".devcontainer/devcontainer.json", ".devcontainer.json")
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}\Z")


def image_for(setting: str, folder: str) -> str:
    """Return the image of a sandbox in this folder. Raises SandboxUnavailable if none is named."""
    found = setting or _named(folder)
    if not _IMAGE.match(found):
        raise SandboxUnavailable(f"The image {found!r} of the sandbox is no name of an image. Change sandbox.image.")
    return found


def _named(folder: str) -> str:
    for name in _FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return _image(path)
    raise SandboxUnavailable(
        "sandbox.backend is 'container', and no image is named. To fix it: set sandbox.image, or add"
        f" {_FILES[0]} with 'image' to the project."
    )


def _image(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(1_000_000)
        content = json.loads(_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text)))
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(f"{path!r} cannot be read: {error}. Set sandbox.image.") from None
    image = content.get("image") if isinstance(content, dict) else None
    if not isinstance(image, str) or not image:
        raise SandboxUnavailable(
            f"{path!r} names no 'image': images that are built are not supported. Build it, and set sandbox.image."
        )
    return image
