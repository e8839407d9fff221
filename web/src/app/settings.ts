import { make } from "../page";
import type { Shell, View } from "./shell";

export class SettingsView implements View {
  readonly element = make("section", "place");
  readonly title = "Settings";

  constructor(section: string, shell: Shell) {
    void [section, shell];
  }
}
