/** Tables of settings. */

import { make } from "../page";
import { FRAME } from "../texts/list";

export function tableOf(names: string[]): HTMLTableElement {
  const table = make("table", "table cards");
  const head = make("tr");
  head.append(...names.map((name) => (name ? make("th", "", name) : make("td"))));
  table.append(head);
  return table;
}

export function row(table: HTMLTableElement, ...cells: (string | HTMLElement)[]): void {
  const found = make("tr");
  found.append(
    ...cells.map((cell, index) => {
      const each = make("td");
      const name = table.rows[0]?.cells[index]?.textContent;
      if (name) each.dataset["name"] = name; // where the head has no room
      each.append(cell);
      return each;
    }),
  );
  table.append(found);
}

export function wrap(table: HTMLElement): HTMLElement {
  const scroll = make("div", "scroll-x");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", FRAME.table);
  scroll.append(table);
  return scroll;
}
