"""Named groups of hosts that builds need: package registries and the places they download from."""

from collections.abc import Iterable

PRESETS: dict[str, tuple[str, ...]] = {
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "npm": ("registry.npmjs.org", "registry.yarnpkg.com"),
    "crates": ("crates.io", "static.crates.io", "index.crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "github": (
        "github.com",
        "api.github.com",
        "codeload.github.com",
        "objects.githubusercontent.com",
        "raw.githubusercontent.com",
        "release-assets.githubusercontent.com",
    ),
    "debian": ("deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com"),
}


def hosts_of(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(host for name in names for host in PRESETS[name])
