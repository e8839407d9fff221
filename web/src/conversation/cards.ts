/** Everything that is a card, for one chunk of code. */

export { approvalCard, refreshCard, undoButton, verdict } from "./approval";
export { questionCard } from "./question";
