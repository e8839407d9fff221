/** The workbench, as far as keys and the palette use it. */

import type { Entry } from "./entries";
import type { BoardStore } from "./boardStore";
import type { ListView } from "./list";
import type { Panel } from "./panel";
import type { Place } from "./router";
import type { OpenSession, View } from "./view";

export interface Workbench {
  readonly board: BoardStore;
  readonly list: ListView;
  readonly panel: Panel;
  readonly session: OpenSession | undefined;
  readonly view: View | undefined;
  /** What the keys Y, N and 1 to 9 answer. */
  readonly answering: Pick<View, "press" | "chooseAnswer"> | undefined;
  go(place: Place, replace?: boolean, hash?: string): void;
  open(entry: Entry, byKey?: boolean): void;
  nextNeeded(): boolean;
  toggleSide(): void;
  archive(): Promise<void>;
  lettersOn(): boolean;
}

export interface Key {
  keys: string;
  text: string;
  /** False: it does not apply now, and the key stays the browser's. */
  run?(workbench: Workbench): boolean | void;
}
