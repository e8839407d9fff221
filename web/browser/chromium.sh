#!/usr/bin/env bash
# The browser tests need Chromium: CHROMIUM=/path/to/one, or Debian's package, which is installed here if it can be. Where
# there is also its headless shell, they take 40 percent less CPU time.
set -euo pipefail

chromium="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$chromium" ] && [ -z "${CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-headless-shell >/dev/null ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
if [ ! -x "$chromium" ]; then
  echo "The browser tests need Chromium, and there is none at $chromium." >&2
  echo "Install it (apt-get install chromium), or say where it is: CHROMIUM=/path/to/chromium make test" >&2
  exit 1
fi
