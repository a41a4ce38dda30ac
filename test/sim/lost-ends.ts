/**
 * What a room's log has lost with its end: which edits of which writers, and the orders that there were before. An edit
 * may be missing only if it is among them, and what somebody was given is the log's order, or one of these.
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

  /** `kept`: so many of these edits are there still. */
  add(order: readonly Ordered[], kept: number): void {
    this.#orders.push(order);
    for (const { client, counter, payload } of order.slice(kept)) {
      addTo(this.#counters, client, counter);
      for (const { author, index } of keystrokesIn(payload)) addTo(this.#keystrokes, author, index);
    }
  }

  /** How far a writer's edits come that are in the log up to `through`, or behind that were lost. */
  counted(client: ClientId, through: number): number {
    return goOn(this.#counters.get(client), through + 1) - 1;
  }

  /** Of an author of whose keystrokes so many are in the log: how many with those that were lost behind them. */
  typed(author: number, logged: number): number {
    return goOn(this.#keystrokes.get(author), logged);
  }

  /** Whether the log began with this writer's edit before it lost it. */
  began(client: ClientId): boolean {
    return this.#orders.some((order) => order[0]?.client === client);
  }

  /** Whether the log began with another's edit before it lost it. */
  beganWithout(client: ClientId): boolean {
    return this.#orders.some((order) => order[0] !== undefined && order[0].client !== client);
  }

  /** The first edits of an order that there was before, if these are so many and have that content. */
  orderOf(content: Uint8Array, count: number): readonly Ordered[] | undefined {
    const order = this.#orders.find((known) => known.length >= count && beginsWith(known.slice(0, count), content));
    return order === undefined || lengthOf(order, count) !== content.byteLength ? undefined : order.slice(0, count);
  }

  /** Whether these are the first edits of the log before it lost an end, in its order. */
  had(content: Uint8Array): boolean {
    return this.#orders.some((order) => beginsWith(order, content));
  }
}

/** The content that whoever was given the first of these edits has. */
export function beginsWith(order: readonly Ordered[], content: Uint8Array): boolean {
  let at = 0;
  for (const { payload } of order) {
    if (at >= content.byteLength) break;
    for (let index = 0; index < payload.byteLength; index++) if (content[at + index] !== payload[index]) return false;
    at += payload.byteLength;
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
