"""Long outputs are cut before they are stored. No part of a secret value is left at a cut."""

import asyncio
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.check import TAIL_CHARS, check_command
from portico.features.jobs.evidence import cut_lines
from portico.features.jobs.steps.outcome import OUTPUT_CHARS
from portico.features.secrets.mask import Mask
from portico.kernel.host import Host
from portico.workspace.process import SAID_MAX, command_environment
from tests.free import FREE
from tests.jobs.workflow.playing import finish, start, steps
from tests.jobs.workflow.test_secret_inputs import with_secrets

CANARY = "0123456789abcdefghij"
PARTS = tuple(CANARY[at : at + 5] for at in range(0, len(CANARY), 5))
HALF = OUTPUT_CHARS // 2
PRINT = """
    inputs: {{token: {{type: secret}}}}
    steps:
      - id: long
        may_fail: true
        run: |
          printf '%{before}s'; printf %s {{{{ inputs.token }}}}; printf '%{after}s'
          printf '%{error}s' >&2; printf %s {{{{ inputs.token }}}} >&2; printf '%9000s' >&2
          exit 3
"""


def parts_in(text: str) -> list[str]:
    return [part for part in PARTS if part in text]


# Where the value begins: at the end of the first half of what is kept, and at the start of the last half.
AT_HEAD = [(HALF - left, 3 * HALF, SAID_MAX - left) for left in (1, 10, 19)]
AT_TAIL = [(3 * HALF, HALF - left, 10) for left in (1, 10, 19)]


@pytest.mark.parametrize(("before", "after", "error"), AT_HEAD + AT_TAIL)
async def test_the_output_of_a_failed_command(host: Host, tmp_path: Path, before: int, after: int, error: int) -> None:
    """The middle of the output was left out first, and half of the value that was there was stored."""
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    job = await start(jobs, PRINT.format(before=before, after=after, error=error), tmp_path, token=CANARY)
    await finish(jobs, job)
    found = (await steps(jobs, job))["long"]
    assert (found["outcome"], len(found["output"])) == ("failed", OUTPUT_CHARS)
    assert (parts_in(found["output"]), parts_in(found["reason"])) == ([], [])
    await jobs.close()


REQUEST = """
    inputs: {token: {type: secret}, url: {}}
    steps: [{id: long, may_fail: true, http: {url: "{{ inputs.url }}", headers: {A: "{{ inputs.token }}"}}}]
"""


async def test_the_body_of_a_failed_request(host: Host, tmp_path: Path) -> None:
    """A service that repeats the value, and a body that is read up to the middle of it."""
    await with_secrets(host, tmp_path)
    body = b" " * OUTPUT_CHARS + CANARY[:10].encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n" + f"{len(body):x}\r\n".encode() + body)
        await reader.read()  # until the client has enough
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        jobs = await Jobs.open(host)
        jobs.services.allow_private = ["127.0.0.1"]
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        job = await start(jobs, REQUEST, tmp_path, token=CANARY, url=url)
        await finish(jobs, job)
    found = (await steps(jobs, job))["long"]
    assert (found["outcome"], len(found["output"]) > HALF, parts_in(found["output"])) == ("failed", True, [])
    await jobs.close()


@pytest.mark.parametrize("left", [1, 10, 19])
async def test_the_output_of_a_check(tmp_path: Path, left: int) -> None:
    """Only its end is kept, and it began in the middle of a value."""
    line = f'printf %s "$S"; printf "x%.0s" $(seq {TAIL_CHARS - left}); exit 1'
    mask, env = Mask({"S": [CANARY]}), command_environment(S=CANARY)
    done = await check_command(line, str(tmp_path), FREE, env, "check", mask)
    assert TAIL_CHARS - len("[redacted: S]") <= len(done.output) <= TAIL_CHARS
    assert parts_in(done.output + done.reason) == []


def test_a_diff_is_cut_between_lines() -> None:
    """It is masked when it is shown, so a part of a line cannot be recognized any more."""
    text = f"+ first\n+ {CANARY}\n"
    for chars in range(8, len(text)):
        assert cut_lines(text, chars) == f"+ first\n[... cut after {chars} characters ...]\n"
    assert cut_lines(text, len(text)) == text
