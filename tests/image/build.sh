#!/usr/bin/env bash
# Builds the images of Dockerfile and Dockerfile.agents and starts them, without any image registry: the base is made of
# Debian's packages, the wheels of all dependencies lie beside ours, and Node is the one of the machine. The agents come
# from npm. Needs root, mmdebstrap, buildah and Node; two to seven minutes.
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
trap '$buildah rm --all >/dev/null 2>&1 || true; rm -rf "$work"' EXIT # a container may still be mounted

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
$buildah rm "$container" >/dev/null

echo "Adding the agents ..."
node=tests/live/node_modules/node22/bin/node # an agent needs 22 or newer
[ -x "$node" ] || node=$(command -v node)
mkdir -p "$work/node/local/bin" "$work/node/local/lib/node_modules"
cp -L "$node" "$work/node/local/bin/node"
cp -R "$(npm root --global)/npm" "$work/node/local/lib/node_modules/npm"
printf 'FROM scratch\nADD local /usr/local\n' >"$work/Containerfile"
$buildah bud --quiet --tag portico-node --file "$work/Containerfile" "$work/node" >/dev/null
# npm gets the settings of the machine, and the certificates of its proxy, for the build alone.
settings=$(npm config get userconfig)
{ [ ! -f "$settings" ] || cat "$settings"; } >"$work/npmrc"
reach=(--volume "$work/npmrc:/root/.npmrc:ro")
if [ -f "${NODE_EXTRA_CA_CERTS:-}" ]; then
  printf '\ncafile=/root/certificates.pem\n' >>"$work/npmrc"
  reach+=(--volume "$NODE_EXTRA_CA_CERTS:/root/certificates.pem:ro")
fi
$buildah bud --quiet --format docker --build-arg HOST=localhost/portico --build-arg NODE=localhost/portico-node "${reach[@]}" \
  --tag portico-agents --file Dockerfile.agents "$work/node" >/dev/null
container=$($buildah from --quiet localhost/portico-agents)
$buildah run --user 10001:10001 "$container" -- sh -c '
  set -e
  export HOME=/data/agents-home
  portico agents list | tee /tmp/agents
  grep -qP "acp:opencode\tthere" /tmp/agents
  grep -qP "acp:claude\tthere" /tmp/agents
  opencode --version
'
echo "The images work."
