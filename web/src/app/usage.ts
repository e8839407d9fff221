import { make } from "../page";
import type { View } from "./shell";

export class UsageView implements View {
  readonly element = make("section", "place");
  readonly title = "Usage";
}
