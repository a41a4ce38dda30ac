/**
 * The questions a room has open with its owner: which edits come after a position. Members that ask from the
 * same position share a question. An answer in several messages may lose one on its way: what follows the hole
 * is not taken, and the rest is asked for again. Rules CUP1 to CUP8.
 */

import type { CatchUpAnswer, ToOwner } from "../shared/bus/envelope.ts";
import type { GatewayId, Millis, Position, Seq } from "../shared/ids.ts";
import { batchFrom, type CommittedBatch } from "./in-order.ts";
import type { ConnectionId } from "./ports.ts";

/** Who is to get the edits: the room's order, members on their way into it, or one member that missed some. */
export type Asker = { readonly kind: "order" } | { readonly kind: "members"; readonly members: Set<ConnectionId> } | { readonly kind: "replay"; readonly member: ConnectionId };

export type CaughtUp = {
  readonly asker: Asker;
  readonly batches: readonly CommittedBatch[];
  /** Where the batches lead to. */
  readonly position: Position;
  readonly done: boolean;
  /** What must be asked again because some of the answer was lost. */
  readonly again: readonly ToOwner[];
};

type Question = { readonly asker: Asker; after: Position; readonly through: Seq; askedAt: Millis; begun: boolean; readonly attempt: number };

/** The seq that stands for "to the head". */
const TO_HEAD = 0 as Seq;
const DOUBLINGS_MAX = 3;

export class CatchUps {
  readonly #gateway: GatewayId;
  readonly #questions = new Map<number, Question>();
  #lastRequest = 0;

  constructor(gateway: GatewayId) {
    this.#gateway = gateway;
  }

  get open(): number {
    return this.#questions.size;
  }

  get asksForOrder(): boolean {
    return [...this.#questions.values()].some(({ asker }) => asker.kind === "order");
  }

  /** Asks for the order's sake. One such question at a time: the rest of a gap shows once this one is answered. */
  askForOrder(after: Position, through: Seq, now: Millis): ToOwner[] {
    return this.asksForOrder ? [] : [this.#ask({ kind: "order" }, after, through, now)];
  }

  askForMember(member: ConnectionId, after: Position, now: Millis): ToOwner[] {
    for (const { asker, after: asked, begun } of this.#questions.values()) {
      if (asker.kind !== "members" || begun || asked.seq !== after.seq || asked.epoch !== after.epoch) continue;
      asker.members.add(member);
      return [];
    }
    return [this.#ask({ kind: "members", members: new Set([member]) }, after, TO_HEAD, now)];
  }

  /** A member's newer question takes the place of its older one. */
  askForReplay(member: ConnectionId, after: Position, through: Seq, now: Millis): ToOwner[] {
    for (const [request, { asker }] of this.#questions) if (asker.kind === "replay" && asker.member === member) this.#questions.delete(request);
    return [this.#ask({ kind: "replay", member }, after, through, now)];
  }

  /** Undefined: nobody asks for it any more. */
  receive({ request, head, epoch, answer }: CatchUpAnswer, now: Millis): CaughtUp | undefined {
    const question = this.#questions.get(request);
    if (question === undefined) return undefined;
    const { asker, through } = question;
    if (answer.kind === "resync") {
      this.#questions.delete(request);
      return { asker, batches: [], position: { epoch, seq: head }, done: true, again: [] };
    }
    question.begun = true;
    question.askedAt = now;
    const batches = this.#inSequence(question, answer.parts);
    const complete = question.after.seq >= (through === TO_HEAD ? head : Math.min(through, head));
    const lost = batches.length < answer.parts.length || (answer.last && !complete);
    if (lost || answer.last) this.#questions.delete(request);
    const again = lost ? [this.#ask(asker, question.after, through, now)] : [];
    return { asker, batches, position: question.after, done: answer.last && !lost, again };
  }

  /** The parts up to the first hole. */
  #inSequence(question: Question, parts: readonly Uint8Array[]): CommittedBatch[] {
    const batches: CommittedBatch[] = [];
    for (const part of parts) {
      const batch = batchFrom(part);
      if (batch === undefined || batch.firstSeq > question.after.seq + 1) break;
      batches.push(batch);
      if (batch.lastSeq > question.after.seq) question.after = { epoch: batch.epoch, seq: batch.lastSeq };
    }
    return batches;
  }

  /** Whether a question waits for longer than `msMax`, doubled each time it was asked again: the owner may be reading the log for it. */
  overdue(msMax: number, now: Millis): boolean {
    return [...this.#questions.values()].some(({ askedAt, attempt }) => now - askedAt >= msMax * 2 ** Math.min(attempt, DOUBLINGS_MAX));
  }

  /** Asks everything open anew, from where its answer broke off; late answers to the old questions are not taken. */
  askAllAgain(now: Millis): ToOwner[] {
    const questions = [...this.#questions.values()];
    this.#questions.clear();
    return questions.map(({ asker, after, through, attempt }) => this.#ask(asker, after, through, now, attempt + 1));
  }

  forget(member: ConnectionId): void {
    for (const [request, { asker }] of this.#questions) {
      if (asker.kind === "members") asker.members.delete(member);
      const unwanted = asker.kind === "members" ? asker.members.size === 0 : asker.kind === "replay" && asker.member === member;
      if (unwanted) this.#questions.delete(request);
    }
  }

  #ask(asker: Asker, after: Position, through: Seq, now: Millis, attempt = 0): ToOwner {
    this.#lastRequest += 1;
    this.#questions.set(this.#lastRequest, { asker, after, through, askedAt: now, begun: false, attempt });
    return { kind: "catch-up-request", gateway: this.#gateway, request: this.#lastRequest, after, through };
  }
}
