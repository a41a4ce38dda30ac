/**
 * Applies updates to a Yjs document within limits on conflicts and nesting, which several updates may build together.
 * The invariant: an update that exceeds a limit stops with `UpdateRefused` before the item that exceeds it, so the part
 * of it that the document has is complete. The caller discards the document or stops using it.
 *
 * Yjs looks for the place of an insert by walking from its left to its right origin, at about 0.4 µs a step. Only the
 * document knows that distance, so it is measured during the walk.
 */

import * as Y from "yjs";

/** Maximum number of steps between the origins of all inserts of one update. Measured: 250,000 take Yjs 0.1 s, and 2.2 million 0.8 s. */
export const HOPS_MAX = 250_000;
/** Maximum nesting of types. Measured: deleting 2,000 nested types is harmless, and 2,500 overflow the stack of Node. */
export const NESTING_MAX = 500;

/** An update exceeds a limit. */
export class UpdateRefused extends Error {
  override readonly name = "UpdateRefused";
}

/**
 * Runs `apply`, which calls `Y.applyUpdate` within a transaction or on a document without observers, and calls
 * `nextUpdate` before each further update. Synchronous only. The limits apply only during this call.
 */
export function withinBounds(apply: (nextUpdate: () => void) => void, hopsMax = HOPS_MAX): void {
  const { prototype } = Y.Item;
  const { integrate } = prototype;
  let hops = 0;
  prototype.integrate = function (this: Y.Item, transaction: Y.Transaction, offset: number): void {
    hops += hopsOf(this, transaction.doc, offset, hopsMax - hops);
    if (hops > hopsMax) throw new UpdateRefused(`its inserts conflict with too many others: Yjs would need more than ${hopsMax} steps`);
    if (this.content instanceof Y.ContentType && nestingOf(this) > NESTING_MAX)
      throw new UpdateRefused(`its types lie in each other more than ${NESTING_MAX} deep`);
    integrate.call(this, transaction, offset);
  };
  try {
    apply(() => (hops = 0));
  } finally {
    prototype.integrate = integrate;
  }
}

/** The number of types around the item, itself included. */
export function nestingOf(item: Y.Item): number {
  let nesting = 0;
  for (let at: Y.Item | null = item; at !== null && nesting <= NESTING_MAX; nesting += 1) {
    at = at.parent instanceof Y.AbstractType ? at.parent._item : null;
  }
  return nesting;
}

/** The number of items between the item's origins, up to one more than `hopsMax`. */
function hopsOf(item: Y.Item, doc: Y.Doc, offset: number, hopsMax: number): number {
  if (!(item.parent instanceof Y.AbstractType)) return 0;
  let hops = 0;
  for (let at = firstBetween(item, item.parent, doc, offset); at !== null && at !== item.right && hops <= hopsMax; at = at.right) hops += 1;
  return hops;
}

/** Like `Item.integrate` of Yjs. `offset`: the document has this much of the item. */
function firstBetween(item: Y.Item, parent: Y.AbstractType<unknown>, doc: Y.Doc, offset: number): Y.Item | null {
  if (offset > 0) return Y.getItem(doc.store, Y.createID(item.id.client, item.id.clock + offset - 1)).right;
  if (item.left !== null) return item.left.right;
  if (item.parentSub === null) return parent._start;
  let first = parent._map.get(item.parentSub) ?? null;
  while (first !== null && first.left !== null) first = first.left;
  return first;
}
