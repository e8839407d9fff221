#!/usr/bin/env bash
# Builds the image of the Dockerfile and starts it, without any image registry: the base is made of Debian's packages, and
# the wheels of all dependencies lie beside ours. Needs root, mmdebstrap and buildah; two to seven minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
# In memory where there is plenty: it writes a gigabyte of small files and keeps none of them.
memory=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
shared=$(($(stat --file-system --format '%a * %S' /dev/shm 2>/dev/null || echo 0) >> 30))
limited=$(awk '$2 == "/dev/shm" && $4 ~ /noexec|nodev/' /proc/mounts) # as in many containers
[ "$memory" -ge 8 ] && [ "$shared" -ge 4 ] && [ -z "$limited" ] && [ -z "${TMPDIR:-}" ] && export TMPDIR=/dev/shm
work=$(mktemp -d)
export BUILDAH_ISOLATION=chroot
# Without layers each step would copy everything; they cannot lie on layers themselves, as within a container.
driver=vfs
grep -qw overlay /proc/filesystems && [ "$(stat --file-system --format %T "$work")" != overlayfs ] && driver=overlay
buildah="buildah --storage-driver $driver --root $work/storage --runroot $work/run"
trap 'rm -rf "$work"' EXIT

echo "Making a base of Debian's packages ..."
# Nothing waits for the disk after each file, which the tests beside it would do as well, and nobody reads manuals in it.
options=(--dpkgopt=force-unsafe-io)
for unread in doc man locale; do options+=("--dpkgopt=path-exclude=/usr/share/$unread/*"); done
mmdebstrap --quiet --variant=minbase "${options[@]}" --include=python3,python3-venv,ca-certificates,git bookworm "$work/base.tar"
printf 'FROM scratch\nADD base.tar /\n' >"$work/Containerfile"
$buildah bud --quiet --tag portico-base --file "$work/Containerfile" "$work" >/dev/null
rm "$work/base.tar"

echo "Building the image ..."
mkdir -p "$work/context/dist"
cp Dockerfile .dockerignore "$work/context/"
${PYTHON:-.venv/bin/python} -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --wheel-dir "$work/context/dist" .
$buildah bud --quiet --format docker --build-arg BASE=localhost/portico-base --build-arg PIP_NO_INDEX=1 --tag portico "$work/context" >/dev/null

echo "Starting it ..."
container=$($buildah from --quiet localhost/portico)
$buildah run --user 10001:10001 "$container" -- sh -c '
  set -e
  test "$(id -u)" = 10001
  ! touch /opt/portico/x 2>/dev/null
  portico serve --host 127.0.0.1 --port 8888 &
  for _ in $(seq 100); do
    python -c "import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:8888/readyz\", timeout=4)" 2>/dev/null && ok=1 && break
    sleep 0.1
  done
  test "$ok" = 1
  portico send "read the notes" --no
  portico doctor
  kill %1 2>/dev/null || kill $!
  wait
'
echo "The image works."
