"""The Copilot SDK as anybody would use it, in a process of its own: a turn for each line on its input, for
`bench.overhead`. `python -m bench.bare_sdk PROGRAM HOME FOLDER MODEL-URL`
"""

import asyncio
import os
import sys
from typing import Any

import uvloop
from copilot import CopilotClient, RuntimeConnection
from copilot.session_events import AssistantMessageDeltaData, SessionIdleData


async def main(program: str, home: str, folder: str, model: str) -> None:
    connection = RuntimeConnection.for_stdio(path=program)
    client = CopilotClient(connection=connection, env=dict(os.environ), base_directory=home, use_logged_in_user=False)
    await client.start()
    provider: Any = {"type": "openai", "wire_api": "completions", "base_url": f"{model}/v1"}
    session = await client.create_session(
        model="gpt-4.1", streaming=True, working_directory=folder, provider=provider, on_permission_request=None
    )
    idle, count = asyncio.Event(), 0

    def hear(event: Any) -> None:
        nonlocal count
        if isinstance(event.data, AssistantMessageDeltaData):
            count += 1
        elif isinstance(event.data, SessionIdleData):
            idle.set()

    session.on(hear)
    while line := await asyncio.to_thread(sys.stdin.readline):
        idle.clear()
        await session.send(line)
        await idle.wait()
        print(f"done {count}", flush=True)
    await client.force_stop()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
