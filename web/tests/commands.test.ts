import { afterEach, expect, test, vi } from "vitest";
import { commandsOf, commandView } from "../src/commands";

afterEach(() => vi.unstubAllGlobals());

test("the command lines in what agents say they lack", () => {
  expect(commandsOf("The program 'codex' is not on the PATH. Install it: npm install -g @agentclientprotocol/codex-acp.")).toEqual(["npm install -g @agentclientprotocol/codex-acp"]);
  expect(commandsOf("Copilot is not signed in. Run: copilot login")).toEqual(["copilot login"]);
  expect(commandsOf("Get a model with `portico model get qwen`, or start Ollama (`ollama serve`); set `enabled`.")).toEqual(["portico model get qwen", "ollama serve"]);
  expect(commandsOf("Install it: see goose's own page for the installer of your system.")).toEqual([]);
});

test("a line is copied, or selected where copying is not allowed", async () => {
  const writeText = vi.fn(async () => undefined);
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  const view = commandView("portico doctor");
  document.body.append(view);
  view.querySelector("button")!.click();
  await vi.waitFor(() => expect(view.querySelector("button")?.textContent).toBe("Copied"));
  expect(writeText).toHaveBeenCalledWith("portico doctor");
  vi.stubGlobal("navigator", {});
  view.querySelector("button")!.click();
  await vi.waitFor(() => expect(String(window.getSelection())).toBe("portico doctor"));
});
