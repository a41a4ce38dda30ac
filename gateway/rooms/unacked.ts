/**
 * A room's edits that were sent on to its owner and are not known to be in the log yet, each client's in
 * order. They are sent again when the owner changes or is silent, and outlive their client's connection for
 * some minutes, so that an edit once taken is not lost with a room server. Bounded: rules UNA1 to UNA10.
 */

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { SeldomMap } from "../../shared/seldom.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** What all rooms of a gateway hold together. */
export class UnackedBudget {
  readonly #bytesMax: number;
  edits = 0;
  bytes = 0;

  constructor(options: { bytesMax: number }) {
    this.#bytesMax = options.bytesMax;
  }

  hasRoomFor(bytes: number): boolean {
    return this.bytes + bytes <= this.#bytesMax;
  }

  count(edits: number, bytes: number): void {
    this.edits += edits;
    this.bytes += bytes;
  }
}

/** Of one room. */
export type UnackedOptions = {
  readonly forwardedEditsPerRoomMax: number;
  readonly forwardedBytesPerRoomMax: number;
  readonly forwardedKeptMs: number;
};

type Writer = {
  /** By counter, ascending. */
  edits: SubmittedEdit[];
  /** When these edits last made progress: the first was sent, one was acknowledged, all were sent again. */
  since: Millis;
  /** How often they were sent again without progress. */
  resends: number;
  /** Up to here the log is known to have them: what an older answer says of them no longer matters. */
  settledThrough: Counter;
  goneSince: Millis | undefined;
};

/** What an edit costs beside its payload. */
const EDIT_OVERHEAD_BYTES = 100;
const RESEND_DOUBLINGS_MAX = 3;

export class Unacked {
  readonly #options: UnackedOptions;
  readonly #budget: UnackedBudget;
  readonly #writers = new SeldomMap<ClientId, Writer>();
  #edits = 0;
  #bytes = 0;

  constructor(options: UnackedOptions, budget: UnackedBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get size(): number {
    return this.#edits;
  }

  /** `held`: it is here already, and on its way. */
  add(edit: SubmittedEdit, now: Millis): "added" | "held" | "full" {
    const { client } = edit.author;
    const writer = this.#writers.get(client);
    const at = writer === undefined ? 0 : placeOf(edit.counter, writer.edits);
    if (writer?.edits[at]?.counter === edit.counter) return "held";

    const cost = costOf(edit);
    if (
      this.#edits >= this.#options.forwardedEditsPerRoomMax ||
      this.#bytes + cost > this.#options.forwardedBytesPerRoomMax ||
      !this.#budget.hasRoomFor(cost)
    )
      return "full";
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

  /** Whether the edit is known to be in the log, while later ones of its client are not. */
  isSettled(client: ClientId, counter: Counter): boolean {
    return counter <= (this.#writers.get(client)?.settledThrough ?? 0);
  }

  /** The client's edits up to `through` are in the log. */
  settle(client: ClientId, through: Counter, now: Millis): void {
    const writer = this.#writers.get(client);
    if (writer === undefined) return;
    writer.settledThrough = Math.max(writer.settledThrough, through);
    const settled = placeOf(through + 1, writer.edits);
    if (settled === 0) return;
    this.#remove(client, writer, 0, settled);
    writer.since = now;
    writer.resends = 0;
  }

  /** The edit was refused, and with it all behind it of the same client. */
  refuse(client: ClientId, from: Counter): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) this.#remove(client, writer, placeOf(from, writer.edits), writer.edits.length);
  }

  /** The client's edits from `from` on, to be sent again. Empty if `from` itself is not here. */
  sendAgainFrom(client: ClientId, from: Counter, now: Millis): SubmittedEdit[] {
    const writer = this.#writers.get(client);
    if (writer === undefined || !this.has(client, from)) return [];
    writer.since = now;
    return again(writer).slice(placeOf(from, writer.edits));
  }

  /** Everything, each client's edits in order, to be sent again. */
  sendAllAgain(now: Millis): SubmittedEdit[] {
    const all: SubmittedEdit[] = [];
    for (const writer of this.#writers.values()) {
      writer.since = now;
      for (const edit of again(writer)) all.push(edit);
    }
    return all;
  }

  /**
   * Edits of writers who made no progress for `silenceMsMax`, doubled each time they are taken. `inVain`: some
   * of them were taken before.
   */
  takeOverdue(silenceMsMax: number, now: Millis): { edits: SubmittedEdit[]; inVain: boolean } {
    const edits: SubmittedEdit[] = [];
    let inVain = false;
    for (const writer of this.#writers.values()) {
      if (now - writer.since < silenceMsMax * 2 ** Math.min(writer.resends, RESEND_DOUBLINGS_MAX)) continue;
      inVain ||= writer.resends > 0;
      writer.since = now;
      writer.resends += 1;
      edits.push(...again(writer));
    }
    return { edits, inVain };
  }

  clientGone(client: ClientId, now: Millis): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.goneSince = now;
  }

  clientBack(client: ClientId): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.goneSince = undefined;
  }

  /** Forgets the edits of clients that left too long ago: they may hold them themselves. */
  expire(now: Millis): void {
    for (const [client, writer] of this.#writers) {
      if (writer.goneSince !== undefined && now - writer.goneSince > this.#options.forwardedKeptMs)
        this.#remove(client, writer, 0, writer.edits.length);
    }
  }

  /** Gives its share of the gateway's budget back. */
  clear(): void {
    this.#count(-this.#edits, -this.#bytes);
    this.#writers.clear();
  }

  #remove(client: ClientId, writer: Writer, start: number, end: number): void {
    const removed = writer.edits.splice(start, end - start);
    this.#count(-removed.length, -removed.reduce((sum, edit) => sum + costOf(edit), 0));
    if (writer.edits.length === 0) this.#writers.delete(client);
  }

  #count(edits: number, bytes: number): void {
    this.#edits += edits;
    this.#bytes += bytes;
    this.#budget.count(edits, bytes);
  }
}

/**
 * As they are sent again: with what has been settled since they were written. An owner whose log has lost that
 * would wait for it for ever, and nobody could send it any more.
 */
function again({ edits, settledThrough }: Writer): readonly SubmittedEdit[] {
  return edits.map((edit) => {
    const ackedThrough = Math.min(settledThrough, edit.counter - 1); // A repeat of what is settled says nothing of itself.
    return edit.ackedThrough >= ackedThrough ? edit : { ...edit, ackedThrough };
  });
}

/** Where an edit of this counter stands or would stand. Searched from the end, where new ones come. */
function placeOf(counter: Counter, edits: readonly SubmittedEdit[]): number {
  let at = edits.length;
  while (at > 0 && edits[at - 1]!.counter >= counter) at -= 1;
  return at;
}

function costOf(edit: SubmittedEdit): number {
  return edit.payload.byteLength + EDIT_OVERHEAD_BYTES;
}
