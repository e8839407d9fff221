/** The workbench: one page, three columns, every place with its own address. */

import { make } from "../page";
import { Shell } from "./shell";

try {
  new Shell().start();
} catch (error) {
  // Nothing works without it, so the page reports it instead of staying white.
  document.getElementById("main")?.append(make("p", "trouble", `The workbench could not start: ${String(error)}`));
  document.body.dataset["at"] = "main";
  throw error;
}
