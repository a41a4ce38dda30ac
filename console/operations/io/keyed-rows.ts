/** Shows a list whose rows stay the same elements while what they show stays the same thing: so that a focus stays where it is. */

export type Rows<Item> = (items: readonly Item[]) => void;

/** `make`: an empty row for the item of that key; `fill`: what it says now. */
export function keyedRows<Item>(
  list: HTMLElement,
  keyOf: (item: Item) => string,
  make: (item: Item) => HTMLElement,
  fill: (row: HTMLElement, item: Item) => void,
): Rows<Item> {
  const rows = new Map<string, HTMLElement>();
  return (items) => {
    const focused = document.activeElement;
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
    if (focused instanceof HTMLElement && focused.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true }); // It was moved.
  };
}

/** Leaves the text alone where it says so already: a screen reader would read it out again. */
export function say(place: HTMLElement, text: string): void {
  if (place.textContent !== text) place.textContent = text;
}
