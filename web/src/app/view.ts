/** What a view of the workbench is, and what it may use of the frame around it. */

import type { Conversation } from "../conversation/conversation";
import type { SessionState } from "../conversation/state";
import type { Icon } from "../icons";
import type { Composer } from "./composer";
import type { BoardStore } from "./boardStore";
import type { Place, PlaceOf } from "./router";
import type { style } from "./style";

/** A view in the middle that is not a session. */
export interface View {
  element: HTMLElement;
  title: string;
  /** Another place is shown: everything the view started ends. */
  leave?(): void;
  /** The address changed. True: the view shows the new place itself, such as another step of its job. */
  accept?(place: Place): boolean;
  /** The keys Y and N. False: nothing waits here. */
  press?(key: "y" | "n"): boolean;
  /** The keys 1 to 9: an answer of the question that waits here. */
  chooseAnswer?(number: string): boolean;
  /** The keys J and K. */
  stepBy?(by: 1 | -1): void;
}

/** The frame, as far as views know it. */
export interface ViewContext {
  board: BoardStore;
  go(place: Place, replace?: boolean): void;
  /** Sets the title of the page. A view that is no longer shown changes nothing. */
  titled(text: string, view: object): void;
}

/** The tabs of the panel next to a session. */
export type Tab = "changes" | "terminal" | "details";

/** What the panel shows first: the changes of a turn, a file, a line of it. */
export interface Aim {
  turn?: string;
  file?: string;
  line?: number;
}

/** A session that is open, as the panel, menus and keys use it. */
export interface OpenSession {
  readonly id: string;
  readonly state: SessionState | undefined;
  readonly agentName: string;
  readonly element: HTMLElement;
  readonly conversation: Conversation;
  readonly composer: Composer;
  /** Does something for the user, and shows on the session if it failed. */
  attempt(work: () => Promise<unknown>): Promise<boolean>;
  report(text: string): void;
  fork(turn?: string): Promise<boolean>;
  stop(): Promise<boolean>;
}

/** The frame, as far as sessions know it. */
export interface SessionContext extends ViewContext {
  /** Opens the panel at one of its tabs. */
  panelAt(tab: Tab, aim?: Aim): void;
  /** Something about the session in view has changed. */
  changed(view: OpenSession, what: "opened" | "state" | "delta"): void;
}

/** Where a link to it is: in the column of the list, in the bar of a phone, or behind More there. */
export type Link = "side" | "bar" | "more";

export interface PlaceRow<Name extends string = string> {
  title: string;
  icon: Icon;
  /** Shown in the list of keys; two letters are pressed one after the other. */
  key?: string;
  links?: Link[];
  /** The link shows how many items need the user. */
  counts?: boolean;
  /** Style sheets, next to the one that all places need. */
  styles?: Parameters<typeof style>[0][];
  /** Its code is loaded with its first use. */
  view(context: ViewContext, place: PlaceOf<Name>): Promise<View>;
}

/** A place with what its links need. */
export interface Listed {
  name: string;
  row: PlaceRow;
  /** Where its link leads. */
  place: Place;
}
