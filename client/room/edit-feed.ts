/**
 * What comes into a room: committed edits in order, acknowledgements of this client's own, tentative edits until
 * they are confirmed. Rules FEE1 to FEE7.
 *
 * Only an edit under this client's own id acknowledges; nobody else's is ever taken for one.
 */

import type { ClientId, Millis, Position, Seq } from "../../shared/ids.ts";
import type { SavingState, TentativeEdit } from "../../shared/wire/frames.ts";
import { type Batch, Inbox, type InboxOptions, type Repair, type RoomEdit } from "./inbox.ts";
import type { EditName } from "../keeping/edit-store.ts";
import type { Inheritance } from "../keeping/inheritance.ts";
import type { Outbox } from "./outbox.ts";
import { OwnEdits } from "./own-edits.ts";
import type { RoomEffect, RoomFrame } from "./room-messages.ts";
import { type DueEdits, TentativeEdits, type TentativeOptions } from "./tentative-edits.ts";

export type FeedOptions = {
  readonly inbox: InboxOptions;
  readonly tentative: TentativeOptions;
  /** While the room catches up, a gap is left to fill by itself for so long. */
  readonly gapPatienceMs: number;
};

export class EditFeed {
  readonly #options: FeedOptions;
  readonly #outbox: Outbox;
  readonly #inbox: Inbox;
  readonly #tentative: TentativeEdits;
  #client: ClientId | undefined;
  /** The application has them. */
  readonly #own = new OwnEdits();
  #saving: SavingState = "saved";

  /** `unit`: a number in [0, 1). */
  constructor(options: FeedOptions, outbox: Outbox, unit: () => number) {
    this.#options = options;
    this.#outbox = outbox;
    this.#inbox = new Inbox(options.inbox);
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

  /** What the log is not known to have. */
  get showsTentative(): boolean {
    return this.#tentative.isShowing;
  }

  /** When `planRepair` has something to say. */
  get repairAt(): Millis | undefined {
    return this.#inbox.dueAt;
  }

  /** When `takeResubmits` has something. */
  get resubmitAt(): Millis | undefined {
    return this.#tentative.dueAt;
  }

  /** What pages before this one sent may be in the log: it comes with the first join, before the room is joined as each of them. */
  inherit({ numberings }: Pick<Inheritance, "numberings">): void {
    for (const { client, counter } of numberings.flatMap(({ sent }) => sent)) {
      if (client !== undefined) this.#own.add(client, counter - 1, counter); // Else it is known once the room is joined under its key.
    }
  }

  /** The log keeps up, unless the server says otherwise next. */
  joined(client: ClientId, now: Millis): void {
    this.#client = client;
    this.#own.add(client, this.#outbox.ackedThrough, this.#outbox.ownThrough);
    this.receiveSaving("saved", now);
  }

  /** Nothing comes any more, until the room is joined anew. */
  lost(): void {
    this.#saving = "saved";
    this.#inbox.forgetHeld();
    this.#tentative.receiveUnsaved();
  }

  startAt(position: Position): void {
    this.#inbox.startAt(position);
  }

  /** A snapshot has this edit, and with it all that its author made before. */
  receiveLast({ client, counter }: EditName, effects: RoomEffect[]): void {
    if (!this.#own.has(client, counter)) show(this.#tentative.receiveCommitted(client, counter), effects);
  }

  receiveCommitted(
    { edits: { epoch, firstSeq, edits } }: RoomFrame & { type: "committed" },
    catchingUp: boolean,
    now: Millis,
    effects: RoomEffect[],
  ): void {
    const batch: RoomEdit[] = [];
    for (const [index, { client, counter, payload }] of edits.entries()) {
      const own = this.#own.has(client, counter);
      batch.push({ seq: (firstSeq + index) as Seq, client, counter, payload, own });
      if (client === this.#client) this.#outbox.receiveAck(counter, now);
      else if (!own) show(this.#tentative.receiveCommitted(client, counter), effects);
      if (!own) this.#tentative.receiveSame(payload);
    }
    this.#deliver({ epoch, edits: batch }, catchingUp, now, effects);
  }

  /** The client's own edits, known here: only their seqs are told. */
  receiveAck({ epoch, counter, seq, count }: RoomFrame & { type: "ack" }, catchingUp: boolean, now: Millis, effects: RoomEffect[]): void {
    const client = this.#client;
    if (client === undefined) return;
    const edits: RoomEdit[] = [];
    for (const edit of this.#outbox.receiveAck(counter + count - 1, now)) {
      if (edit.counter >= counter) {
        edits.push({ seq: (seq + edit.counter - counter) as Seq, client, counter: edit.counter, payload: edit.payload, own: true });
      }
    }
    this.#deliver({ epoch, edits }, catchingUp, now, effects);
    // Those that were settled before, by ACKED_THROUGH, are not known here any more.
    this.#inbox.receiveHead((seq + count - 1) as Seq, this.#patienceMs(catchingUp), now);
  }

  receiveTentative(edit: TentativeEdit, now: Millis, effects: RoomEffect[]): void {
    if (this.#own.has(edit.client, edit.counter)) return;
    show(this.#tentative.receive(edit), effects);
    if (this.#saving === "saved" && this.#tentative.dueAt === undefined) this.#tentative.receiveSaved(now); // It came late.
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

  #deliver(batch: Batch, catchingUp: boolean, now: Millis, effects: RoomEffect[]): void {
    for (const { edits } of this.#inbox.receive(batch, this.#patienceMs(catchingUp), now)) effects.push({ kind: "deliver", edits });
  }

  #patienceMs(catchingUp: boolean): number {
    return catchingUp ? this.#options.gapPatienceMs : 0;
  }
}

function show(edits: readonly TentativeEdit[], effects: RoomEffect[]): void {
  if (edits.length > 0) effects.push({ kind: "show-tentative", edits });
}
