import { make } from "../page";
import type { Shell, View } from "./shell";

export class JobView implements View {
  readonly element = make("section", "place");
  readonly title = "Job";

  constructor(
    readonly id: string,
    step: string | undefined,
    shell: Shell,
  ) {
    void [step, shell];
  }

  choose(step?: string): void {
    void step;
  }
}
