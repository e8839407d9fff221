import { make } from "../page";
import type { Shell, View } from "./shell";

export class StartJob implements View {
  readonly element = make("section", "place");
  readonly title = "Jobs";

  constructor(shell: Shell) {
    void shell;
  }
}
