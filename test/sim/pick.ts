/** Selects the element that a fault affects, by a number in [0, 1). */

export function pick<Item>(items: readonly Item[], whom: number): Item | undefined {
  return items[Math.floor(whom * items.length)];
}
