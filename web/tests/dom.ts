/** What tests need of a document: dialogs, which jsdom does not show, and finding things as a user does, by their text. */

export function stubDialogs(): void {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  };
  Element.prototype.scrollIntoView ??= () => undefined;
}

/** The text of an element with single spaces; undefined: there is none. */
export function textOf(selector: string, within: ParentNode = document): string | undefined {
  return within.querySelector(selector)?.textContent?.replace(/\s+/g, " ").trim();
}

export function textsOf(selector: string, within: ParentNode = document): string[] {
  return [...within.querySelectorAll(selector)].map(({ textContent }) => textContent?.replace(/\s+/g, " ").trim() ?? "");
}

/** The button with this text or name. */
export function button(name: string, within: ParentNode = document): HTMLButtonElement {
  const found = [...within.querySelectorAll<HTMLButtonElement>("button")].find((each) => each.getAttribute("aria-label") === name || each.textContent?.trim() === name);
  if (!found) throw new Error(`There is no button ${name} among ${textsOf("button", within).join(", ")}`);
  return found;
}

/** As typed by a user. */
export function type(field: Element, text: string): void {
  (field as HTMLInputElement).value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** As chosen by a user. */
export function choose(field: Element, value: string): void {
  (field as HTMLSelectElement).value = value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

export function submit(form: Element): void {
  form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
}
