/** Cuts a list into messages that NATS carries: parts of so many bytes at most, each of one item at the least. */
export function inParts<Item>(items: readonly Item[], bytesOf: (item: Item) => number, bytesMax: number): Item[][] {
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
