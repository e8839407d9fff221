/**
 * Keeps xterm.js to the pages' policy.
 *
 * xterm.js styles itself with `<style>` elements and `style` attributes. The policy forbids both, since text that becomes
 * style is how a foreign text takes over a page. Sheets made by a script, and properties set by one, are allowed: so what
 * it writes goes there. It takes all its elements from the page's document (its `documentOverride` is for another window
 * and reaches only some of them), so it is that document which hands out elements that obey.
 */

type Create = (tag: string, options?: ElementCreationOptions) => HTMLElement;

export function keepStrict(document: Document): void {
  if (Object.hasOwn(document, "createElement")) return;
  const create: Create = Document.prototype.createElement.bind(document);
  const strictly: Create = (tag, options) => {
    if (tag === "style") return sheetElement(document, create);
    const element = create(tag, options);
    if (tag === "span") element.setAttribute = setAttribute;
    return element;
  };
  document.createElement = strictly as Document["createElement"];
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

/** Replaces the `<style>` element and passes its text to a sheet of the document. */
function sheetElement(document: Document, create: Create): HTMLElement {
  const element = create("template");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { get: () => "", set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
