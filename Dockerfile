# An image of a host. The wheel of `make dist` carries the pages, so nothing is built here:
#   make dist && docker build -t portico .
#   docker run --read-only --tmpfs /tmp -v portico:/data -v "$PWD:/work" -p 127.0.0.1:8888:8888 portico
ARG BASE=python:3.13-slim-bookworm
FROM ${BASE}

# Changes of files are shown with git, in the version of the base. A base without apt brings its own.
# hadolint ignore=DL3008
RUN if command -v git >/dev/null || ! command -v apt-get >/dev/null; then exit 0; fi; \
    apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*

# 1: all wheels lie in dist/, and no index is asked.
ARG PIP_NO_INDEX=
COPY dist/*.whl /tmp/dist/
RUN python3 -m venv /opt/portico \
    && /opt/portico/bin/pip install --no-cache-dir --disable-pip-version-check --find-links /tmp/dist /tmp/dist/portico-*.whl \
    && /opt/portico/bin/python -m compileall -q /opt/portico/lib \
    && rm -rf /tmp/dist \
    && mkdir -p /data /work \
    && chown 10001:10001 /data /work

ENV PATH=/opt/portico/bin:$PATH \
    PORTICO_HOME=/data \
    PORTICO_LOG_FORMAT=json \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /work
VOLUME ["/data"]
EXPOSE 8888

# The root file system can be read-only: what a host writes is in /data.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8888/readyz', timeout=4)"]
CMD ["portico", "serve", "--host", "0.0.0.0", "--allow-remote"]
