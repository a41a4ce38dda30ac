/**
 * The entry of a room's history as this service knows it, and the objects that it may or may not name. The invariant: a
 * write replaces exactly the known revision. If another service has replaced the entry, it is read again.
 */

import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import { LazySet } from "../../shared/collections/lazy-map.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { StoredHistory } from "../ports.ts";
import { type History, type HistoryPolicy, objectsOf, retained } from "./history.ts";

export class KnownEntry {
  readonly #policy: HistoryPolicy;
  #stored: StoredHistory | undefined;
  /** The entry that a running write puts in place. */
  #next: History | undefined;
  /** Objects that the entry may or may not name, because a write of the entry failed without a known outcome. */
  readonly #unsettled = new LazySet<string>();

  constructor(policy: HistoryPolicy) {
    this.#policy = policy;
  }

  /** Undefined: the entry was not read yet, or another service has replaced it. */
  get history(): History | undefined {
    return this.#stored?.history;
  }

  /** Call it outside of a job. An entry that is already known stays, because a job may be about to replace exactly that one. */
  receiveRead(found: StoredHistory): History {
    this.#stored ??= found;
    return this.#stored.history;
  }

  set(stored: StoredHistory | undefined): void {
    this.#stored = stored;
  }

  /** Call it before the object is written, or before the entry is written without it. */
  addUnsettled(object: string): void {
    this.#unsettled.add(object);
  }

  /** All objects that the entry names or may name. */
  allObjects(history: History): string[] {
    return [...objectsOf(history), ...this.#unsettled];
  }

  clearUnsettled(): void {
    this.#unsettled.clear();
  }

  /** Call it only for the entry of a deleted room: it is the last one, so no entry will ever name these objects. */
  takeUnsettled(): string[] {
    const objects = [...this.#unsettled];
    this.#unsettled.clear();
    return objects;
  }

  /** Plans the write that replaces the entry with `next`, without objects that exceed the limits of age or bytes. */
  planWrite(next: History, date: UnixMillis): { readonly history: History; readonly revision: number } {
    const { history, dropped } = retained(next, date, this.#policy);
    for (const object of dropped) this.#unsettled.add(object);
    this.#next = history;
    return { history, revision: this.#stored?.revision ?? 0 };
  }

  /**
   * Returns the objects that the new entry does not name. "superseded": the store refused the write. Then the objects stay
   * unsettled: the store may have the entry of an earlier write that it did not answer, and a former leader may hide it.
   */
  receiveWrite(write: LeaseWrite): readonly string[] | "superseded" {
    const history = this.#next;
    this.#next = undefined;
    this.#stored = write.kind === "written" && history !== undefined ? { history, revision: write.revision } : undefined;
    if (this.#stored === undefined) return "superseded";
    const named = new Set(objectsOf(this.#stored.history));
    const unnamed = [...this.#unsettled].filter((object) => !named.has(object));
    this.#unsettled.clear();
    return unnamed;
  }
}
