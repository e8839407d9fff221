#!/usr/bin/env bash
# Installs the real agents that these tests drive, and acpx with its Node 22, which drives us (about 1.9 GB), into
# node_modules here. Quick the second time.
set -euo pipefail
cd "$(dirname "$0")"

if [ node_modules/.installed -nt package-lock.json ]; then
  exit 0
fi
# Not `npm ci`: a package of acpx names optional parts for systems that not every registry has, and it insists on all.
if ! npm install --no-save --no-audit --no-fund --loglevel=error --ignore-scripts 2>npm-errors.log; then
  cat npm-errors.log >&2
  failed=$(grep -oE "https?://[^ ]+" npm-errors.log | head -1 || true)
  echo "An agent of the tests could not be downloaded${failed:+: $failed}. Its packages are in tests/live/package.json; run make test again." >&2
  rm -f npm-errors.log
  exit 1
fi
rm -f npm-errors.log
# Copilot unpacks itself at its first start: not within a test's time.
copilot=node_modules/@github/copilot-linux-x64/copilot
if [ -x "$copilot" ]; then
  XDG_CACHE_HOME="$PWD/node_modules/.cache" HOME="$PWD/node_modules/.cache" "$copilot" --no-auto-update --version >/dev/null
fi
touch node_modules/.installed
