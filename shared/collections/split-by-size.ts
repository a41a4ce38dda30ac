/** Splits a list into parts of at most `bytesMax`, with at least one item each, for messages that NATS can carry. */
export function splitBySize<Item>(items: readonly Item[], bytesOf: (item: Item) => number, bytesMax: number): Item[][] {
  const parts: Item[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const size = bytesOf(item);
    if (bytes + size > bytesMax) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(item);
    bytes += size;
  }
  return parts;
}
