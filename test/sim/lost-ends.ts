/**
 * The records that a room's log lost from its end: the lost edits of each writer, and the complete order before each
 * loss. An edit may be missing only if it is one of these. The edits that a tab received must be a prefix of the log's
 * current order or of one of the earlier orders.
 */

import type { ClientId } from "../../shared/ids.ts";
import { keystrokesIn } from "./keystrokes.ts";

export type Ordered = { readonly client: ClientId; readonly counter: number; readonly payload: Uint8Array };

export class LostEnds {
  readonly #orders: (readonly Ordered[])[] = [];
  readonly #counters = new Map<ClientId, Set<number>>();
  readonly #keystrokes = new Map<number, Set<number>>();

  get hasAny(): boolean {
    return this.#orders.length > 0;
  }

  /** `kept`: count of edits of this order that the log still has. */
  add(order: readonly Ordered[], kept: number): void {
    this.#orders.push(order);
    for (const { client, counter, payload } of order.slice(kept)) {
      addTo(this.#counters, client, counter);
      for (const { author, index } of keystrokesIn(payload)) addTo(this.#keystrokes, author, index);
    }
  }

  /** Highest counter up to which all edits of a writer are in the log or lost. `through`: highest counter in the log. */
  counted(client: ClientId, through: number): number {
    return goOn(this.#counters.get(client), through + 1) - 1;
  }

  /** Count of an author's keystrokes that are in the log or lost. `logged`: count in the log. */
  typed(author: number, logged: number): number {
    return goOn(this.#keystrokes.get(author), logged);
  }

  hadKeystroke(author: number, index: number): boolean {
    return this.#keystrokes.get(author)?.has(index) === true;
  }

  /** Whether an earlier order began with this writer's edit. */
  began(client: ClientId): boolean {
    return this.#orders.some((order) => order[0]?.client === client);
  }

  /** Whether an earlier order began with another writer's edit. */
  beganWithout(client: ClientId): boolean {
    return this.#orders.some((order) => order[0] !== undefined && order[0].client !== client);
  }

  /** Returns the first `count` edits of an earlier order if their payloads are exactly `content`. */
  orderOf(content: Uint8Array, count: number): readonly Ordered[] | undefined {
    const order = this.#orders.find((known) => known.length >= count && beginsWith(known.slice(0, count), content));
    return order === undefined || lengthOf(order, count) !== content.byteLength ? undefined : order.slice(0, count);
  }

  /** Whether an earlier order begins with `content`. */
  had(content: Uint8Array): boolean {
    return this.#orders.some((order) => beginsWith(order, content));
  }
}

/** `Buffer.compare` is faster for payloads of this size, and slower for keystrokes. */
const LARGE_BYTES_MIN = 64;

/** Whether `content` is the concatenated payloads of the first edits of `order`. */
export function beginsWith(order: readonly Ordered[], content: Uint8Array): boolean {
  let at = 0;
  for (const { payload } of order) {
    if (at >= content.byteLength) break;
    const end = at + payload.byteLength;
    if (payload.byteLength >= LARGE_BYTES_MIN && Buffer.compare(payload, content.subarray(at, end)) !== 0) return false;
    for (let index = 0; payload.byteLength < LARGE_BYTES_MIN && index < payload.byteLength; index++)
      if (content[at + index] !== payload[index]) return false;
    at = end;
  }
  return at === content.byteLength;
}

function lengthOf(order: readonly Ordered[], count: number): number {
  return order.slice(0, count).reduce((bytes, { payload }) => bytes + payload.byteLength, 0);
}

function addTo<Key>(sets: Map<Key, Set<number>>, key: Key, number: number): void {
  const known = sets.get(key);
  if (known === undefined) sets.set(key, new Set([number]));
  else known.add(number);
}

function goOn(lost: ReadonlySet<number> | undefined, from: number): number {
  let next = from;
  while (lost?.has(next) === true) next += 1;
  return next;
}
