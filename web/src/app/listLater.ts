/** Parts of the list and of a session's menu that are not needed for the first screen, in one file. */

export { Elsewhere, showCommand } from "./elsewhere";
export { matchSection, offerFolders } from "./matches";
