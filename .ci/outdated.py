"""`make outdated`: which libraries that Portico names itself have a newer release. Exit code 1 if there is one, so a
schedule can run it. What others pull in follows by itself."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def python_packages() -> list[tuple[str, str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *(each for group in project["optional-dependencies"].values() for each in group)]
    ours = {re.split(r"[^A-Za-z0-9._-]", each)[0].lower() for each in named}
    command = [sys.executable, "-m", "pip", "list", "--outdated", "--format", "json", "--disable-pip-version-check"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return [(each["name"], each["version"], each["latest_version"]) for each in found if each["name"].lower() in ours]


def node_packages(folder: str) -> list[tuple[str, str, str]]:
    """npm says with its exit code that there are some."""
    done = subprocess.run(["npm", "outdated", "--json"], cwd=ROOT / folder, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    if "error" in found:
        raise SystemExit(f"npm outdated in {folder} failed: {found['error'].get('summary')}")
    return [
        (f"{folder}: {name}", each.get("current", "not installed"), each["latest"])
        for name, each in found.items()
        if is_newer(each["latest"], each.get("current", "0"))
    ]


def is_newer(version: str, than: str) -> bool:
    """npm's latest is the newest that this Node can run: it may be older than what is there for another Node."""
    first, second = ([int(number) for number in re.findall(r"\d+", each)] for each in (version, than))
    return first > second


def main() -> int:
    rows = [*python_packages(), *node_packages("web"), *node_packages("tests/live"), *node_packages("tests/clients")]
    for name, installed, newest in sorted(rows):
        print(f"{name}\t{installed}\t{newest}")
    print(f"{len(rows)} of the named libraries have a newer release." if rows else "Everything is the newest release.")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
