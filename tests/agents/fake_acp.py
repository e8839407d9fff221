"""An ACP agent that does what the prompt says, step by step: also what no decent agent does. Only the standard library.

The prompt is a JSON list of steps, `[name, argument...]`. Variables of its environment make it misbehave before any
prompt: FAKE_DIE=METHOD dies on that request, FAKE_DEAF=1 never answers a cancel, FAKE_STORE=FOLDER keeps sessions,
FAKE_CAPS=JSON replaces its capabilities, FAKE_VERSION=N its protocol, FAKE_OPTIONS=JSON are options of its sessions,
FAKE_LATE=1 answers session/load first and tells the history afterwards, FAKE_LIST=FOLDER lists the stored sessions
(FAKE_COUNT=N: each with N messages).
"""

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True},
    "sessionCapabilities": {"close": {}},
}
OPTIONS = [
    {"optionId": "zz", "name": "No", "kind": "reject_once"},
    {"optionId": "yy", "name": "Always", "kind": "allow_always"},
    {"optionId": "xx", "name": "Yes", "kind": "allow_once"},
]


class Fake:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.answers: dict[int, queue.Queue[Json]] = {}
        self.count = 0
        self.cancelled = threading.Event()
        self.servers: list[Json] = []
        self.folders: list[str] = []
        self.untold: list[str] = []
        self.left: list[Any] = []
        self.chosen: dict[str, Json] = {}
        self.cwds: dict[str, str] = {}
        self.here = threading.local()  # a thread serves one request, for one session
        store = os.environ.get("FAKE_STORE")
        self.store = Path(store) if store else None

    # -- the wire ----------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        with self.lock:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()

    def say(self, message: Json) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def update(self, what: str, /, **fields: Any) -> None:
        self.update_of(self.here.session, what, **fields)

    def update_of(self, session: str, what: str, /, **fields: Any) -> None:
        update = {"sessionUpdate": what, **fields}
        self.say({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def ask(self, method: str, *meanwhile: Json, **params: Any) -> Json:
        with self.lock:
            self.count += 1
            ident = self.count
        box = self.answers[ident] = queue.Queue()
        self.say({"id": ident, "method": method, "params": {"sessionId": self.here.session, **params}})
        for update in meanwhile:
            self.update("tool_call_update", **update)
        return box.get()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self.answers.pop(message["id"]).put(message)
            elif message["method"] == os.environ.get("FAKE_DIE"):
                die(3)
            elif message["method"] == "session/cancel":
                if not os.environ.get("FAKE_DEAF"):
                    self.cancelled.set()
            else:
                threading.Thread(target=self.serve, args=(message,), daemon=True).start()

    # -- what it serves ----------------------------------------------------------------------------------------

    def serve(self, message: Json) -> None:
        method, params = message["method"], message["params"]
        self.here.session = params.get("sessionId", "")
        try:
            result = self.result(method, params)
        except Refusal as refusal:
            error = {"code": refusal.code, "message": refusal.text, "data": refusal.data}
            self.say({"id": message["id"], "error": error})
        except Exception:  # noqa: BLE001 - told, then the end
            traceback.print_exc()
            die(9)  # a test must not wait for a thread that is gone
        else:
            self.say({"id": message["id"], "result": result})
            if method == "session/prompt":
                self.go_on()

    def result(self, method: str, params: Json) -> Json:
        match method:
            case "initialize":
                capabilities = json.loads(os.environ.get("FAKE_CAPS") or json.dumps(CAPABILITIES))
                methods = [{"id": "key", "name": "A key"}]
                info = {"name": "fake", "version": "1.2"}
                return {
                    "protocolVersion": int(os.environ.get("FAKE_VERSION", "1")),
                    "agentCapabilities": capabilities,
                    "authMethods": methods,
                    "agentInfo": info,
                }
            case "authenticate":
                os.environ.pop("FAKE_LOCKED", None)
                return {}
            case "session/new":
                return self.new(params)
            case "session/load" | "session/resume":
                return self.load(params)
            case "session/fork":
                return self.fork(params)
            case "session/list":
                return self.list(params)
            case "session/prompt":
                return self.prompt(params)
            case "session/set_model" | "session/set_mode" | "session/set_config_option":
                chosen = self.chosen.setdefault(params["sessionId"], {})
                chosen[params.get("configId", method)] = (
                    params.get("modelId") or params.get("modeId") or params.get("value")
                )
                return {}
            case "session/close":
                return {}
        self.tell(1)
        raise Refusal(-32601, "Method not found")

    def new(self, params: Json) -> Json:
        if os.environ.get("FAKE_LOCKED"):
            raise Refusal(-32000, "Authentication required")
        if words := os.environ.get("FAKE_REFUSES"):
            raise Refusal(-32603, words)
        if kind := os.environ.get("FAKE_AUTH_STATUS"):
            status = {"method": "_auth/status_update", "params": {"authStatus": {"kind": kind}}}
            if late := os.environ.get("FAKE_AUTH_LATE"):  # seconds after the session is open
                threading.Timer(float(late), lambda: self.say(status)).start()
            else:
                self.say(status)
        self.servers = params["mcpServers"]
        self.folders = params.get("additionalDirectories", [])
        self.here.session = f"fake-{os.getpid()}-{time.monotonic_ns()}"
        self.cwds[self.here.session] = params["cwd"]
        self.keep()
        models = [{"modelId": "slow", "name": "Slow"}, {"modelId": "fast", "name": "Fast"}]
        modes = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
        return {
            "sessionId": self.here.session,
            "models": {"currentModelId": "fast", "availableModels": models},
            "modes": {"currentModeId": "ask", "availableModes": modes},
            "configOptions": json.loads(os.environ.get("FAKE_OPTIONS", "[]")),
        }

    def list(self, params: Json) -> Json:
        """The sessions of the store, FAKE_PAGE per page, all in the folder FAKE_LIST. FAKE_SLOW seconds later."""
        time.sleep(float(os.environ.get("FAKE_SLOW", "0")))
        files = sorted(self.store.iterdir()) if self.store is not None and self.store.exists() else []
        first, count = int(params.get("cursor") or 0), int(os.environ.get("FAKE_PAGE", "100"))
        page: Json = {"sessions": [self.entry(path) for path in files[first : first + count]]}
        return {**page, "nextCursor": str(first + count)} if first + count < len(files) else page

    def entry(self, path: Path) -> Json:
        lines = path.read_text().split("\n")
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
        title, cwd = next(filter(None, lines), ""), os.environ["FAKE_LIST"]
        meta = {"messageCount": int(os.environ.get("FAKE_COUNT", 2 * (len(lines) - 1)))}
        return {"sessionId": path.name, "cwd": cwd, "title": title, "updatedAt": changed, "_meta": meta}

    def fork(self, params: Json) -> Json:
        assert self.store is not None
        made = self.new(params)
        (self.store / self.here.session).write_text((self.store / params["sessionId"]).read_text())
        return made

    def keep(self, prompt: str = "") -> None:
        if self.store:
            self.store.mkdir(exist_ok=True)
            with (self.store / self.here.session).open("a") as file:
                file.write(prompt + "\n")

    def load(self, params: Json) -> Json:
        self.servers = params["mcpServers"]
        self.folders = params.get("additionalDirectories", [])
        if self.store is None or not (self.store / self.here.session).exists():
            raise Refusal(-32602, "Invalid params", {"details": "no such session"})
        self.untold = (self.store / self.here.session).read_text().splitlines()
        if not os.environ.get("FAKE_LATE"):
            self.tell(len(self.untold))
        return {}

    def tell(self, count: int) -> None:
        """A late agent tells a piece between two requests, and the rest before it obeys a prompt."""
        for line in self.untold[:count]:
            self.update("user_message_chunk", content=text(line))
            self.update("agent_message_chunk", content=text("replayed"))
        del self.untold[:count]

    def prompt(self, params: Json) -> Json:
        if os.environ.get("FAKE_LOCKED_PROMPT"):
            raise Refusal(-32000, "Authentication required")
        self.cancelled.clear()
        self.tell(len(self.untold))
        said = "".join(block.get("text", "") for block in params["prompt"])
        self.keep(said)
        self.blocks = params["prompt"]
        start = max(said.rfind("\n[["), -1 if not said.startswith("[[") else 0)  # not the steps of a retold turn
        reply: Json = {"stopReason": "end_turn"}
        if wanted := re.search(r"create the file (\S+) .* content: (\S+)\.", said):
            self.write_file(params["sessionId"], *wanted.groups())
            return reply
        for step in json.loads(said[start:]) if start >= 0 else [["text", f"You said: {said}"]]:
            if self.cancelled.is_set() and step[0] != "defy":
                return {"stopReason": "cancelled"}
            reply.update(self.step(*step) or {})
        return {"stopReason": "cancelled"} if self.cancelled.is_set() else reply

    def write_file(self, session: str, name: str, word: str) -> None:
        """As a model would that is told to. FAKE_ASKS: `never`, `permission`, `file` (through the client), `after` (it
        asks when it has written); by default it does not write."""
        how, path = os.environ.get("FAKE_ASKS", ""), Path(self.cwds[session]) / name
        call = {"toolCallId": "w", "title": f"Write {name}", "kind": "edit", "rawInput": {"path": str(path)}}
        if how == "after":
            path.write_text(word)
        if how in ("permission", "after"):
            outcome = self.ask("session/request_permission", toolCall=call, options=OPTIONS)["result"]["outcome"]
            if outcome.get("optionId") == "xx":
                path.write_text(word)
        if how == "file":
            self.ask("fs/write_text_file", path=str(path), content=word)
        if how == "never":
            path.write_text(word)

    def step(self, name: str, *rest: Any) -> Json | None:
        match name:
            case "text":
                self.update("agent_message_chunk", content=text(rest[0]), **(rest[1] if len(rest) > 1 else {}))
            case "thought":
                self.update("agent_thought_chunk", content=text(rest[0]))
            case "update":
                self.update(rest[0], **rest[1])
            case "permission" | "silent permission":
                call = {"toolCallId": "call", "title": "Edit a.txt", "kind": "edit", **rest[0]}
                options = rest[1] if len(rest) > 1 else OPTIONS
                answer = self.ask("session/request_permission", *rest[2:], toolCall=call, options=options)
                if name == "permission":
                    self.update("agent_message_chunk", content=text(json.dumps(answer["result"]["outcome"])))
            case "ask":
                answer = self.ask(rest[0], **rest[1])
                self.update("agent_message_chunk", content=text(json.dumps(answer.get("result", answer.get("error")))))
            case "defy":
                self.cancelled.wait()
                return self.step("ask", *rest)
            case "afterwards":
                self.left = list(rest)
            case "terminal":
                self.terminal(*rest)
            case "settings":
                self.update("agent_message_chunk", content=text(json.dumps(self.chosen.get(self.here.session, {}))))
            case "blocks":
                self.update("agent_message_chunk", content=text(json.dumps(self.blocks)))
            case "folders":
                self.update("agent_message_chunk", content=text(json.dumps(self.folders)))
            case "mcp":
                self.update("agent_message_chunk", content=text(self.call_tool(*rest)))
            case "twice":
                with ThreadPoolExecutor() as pool:
                    answers = sorted(pool.map(lambda _: self.call_tool(*rest), range(2)))
                self.update("agent_message_chunk", content=text("|".join(answers)))
            case "big":
                self.update("agent_message_chunk", content=text("x" * rest[0]))
            case "flood":
                for number in range(rest[0]):
                    self.update("agent_message_chunk", content=text(f"{number} "))
            case "half":
                params = {"sessionId": self.here.session, "update": chunk(rest[0])}
                frame = {"method": "session/update", "params": params}
                whole = json.dumps({"jsonrpc": "2.0", **frame}) + "\n"
                self.write(whole[:20])
                time.sleep(0.05)
                self.write(whole[20:])
            case "raw":
                self.write(rest[0])
            case "stderr":
                sys.stderr.write(rest[0] + "\n")
                sys.stderr.flush()
            case "child":
                child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                self.update("agent_message_chunk", content=text(str(child.pid)))
            case "shell":  # its own command, not through the host
                done = subprocess.run(["sh", "-c", rest[0]], capture_output=True, text=True, check=False)
                self.update("agent_message_chunk", content=text(done.stdout + done.stderr))
            case "pid":
                self.update("agent_message_chunk", content=text(str(os.getpid())))
            case "sleep":
                self.cancelled.wait(rest[0])
            case "hang":
                threading.Event().wait()
            case "die":
                die(rest[0] if rest else 1)
            case "shut":
                os.close(1)
                threading.Event().wait()
            case "error":
                raise Refusal(*rest)
            case "reply":
                return rest[0]  # type: ignore[no-any-return]
            case "later":
                session = self.here.session
                threading.Timer(0.05, lambda: self.update_of(session, "state_update", state="idle")).start()
                return {"stopReason": None}
        return None

    def go_on(self) -> None:
        """Asks for something when somebody says that the turn is over, and keeps the answer in its store."""
        left, self.left = self.left, []
        if left and self.store is not None:
            while not (self.store / "over").exists():
                time.sleep(0.01)
            draft = self.store / "answer"
            draft.write_text(json.dumps(self.ask(left[0], **left[1])))
            draft.rename(self.store / "afterwards")

    def terminal(self, command: str, *args: str) -> None:
        made = self.ask("terminal/create", command=command, args=list(args))
        if "error" in made:
            self.update("agent_message_chunk", content=text(made["error"]["message"]))
            return
        ident = made["result"]["terminalId"]
        content = [{"type": "terminal", "terminalId": ident}]
        self.update("tool_call", toolCallId="t", title=command, kind="execute", content=content)
        status = self.ask("terminal/wait_for_exit", terminalId=ident)["result"]
        output = self.ask("terminal/output", terminalId=ident)["result"]["output"]
        self.ask("terminal/release", terminalId=ident)
        self.update("tool_call_update", toolCallId="t", status="completed", rawOutput={"output": output})
        self.update("agent_message_chunk", content=text(f"{status['exitCode']} {output}"))

    def call_tool(self, tool: str, arguments: Json) -> str:
        server = next(each for each in self.servers if each["name"] == "portico")
        headers = {each["name"]: each["value"] for each in server["headers"]}
        params = {"name": tool, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        request = urllib.request.Request(server["url"], body.encode(), {"Content-Type": "application/json", **headers})
        with urllib.request.urlopen(request) as reply:
            return str(json.load(reply)["result"]["content"][0]["text"])


class Refusal(Exception):
    def __init__(self, code: int, text: str, data: Any = None) -> None:
        super().__init__(text)
        self.code, self.text, self.data = code, text, data


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def chunk(said: str) -> Json:
    return {"sessionUpdate": "agent_message_chunk", "content": text(said)}


def die(code: int) -> None:
    sys.stderr.write("fake: I die now\n")
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    Fake().run()
