/** Shows a list. An item keeps its row element while its key stays the same, so that the focus is kept. */

import { escapedMarks } from "../../../shared/display-text.ts";
import { keepFocus } from "./kept-focus.ts";

type KeyedRows<Item> = (items: readonly Item[]) => void;

/** `make`: creates the empty row of an item. `fill`: shows the current values. */
export function keyedRows<Item>(
  list: HTMLElement,
  keyOf: (item: Item) => string,
  make: (item: Item) => HTMLElement,
  fill: (row: HTMLElement, item: Item) => void,
): KeyedRows<Item> {
  const rows = new Map<string, HTMLElement>();
  return (items) => {
    const restoreFocus = keepFocus();
    const keys = new Set(items.map(keyOf));
    for (const [key, row] of rows) {
      if (keys.has(key)) continue;
      row.remove();
      rows.delete(key);
    }
    items.forEach((item, index) => {
      const row = rows.get(keyOf(item)) ?? make(item);
      rows.set(keyOf(item), row);
      fill(row, item);
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
    });
    restoreFocus(); // A moved element loses the focus too.
  };
}

/** Replaces only changed nodes, so that a selection and the position of a screen reader are kept. */
export function setNodes(place: HTMLElement, nodes: readonly Node[]): void {
  nodes.forEach((node, index) => {
    const shown = place.childNodes[index];
    if (shown === undefined) place.append(node);
    else if (!shown.isEqualNode(node)) shown.replaceWith(node);
  });
  while (place.childNodes.length > nodes.length) place.lastChild!.remove();
}

/** Writes only a changed text: otherwise a screen reader would read it again. No name in it reverses the rest. */
export function setText(place: HTMLElement, text: string): void {
  const shown = escapedMarks(text);
  if (place.textContent !== shown) place.textContent = shown;
}
