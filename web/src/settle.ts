/**
 * What has just opened takes no click: it was meant for what was there before.
 *
 * The mistake it prevents: the second click of a double click answers a card or chooses from a menu before it is read.
 */

/** Milliseconds. Longer than the pause in a double click (300 ms on most systems), shorter than reading a line. */
const SETTLE_MS = 400;
const guarded = new WeakSet<HTMLElement>();

/** Call it when `element` opens, and when its buttons change. Until it has settled, its buttons take no pointer (theme.css) and no key. */
export function ignoreEarlyClicks(element: HTMLElement): void {
  const since = String(performance.now());
  element.dataset["since"] = since;
  element.dataset["settling"] = "";
  setTimeout(() => {
    if (element.dataset["since"] === since) delete element.dataset["settling"];
  }, SETTLE_MS);
  if (guarded.has(element)) return;
  guarded.add(element);
  // Keys click as well. The page's own code (`isTrusted` is false) has checked before.
  element.addEventListener("click", stopEarly, true);
}

export function takesClicks(element: HTMLElement): boolean {
  return performance.now() - Number(element.dataset["since"]) > SETTLE_MS;
}

function stopEarly(event: MouseEvent): void {
  const { target, currentTarget, isTrusted } = event;
  if (!isTrusted || takesClicks(currentTarget as HTMLElement) || !(target as Element).closest("button, a, [role=menuitem]")) return;
  // Enter in a field clicks the form's button, and typing takes longer than this.
  if (event.detail === 0 && document.activeElement?.matches("input, textarea") && (currentTarget as Node).contains(document.activeElement)) return;
  event.preventDefault();
  event.stopPropagation();
}
