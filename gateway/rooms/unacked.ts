/**
 * The edits of a room that the owner has received and the log may not have, in order for each client. They are sent
 * again when the owner changes or is silent. They outlive their client's connection for some minutes, so that no
 * accepted edit is lost with a room server. Rules UNA1 to UNA10.
 */

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import { isSameBytes } from "../../shared/collections/bytes.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import type { UnackedBudget } from "./unacked-budget.ts";

/** Limits of one room. */
export type UnackedOptions = {
  readonly forwardedEditsPerRoomMax: number;
  readonly forwardedBytesPerRoomMax: number;
  readonly forwardedKeptMs: number;
};

/** The limit that an edit exceeds: of its room, or of the gateway. */
export type UnackedLimit = "room-unacked" | "gateway-unacked";

type Writer = {
  /** By counter, ascending. */
  edits: SubmittedEdit[];
  /** Time of the last progress: the first edit was sent, an edit was acknowledged, or all edits were sent again. */
  since: Millis;
  /** Number of repetitions without progress. */
  resends: number;
  /** The log has the edits up to this counter, so older answers about them are ignored. */
  settledThrough: Counter;
  goneSince: Millis | undefined;
};

const HELD_EDIT_OVERHEAD_BYTES = 100;
const RESEND_DOUBLINGS_MAX = 3;
const NONE: readonly never[] = [];

export class Unacked {
  readonly #options: UnackedOptions;
  readonly #budget: UnackedBudget;
  readonly #writers = new LazyMap<ClientId, Writer>();
  #edits = 0;
  #bytes = 0;

  constructor(options: UnackedOptions, budget: UnackedBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get size(): number {
    return this.#edits;
  }

  /** `held`: this gateway already has the edit and has sent it. */
  add(edit: SubmittedEdit, now: Millis): "added" | "held" | UnackedLimit {
    const { client } = edit.author;
    const writer = this.#writers.get(client);
    const at = writer === undefined ? 0 : placeOf(edit.counter, writer.edits);
    if (writer?.edits[at]?.counter === edit.counter) return "held";

    const cost = costOf(edit);
    if (this.#edits >= this.#options.forwardedEditsPerRoomMax) return "room-unacked";
    if (this.#bytes + cost > this.#options.forwardedBytesPerRoomMax) return "room-unacked";
    if (!this.#budget.hasRoomFor(cost)) return "gateway-unacked";
    this.#count(1, cost);
    if (writer === undefined) this.#writers.set(client, { edits: [edit], since: now, resends: 0, settledThrough: 0, goneSince: undefined });
    else if (at === writer.edits.length) writer.edits.push(edit);
    else writer.edits.splice(at, 0, edit);
    return "added";
  }

  has(client: ClientId, counter: Counter): boolean {
    const edits = this.#writers.get(client)?.edits ?? [];
    return edits[placeOf(counter, edits)]?.counter === counter;
  }

  /** Whether this gateway holds the client's edits from that counter on, with these payloads. */
  holds(client: ClientId, counter: Counter, payloads: readonly Uint8Array[]): boolean {
    const edits = this.#writers.get(client)?.edits ?? [];
    const here = edits.slice(placeOf(counter, edits));
    return payloads.every((payload, index) => here[index]?.counter === counter + index && isSameBytes(here[index].payload, payload));
  }

  /** Whether the log is known to have the edit, while later edits of its client are not in it. */
  isSettled(client: ClientId, counter: Counter): boolean {
    return counter <= (this.#writers.get(client)?.settledThrough ?? 0);
  }

  /** The client's edits up to `through` are in the log. Returns those that this gateway held. */
  settle(client: ClientId, through: Counter, now: Millis): readonly SubmittedEdit[] {
    const writer = this.#writers.get(client);
    if (writer === undefined) return NONE;
    writer.settledThrough = Math.max(writer.settledThrough, through);
    const settled = placeOf(through + 1, writer.edits);
    if (settled === 0) return NONE;
    writer.since = now;
    writer.resends = 0;
    return this.#remove(client, writer, 0, settled);
  }

  /** Removes the refused edit, and all later ones of its client. */
  refuse(client: ClientId, from: Counter): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) this.#remove(client, writer, placeOf(from, writer.edits), writer.edits.length);
  }

  /** The client's edits from `from` on. Empty if `from` itself is not held. */
  sendAgainFrom(client: ClientId, from: Counter, now: Millis): SubmittedEdit[] {
    const writer = this.#writers.get(client);
    if (writer === undefined || !this.has(client, from)) return [];
    writer.since = now;
    return again(writer).slice(placeOf(from, writer.edits));
  }

  /** All edits, each client's in order. */
  sendAllAgain(now: Millis): SubmittedEdit[] {
    const all: SubmittedEdit[] = [];
    for (const writer of this.#writers.values()) {
      writer.since = now;
      for (const edit of again(writer)) all.push(edit);
    }
    return all;
  }

  /**
   * Edits of writers without progress for `silenceMsMax`, which doubles with each repetition. `fruitless`: some edits
   * were repeated before.
   */
  takeOverdue(silenceMsMax: number, now: Millis): { edits: SubmittedEdit[]; fruitless: boolean } {
    const edits: SubmittedEdit[] = [];
    let fruitless = false;
    for (const writer of this.#writers.values()) {
      if (now - writer.since < silenceMsMax * 2 ** Math.min(writer.resends, RESEND_DOUBLINGS_MAX)) continue;
      fruitless ||= writer.resends > 0;
      writer.since = now;
      writer.resends += 1;
      edits.push(...again(writer));
    }
    return { edits, fruitless };
  }

  clientGone(client: ClientId, now: Millis): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.goneSince = now;
  }

  clientBack(client: ClientId): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.goneSince = undefined;
  }

  /** Forgets the edits of clients that left too long ago. The clients may have kept them. */
  expire(now: Millis): void {
    for (const [client, writer] of this.#writers) {
      if (writer.goneSince !== undefined && now - writer.goneSince > this.#options.forwardedKeptMs)
        this.#remove(client, writer, 0, writer.edits.length);
    }
  }

  /** Returns the room's share of the gateway's budget. */
  clear(): void {
    this.#count(-this.#edits, -this.#bytes);
    this.#writers.clear();
  }

  #remove(client: ClientId, writer: Writer, start: number, end: number): readonly SubmittedEdit[] {
    const removed = writer.edits.splice(start, end - start);
    this.#count(-removed.length, -removed.reduce((sum, edit) => sum + costOf(edit), 0));
    if (writer.edits.length === 0) this.#writers.delete(client);
    return removed;
  }

  #count(edits: number, bytes: number): void {
    this.#edits += edits;
    this.#bytes += bytes;
    this.#budget.count(edits, bytes);
  }
}

/**
 * A repeated edit names all edits that have been settled since it was written. Otherwise an owner whose log has lost
 * them would wait for them forever.
 */
function again({ edits, settledThrough }: Writer): readonly SubmittedEdit[] {
  return edits.map((edit) => {
    const ackedThrough = Math.min(settledThrough, edit.counter - 1); // An edit never names itself as settled.
    return edit.ackedThrough >= ackedThrough ? edit : { ...edit, ackedThrough };
  });
}

/** The index of the counter's edit, or the index at which it would be inserted. The search starts at the end, where new edits arrive. */
function placeOf(counter: Counter, edits: readonly SubmittedEdit[]): number {
  let at = edits.length;
  while (at > 0 && edits[at - 1]!.counter >= counter) at -= 1;
  return at;
}

function costOf(edit: SubmittedEdit): number {
  return edit.payload.byteLength + HELD_EDIT_OVERHEAD_BYTES;
}
