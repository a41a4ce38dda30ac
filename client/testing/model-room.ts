/**
 * What a Coroom server promises about one room, in the simplest form that can keep it: numbers edits, commits
 * them, answers repeats, refuses gaps, shows tentative edits, trims its log behind a snapshot.
 */

import type { ClientId, Epoch, Position, Seq, UserId } from "../../shared/ids.ts";
import type { CommittedEdit, NackReason, ResyncReason, SavingState, TentativeEdit } from "../../shared/wire/frames.ts";

export type SubmittedEdit = Omit<TentativeEdit, "epoch" | "mac" | "user">;
export type Verdict =
  { kind: "accepted" } | { kind: "waiting" } | { kind: "committed"; seq: Seq } | { kind: "refused"; reason: NackReason; expected: number };

export class ModelRoom {
  epoch = 1 as Epoch;
  saving: SavingState = "saved";
  bytesMax = Infinity;
  /** Refuses everything for this reason. */
  refusing: NackReason | undefined;
  /** Everything that was ever committed; `trimmedThrough` is no longer to be had edit by edit. */
  readonly log: (CommittedEdit & { readonly epoch: Epoch })[] = [];
  trimmedThrough = 0;
  /** Undefined: as far as the log is trimmed. */
  snapshotThrough: number | undefined;
  readonly #accepted = new Map<ClientId, number>();
  readonly #committed = new Map<ClientId, number>();
  #waiting: SubmittedEdit[] = [];

  get head(): Seq {
    return this.log.length as Seq;
  }

  get waiting(): readonly SubmittedEdit[] {
    return this.#waiting;
  }

  receiveEdit(edit: SubmittedEdit): Verdict {
    const { client, counter, ackedThrough } = edit;
    const accepted = Math.max(this.#accepted.get(client) ?? 0, ackedThrough);
    if (counter <= (this.#committed.get(client) ?? 0)) return { kind: "committed", seq: this.#seqOf(client, counter) };
    if (counter <= accepted) return { kind: "waiting" };
    if (counter > accepted + 1) return { kind: "refused", reason: "gap", expected: accepted + 1 };
    if (this.refusing !== undefined) return { kind: "refused", reason: this.refusing, expected: counter };
    if (edit.payload.byteLength > this.bytesMax) return { kind: "refused", reason: "too-large", expected: counter };
    this.#accepted.set(client, counter);
    this.#waiting.push(edit);
    return { kind: "accepted" };
  }

  /** Seqs of what is in the log now and was not before. */
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

  /** A new owner knows what the log holds, and nothing of what waited. */
  failOver(): void {
    this.epoch = (this.epoch + 1) as Epoch;
    this.#waiting = [];
    this.#accepted.clear();
    for (const [client, counter] of this.#committed) this.#accepted.set(client, counter);
  }

  /** The owner has not heard of them for long. */
  forgetClients(): void {
    this.#accepted.clear();
    this.#committed.clear();
  }

  /** A log that lost its end. */
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

  tentativeOf(edit: SubmittedEdit): TentativeEdit {
    return { ...edit, epoch: this.epoch, user: "somebody" as UserId, mac: new Uint8Array([1]) };
  }

  #seqOf(client: ClientId, counter: number): Seq {
    return (this.log.findIndex((edit) => edit.client === client && edit.counter === counter) + 1) as Seq;
  }
}
