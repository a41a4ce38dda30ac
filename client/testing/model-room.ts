/**
 * A minimal model of the server's contract for one room: it numbers and commits edits, answers repeats, rejects gaps,
 * sends tentative edits, and trims its log up to a snapshot.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { ClientId, Epoch, Position, Seq, UserId } from "../../shared/ids.ts";
import type { CommittedEdit, NackReason, ResyncReason, SavingState, TentativeEdit } from "../../shared/wire/frames.ts";

export type ModelEdit = Omit<TentativeEdit, "epoch" | "mac" | "user">;
type ModelVerdict =
  { kind: "accepted" } | { kind: "waiting" } | { kind: "committed"; seq: Seq } | { kind: "refused"; reason: NackReason; expected: number };

export class ModelRoom {
  epoch = 1 as Epoch;
  saving: SavingState = "saved";
  bytesMax = Infinity;
  /** Rejects every edit for this reason. */
  refusing: NackReason | undefined;
  /** Every committed edit. Edits up to `trimmedThrough` are no longer available one by one. */
  readonly log: (CommittedEdit & { readonly epoch: Epoch })[] = [];
  trimmedThrough = 0;
  /** Undefined: the snapshot reaches as far as the log is trimmed. */
  snapshotThrough: number | undefined;
  readonly #accepted = new Map<ClientId, number>();
  readonly #committed = new Map<ClientId, number>();
  #waiting: ModelEdit[] = [];

  get head(): Seq {
    return this.log.length as Seq;
  }

  get waiting(): readonly ModelEdit[] {
    return this.#waiting;
  }

  receiveEdit(edit: ModelEdit): ModelVerdict {
    const { client, counter, ackedThrough } = edit;
    const accepted = Math.max(this.#accepted.get(client) ?? 0, ackedThrough);
    if (counter <= (this.#committed.get(client) ?? 0)) {
      const seq = this.#seqOf(client, counter);
      const isOther = seq > 0 && !isSameBytes(this.log[seq - 1]!.payload, edit.payload);
      return isOther ? { kind: "waiting" } : { kind: "committed", seq }; // Other bytes are never acknowledged.
    }
    if (counter <= accepted) return { kind: "waiting" };
    if (counter > accepted + 1) return { kind: "refused", reason: "gap", expected: accepted + 1 };
    if (this.refusing !== undefined) return { kind: "refused", reason: this.refusing, expected: counter };
    if (edit.payload.byteLength > this.bytesMax) return { kind: "refused", reason: "too-large", expected: counter };
    this.#accepted.set(client, counter);
    this.#waiting.push(edit);
    return { kind: "accepted" };
  }

  /** Returns the edits that are new in the log, with their first seq. */
  commit(): { first: Seq; edits: CommittedEdit[] } {
    const first = (this.head + 1) as Seq;
    const edits = this.#waiting.map(({ client, counter, parentSeq, payload }) => ({
      client,
      counter,
      parentSeq: Math.min(parentSeq, first - 1) as Seq,
      payload,
    }));
    this.#waiting = [];
    for (const edit of edits) {
      this.log.push({ ...edit, epoch: this.epoch });
      this.#committed.set(edit.client, edit.counter);
    }
    return { first, edits };
  }

  /** A new owner knows the log and none of the waiting edits. */
  failOver(): void {
    this.epoch = (this.epoch + 1) as Epoch;
    this.#waiting = [];
    this.#accepted.clear();
    for (const [client, counter] of this.#committed) this.#accepted.set(client, counter);
  }

  /** The owner forgets clients that were silent for a long time. */
  forgetClients(): void {
    this.#accepted.clear();
    this.#committed.clear();
  }

  /** The log loses its end. */
  rollBackTo(seq: number): void {
    this.log.length = seq;
    this.#waiting = [];
    this.#accepted.clear();
    this.#committed.clear();
    for (const { client, counter } of this.log) this.#committed.set(client, counter);
    for (const [client, counter] of this.#committed) this.#accepted.set(client, counter);
    this.epoch = (this.epoch + 1) as Epoch;
  }

  reasonToResync({ epoch, seq }: Position): ResyncReason | undefined {
    if (seq > this.head) return "ahead";
    if (seq > 0 && this.log[seq - 1]!.epoch !== epoch) return "other-epoch";
    return seq < this.trimmedThrough ? "too-old" : undefined;
  }

  tentativeOf(edit: ModelEdit): TentativeEdit {
    return { ...edit, epoch: this.epoch, user: "somebody" as UserId, mac: new Uint8Array([1]) };
  }

  #seqOf(client: ClientId, counter: number): Seq {
    return (this.log.findIndex((edit) => edit.client === client && edit.counter === counter) + 1) as Seq;
  }
}
