/**
 * Edits that arrive in a room: committed edits in order, acknowledgements of this client's edits, and tentative edits
 * until they are confirmed. Only a committed edit with this client's own id counts as an acknowledgement. Rules FEE1 to
 * FEE7.
 */

import { type ClientId, type Epoch, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { SavingState, TentativeEdit, Counter } from "../../shared/wire/frames.ts";
import type { EditName } from "../persistence/edit-store.ts";
import type { Inheritance } from "../persistence/journal.ts";
import type { Outbox } from "./outbox.ts";
import type { RoomEdit, RoomSessionEffect, RoomFrame } from "./room-messages.ts";
import { type DueEdits, TentativeEdits, type TentativeOptions } from "./tentative-edits.ts";

export type IncomingEditsOptions = {
  readonly inbox: InboxOptions;
  readonly tentative: TentativeOptions;
  /** During catch-up, milliseconds to wait for a gap to close by itself. */
  readonly gapPatienceMs: number;
};

export class IncomingEdits {
  readonly #options: IncomingEditsOptions;
  readonly #outbox: Outbox;
  readonly #inbox: EditInbox;
  readonly #tentative: TentativeEdits;
  #client: ClientId | undefined;
  /** Edits that the application has already. */
  readonly #own = new OwnEdits();
  #saving: SavingState = "saved";

  /** `unit`: returns a number in [0, 1). */
  constructor(options: IncomingEditsOptions, outbox: Outbox, unit: () => number) {
    this.#options = options;
    this.#outbox = outbox;
    this.#inbox = new EditInbox(options.inbox);
    this.#tentative = new TentativeEdits(options.tentative, unit);
  }

  get position(): Position {
    return this.#inbox.position;
  }

  get client(): ClientId | undefined {
    return this.#client;
  }

  get saving(): SavingState {
    return this.#saving;
  }

  /** True: shows edits that may not be in the log. */
  get showsTentative(): boolean {
    return this.#tentative.isShowing;
  }

  /** The time at which `planRepair` next returns something. */
  get repairAt(): Millis | undefined {
    return this.#inbox.dueAt;
  }

  /** The time at which `takeResubmits` next returns something. */
  get resubmitAt(): Millis | undefined {
    return this.#tentative.dueAt;
  }

  /**
   * Edits that earlier pages sent may be in the log. They arrive with the first join, before the room is joined under
   * the earlier keys.
   */
  inherit({ numberings }: Pick<Inheritance, "numberings">): void {
    for (const { client, counter } of numberings.flatMap(({ sent }) => sent)) {
      if (client !== undefined) this.#own.add(client, counter - 1, counter); // Without a client id they become known once the room is joined under their key.
    }
  }

  /** The log is fast enough, unless the server's next frame reports otherwise. */
  joined(client: ClientId, now: Millis): void {
    this.#client = client;
    this.#own.add(client, this.#outbox.ackedThrough, this.#outbox.ownThrough);
    this.receiveSaving("saved", now);
  }

  /** No frames arrive until the room is joined again. */
  lost(): void {
    this.#saving = "saved";
    this.#inbox.forgetHeld();
    this.#tentative.receiveUnsaved();
  }

  startAt(position: Position): void {
    this.#inbox.startAt(position);
  }

  /** A snapshot contains this edit, and all earlier ones of its author. */
  receiveLast({ client, counter }: EditName, effects: RoomSessionEffect[]): void {
    if (!this.#own.has(client, counter)) show(this.#tentative.receiveCommitted(client, counter), effects);
  }

  receiveCommitted(
    { edits: { epoch, firstSeq, edits } }: RoomFrame & { type: "committed" },
    catchingUp: boolean,
    now: Millis,
    effects: RoomSessionEffect[],
  ): void {
    const batch: RoomEdit[] = [];
    for (const [index, { client, counter, payload }] of edits.entries()) {
      const isSelf = client === this.#client;
      if (isSelf && this.#own.has(client, counter) && this.#outbox.receiveLogged(counter, payload)) this.#own.endBefore(client, counter);
      const own = this.#own.has(client, counter);
      batch.push({ seq: (firstSeq + index) as Seq, client, counter, payload, own });
      if (isSelf && own) this.#outbox.receiveAck(counter, now);
      else if (!own) show(this.#tentative.receiveCommitted(client, counter), effects);
      if (!own) this.#tentative.receiveSame(payload);
    }
    this.#deliver({ epoch, edits: batch }, catchingUp, now, effects);
  }

  /** Acknowledgements carry only seqs: the client has the edits itself. */
  receiveAck(
    { epoch, counter, seq, count }: RoomFrame & { type: "ack" },
    catchingUp: boolean,
    now: Millis,
    effects: RoomSessionEffect[],
  ): void {
    const client = this.#client;
    if (client === undefined) return;
    const edits: RoomEdit[] = [];
    for (const edit of this.#outbox.receiveAck(counter + count - 1, now)) {
      if (edit.counter >= counter) {
        edits.push({ seq: (seq + edit.counter - counter) as Seq, client, counter: edit.counter, payload: edit.payload, own: true });
      }
    }
    this.#deliver({ epoch, edits }, catchingUp, now, effects);
    // Edits that an earlier ACKED_THROUGH settled are no longer held.
    this.#inbox.receiveHead((seq + count - 1) as Seq, this.#patienceMs(catchingUp), now);
  }

  receiveTentative(edit: TentativeEdit, now: Millis, effects: RoomSessionEffect[]): void {
    if (this.#own.has(edit.client, edit.counter)) return;
    show(this.#tentative.receiveTentative(edit), effects);
    if (this.#saving === "saved" && this.#tentative.dueAt === undefined) this.#tentative.receiveSaved(now); // The edit arrived after the log was saved.
  }

  receiveSaving(state: SavingState, now: Millis): void {
    this.#saving = state;
    if (state === "saved") this.#tentative.receiveSaved(now);
    else this.#tentative.receiveUnsaved();
  }

  planRepair(now: Millis): Repair | undefined {
    return this.#inbox.planRepair(now);
  }

  takeResubmits(now: Millis): DueEdits {
    return this.#tentative.takeDue(now);
  }

  #deliver(batch: EditBatch, catchingUp: boolean, now: Millis, effects: RoomSessionEffect[]): void {
    for (const { edits } of this.#inbox.receiveBatch(batch, this.#patienceMs(catchingUp), now)) effects.push({ kind: "deliver", edits });
  }

  #patienceMs(catchingUp: boolean): number {
    return catchingUp ? this.#options.gapPatienceMs : 0;
  }
}

function show(edits: readonly TentativeEdit[], effects: RoomSessionEffect[]): void {
  if (edits.length > 0) effects.push({ kind: "show-tentative", edits });
}

/** Covers `after < counter <= through`. */
type Run = { readonly after: Counter; through: Counter };

/**
 * The edits that this page's application already has: its own edits, with each id that the page had, and edits of
 * earlier pages that were restored here. Other edits of earlier pages are treated like edits of other clients. Rules
 * OWE1, OWE2.
 */
export class OwnEdits {
  readonly #runs = new Map<ClientId, Run[]>();

  /** `through`: Infinity covers all future edits. */
  add(client: ClientId, after: Counter, through: Counter): void {
    const runs = this.#runs.get(client) ?? [];
    this.#runs.set(client, runs);
    const before = runs.find((run) => run.after <= after && after <= run.through);
    if (before === undefined) runs.push({ after, through });
    else before.through = Math.max(before.through, through);
  }

  /** From that counter on, edits of the client come from a copy of it. */
  endBefore(client: ClientId, counter: Counter): void {
    for (const run of this.#runs.get(client) ?? []) run.through = Math.min(run.through, counter - 1);
  }

  has(client: ClientId, counter: Counter): boolean {
    return this.#runs.get(client)?.some(({ after, through }) => after < counter && counter <= through) ?? false;
  }
}

/** Edits with consecutive seqs. */
export type EditBatch = { readonly epoch: Epoch; readonly edits: readonly RoomEdit[] };

export type InboxOptions = {
  readonly heldBytesMax: number;
  /** Milliseconds after which a missing range is requested again. */
  readonly replayMsMax: number;
  /** Maximum number of requests for one gap; then the room is joined again. */
  readonly replaysMax: number;
};

type Repair = { readonly kind: "replay"; readonly after: Seq; readonly through: Seq } | { readonly kind: "rejoin" };

/**
 * Puts a room's committed edits into seq order. After [1,2,3] it drops a repeated 3, holds an early 5, and requests 4.
 * It never delivers across a gap. Rules INB1 to INB6.
 */
export class EditInbox {
  readonly #options: InboxOptions;
  #position: Position = START;
  /** Batches after the position, by first seq. */
  readonly #held = new Map<Seq, EditBatch>();
  #heldBytes = 0;
  /** Highest seq known to be committed without its edit. The server sends missing edits up to it only on request. */
  #knownHead = 0;
  /** The gap before the first held batch, or up to the known head: the time of the next request, and the number of requests so far. */
  #gap: { after: Seq; dueAt: Millis; asked: number } | undefined;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  get position(): Position {
    return this.#position;
  }

  /** The time at which `planRepair` next returns something. */
  get dueAt(): Millis | undefined {
    return this.#gap?.dueAt;
  }

  /** Returns what may be delivered now, in order. `patienceMs`: how long to wait before a gap is requested. */
  receiveBatch(batch: EditBatch, patienceMs: number, now: Millis): EditBatch[] {
    const next = this.#position.seq + 1;
    const first = batch.edits[0];
    if (first === undefined) return [];
    if (first.seq > next) {
      this.#hold(first.seq, batch);
      this.#watchGap(patienceMs, now);
      return [];
    }
    const fresh = this.#advance(batch);
    const delivered = fresh === undefined ? [] : [fresh];
    if (this.#held.size > 0) this.#release(delivered);
    this.#watchGap(patienceMs, now);
    return delivered;
  }

  /** Edits up to `head` are committed. Missing ones must be requested. */
  receiveHead(head: Seq, patienceMs: number, now: Millis): void {
    if (head <= Math.max(this.#position.seq, this.#knownHead)) return;
    this.#knownHead = head;
    this.#watchGap(patienceMs, now);
  }

  /** Starts again after a snapshot. */
  startAt(position: Position): void {
    this.#position = position;
    this.forgetHeld();
  }

  /** The connection is lost: the next join replays from the position. */
  forgetHeld(): void {
    this.#held.clear();
    this.#heldBytes = 0;
    this.#knownHead = 0;
    this.#gap = undefined;
  }

  planRepair(now: Millis): Repair | undefined {
    const gap = this.#gap;
    if (gap === undefined || now < gap.dueAt) return undefined;
    if (gap.asked >= this.#options.replaysMax) {
      this.forgetHeld();
      return { kind: "rejoin" };
    }
    gap.asked += 1;
    gap.dueAt = (now + this.#options.replayMsMax * gap.asked) as Millis;
    return { kind: "replay", after: this.#position.seq, through: (this.#held.size > 0 ? this.#firstHeld() - 1 : this.#knownHead) as Seq };
  }

  /** The part of the batch that is new. */
  #advance(batch: EditBatch): EditBatch | undefined {
    const { seq } = this.#position;
    const last = batch.edits.at(-1)!.seq;
    if (last <= seq) return undefined;
    const known = seq + 1 - batch.edits[0]!.seq;
    this.#position = { epoch: batch.epoch, seq: last };
    return known === 0 ? batch : { epoch: batch.epoch, edits: batch.edits.slice(known) };
  }

  /** Batches above the limit are dropped, and requested again once the gap before them is closed. */
  #hold(firstSeq: Seq, batch: EditBatch): void {
    const bytes = bytesOf(batch);
    const before = this.#held.get(firstSeq);
    if (before !== undefined && before.edits.length >= batch.edits.length) return;
    const grown = bytes - (before === undefined ? 0 : bytesOf(before));
    if (this.#held.size > 0 && this.#heldBytes + grown > this.#options.heldBytesMax) return;
    this.#held.set(firstSeq, batch);
    this.#heldBytes += grown;
  }

  #firstHeld(): number {
    let first = Infinity;
    for (const seq of this.#held.keys()) first = Math.min(first, seq);
    return first;
  }

  #release(delivered: EditBatch[]): void {
    for (const [firstSeq, batch] of [...this.#held].sort(([a], [b]) => a - b)) {
      if (firstSeq > this.#position.seq + 1) break;
      this.#held.delete(firstSeq);
      this.#heldBytes -= bytesOf(batch);
      const fresh = this.#advance(batch);
      if (fresh !== undefined) delivered.push(fresh);
    }
  }

  #watchGap(patienceMs: number, now: Millis): void {
    const after = this.#position.seq;
    if (this.#held.size === 0 && after >= this.#knownHead) this.#gap = undefined;
    else if (this.#gap?.after !== after) this.#gap = { after, dueAt: (now + patienceMs) as Millis, asked: 0 };
  }
}

/** Estimated bytes of an edit in addition to its payload, so that small and empty edits count too. */
const EDIT_OVERHEAD_BYTES = 200;

function bytesOf(batch: EditBatch): number {
  return batch.edits.reduce((sum, { payload }) => sum + payload.byteLength + EDIT_OVERHEAD_BYTES, 0);
}
