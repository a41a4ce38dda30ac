/**
 * The questions of a room to its owner: which edits follow a position? An answer may have megabytes, so a member has
 * one open question at a time, even when it no longer needs the answer. Members that ask from the same position share a
 * question. If an answer is incomplete or a part of it does not decode, the rest is asked for. A member's follow-up
 * question is held until the member has read the edits before, so that a slow reader never has more than one answer
 * queued. Rules CUP1 to CUP20.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUpReply, ToOwner } from "../../shared/bus/envelope.ts";
import type { GatewayId, Millis, Position, Seq } from "../../shared/ids.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import { batchFrom, type CommittedBatch } from "../../shared/wire/committed-edits.ts";
import type { ConnectionId } from "../ports.ts";

/**
 * The recipients of the edits: all members (to close a gap), joining members, one member that has missed some, or none,
 * because the member has left or has another question.
 */
export type Asker =
  | { readonly kind: "order" }
  | { readonly kind: "members"; readonly members: Set<ConnectionId> }
  | { readonly kind: "replay"; readonly member: ConnectionId }
  | { readonly kind: "nobody"; readonly member: ConnectionId };

/** The content of an answer for the members that asked. */
export type CaughtUp = {
  readonly asker: Asker;
  readonly batches: readonly CommittedBatch[];
  /** The position after the batches. */
  readonly position: Position;
  /** The answer is complete. */
  readonly isComplete: boolean;
  /** Earlier answers contained a part of the missing edits. */
  readonly isBegun: boolean;
  /** Number of questions in a row that made no progress. */
  readonly fruitless: number;
  /** Questions to send now: for the rest, or questions that had to wait. */
  readonly ask: readonly ToOwner[];
  /**
   * Members with more than one answer: call `receiveRead` once they have read the edits. A follow-up question is held
   * until then.
   */
  readonly reading: readonly ConnectionId[];
};

/** Asks for the edits after a position, up to a seq. */
type Inquiry = {
  readonly asker: Asker;
  readonly after: Position;
  readonly through: Seq;
  /**
   * The question that this one follows up, the first of them. The owner takes its earlier answers into account, so only
   * members with the same earlier answers can use this one. Undefined: no earlier answer had edits.
   */
  readonly root: number | undefined;
};
type Question = Inquiry & {
  askedAt: Millis;
  attempt: number;
  /** The last answer made no progress: the question is sent at this time. */
  pausedUntil: Millis | undefined;
  /** Not sent: the members have not read the edits before. */
  readonly isHeld: boolean;
};

/** This seq means "up to the head". */
const TO_HEAD = 0 as Seq;
const DOUBLINGS_MAX = 3;
/** Number of repetitions after which a question counts as fruitless: after 7 s, while an answer takes less than one second. */
const ASKED_AGAIN_MAX = 2;
const PAUSE_MS_MIN = 100;
const PAUSE_DOUBLINGS_MAX = 6;

/** 1, 2, 3, and so on. */
export function requestNumbers(): () => number {
  let last = 0;
  return () => ++last;
}

export class CatchUpQuestions {
  readonly #gateway: GatewayId;
  readonly #questions = new LazyMap<number, Question>();
  /** Each member's open question. */
  readonly #openOf = new LazyMap<ConnectionId, number>();
  /** The member's next question, the newest only. A gap never replaces the question of a member that is joining. */
  readonly #nextOf = new LazyMap<ConnectionId, Inquiry>();
  readonly #newRequest: () => number;

  /** `newRequest`: numbers that no question of this gateway had, also before the room was last forgotten. */
  constructor(gateway: GatewayId, newRequest: () => number) {
    this.#gateway = gateway;
    this.#newRequest = newRequest;
  }

  get open(): number {
    return this.#questions.size;
  }

  get asksForOrder(): boolean {
    return [...this.#questions.values()].some(({ asker }) => asker.kind === "order");
  }

  isOpenFor(member: ConnectionId): boolean {
    return this.#openOf.has(member);
  }

  /** Closes a gap for all members. One question at a time: the answer shows what is still missing. */
  askForOrder(after: Position, through: Seq, now: Millis): ToOwner[] {
    return this.asksForOrder ? [] : this.#ask({ asker: { kind: "order" }, after, through, root: undefined }, now);
  }

  /** `fruitless`: number of questions without progress. It sets the pause before the next question. */
  askForMember(member: ConnectionId, after: Position, now: Millis, fruitless = 0): ToOwner[] {
    const asker: Asker = { kind: "members", members: new Set([member]) };
    return this.#askNext(member, { asker, after, through: TO_HEAD, root: undefined }, now, fruitless);
  }

  askForReplay(member: ConnectionId, after: Position, through: Seq, now: Millis): ToOwner[] {
    return this.#askNext(member, { asker: { kind: "replay", member }, after, through, root: undefined }, now);
  }

  /** The room continues at another position: the answer to the open question is ignored. */
  forgetOrder(): void {
    for (const [request, { asker }] of this.#questions) if (asker.kind === "order") this.#questions.delete(request);
  }

  /** Undefined: no member has asked for the answer. */
  receiveCatchUp({ request, head, answer }: CatchUpReply, now: Millis): CaughtUp | undefined {
    const question = this.#questions.get(request);
    if (question === undefined) return undefined;
    const { asker, root, after, through, attempt } = question;
    const isBegun = root !== undefined;
    if (answer.kind === "resync" || asker.kind === "nobody") {
      const ask = this.#close(request, asker, now);
      return { asker, batches: [], position: after, isComplete: true, isBegun, fruitless: 0, ask, reading: [] };
    }
    const { batches, position } = inSequence(after, answer.parts);
    const isFurther = position.seq > after.seq;
    const fruitless = isFurther ? 0 : attempt + 1;
    const isComplete = position.seq >= (through === TO_HEAD ? head : Math.min(through, head));
    const reading = isFurther && (isBegun || !isComplete) ? membersOf(asker) : [];
    const caughtUp = { asker, batches, position, isComplete, isBegun, fruitless, reading };
    if (isComplete) return { ...caughtUp, ask: this.#close(request, asker, now) };
    this.#questions.delete(request);
    const next = { asker, after: position, through, root: isFurther ? (root ?? request) : root };
    if (!isFurther || asker.kind === "order") return { ...caughtUp, ask: this.#ask(next, now, fruitless) };
    this.#hold(next, now);
    return { ...caughtUp, ask: [] };
  }

  /** The member has read the edits that were sent to it: its held question is asked. */
  receiveRead(member: ConnectionId, now: Millis): ToOwner[] {
    const request = this.#openOf.get(member);
    const held = request === undefined ? undefined : this.#questions.get(request);
    if (request === undefined || held?.isHeld !== true) return [];
    if (held.asker.kind !== "members") {
      this.#questions.delete(request);
      return this.#ask(held, now);
    }
    held.asker.members.delete(member);
    if (held.asker.members.size === 0) this.#questions.delete(request);
    return this.#share(member, held) ? [] : this.#ask({ ...held, asker: { kind: "members", members: new Set([member]) } }, now);
  }

  /** Returns the questions to send now: after a pause, or again if an unwanted answer does not arrive. */
  receiveTick(unwantedMsMax: number, now: Millis): ToOwner[] {
    const ask: ToOwner[] = [];
    for (const [request, question] of this.#questions) {
      const { asker, askedAt, pausedUntil } = question;
      if (asker.kind === "nobody" && now - askedAt >= unwantedMsMax) ask.push(...this.#close(request, asker, now));
      else if (pausedUntil !== undefined && now >= pausedUntil) {
        question.pausedUntil = undefined;
        question.askedAt = now;
        ask.push(this.#message(request, question));
      }
    }
    return ask;
  }

  /** Whether answers are overdue. The limit doubles with each repetition, because the owner may be reading its log. */
  overdue(msMax: number, now: Millis): "nothing" | "some" | "fruitless" {
    const overdue = this.#overdue(msMax, now);
    if (overdue.length === 0) return "nothing";
    return overdue.some(([, { attempt }]) => attempt >= ASKED_AGAIN_MAX) ? "fruitless" : "some";
  }

  /** Repeats questions to an owner that is alive. A question keeps its number, so that a late answer is accepted. */
  askOverdueAgain(msMax: number, now: Millis): ToOwner[] {
    return this.#overdue(msMax, now).map(([request, question]) => {
      question.askedAt = now;
      question.attempt += 1;
      return this.#message(request, question);
    });
  }

  /** Asks every open question again with a new number: answers to the old ones are ignored. Held questions stay held. */
  askAllAgain(now: Millis): ToOwner[] {
    const questions = [...this.#questions];
    this.#questions.clear();
    return questions.flatMap(([request, question]) => {
      if (question.asker.kind === "nobody") return this.#close(request, question.asker, now);
      if (!question.isHeld) return this.#ask(question, now);
      this.#questions.set(request, question);
      return [];
    });
  }

  /** The member needs no answer any more. Its own question stays open until it is answered. */
  forget(member: ConnectionId): void {
    this.#nextOf.delete(member);
    const request = this.#openOf.get(member);
    const question = request === undefined ? undefined : this.#questions.get(request);
    if (request === undefined || question === undefined) return;
    const { asker } = question;
    if (asker.kind === "members" && asker.members.size > 1) {
      asker.members.delete(member);
      this.#openOf.delete(member);
    } else if (question.isHeld) {
      this.#questions.delete(request); // It was not sent, so no answer will arrive.
      this.#openOf.delete(member);
    } else this.#questions.set(request, { ...question, asker: { kind: "nobody", member }, pausedUntil: undefined });
  }

  #askNext(member: ConnectionId, next: Inquiry, now: Millis, fruitless = 0): ToOwner[] {
    if (this.#openOf.has(member)) {
      // The client's question for a gap does not replace the question of a joining member: the client repeats the
      // former.
      const isOnWayIn = this.#nextOf.get(member)?.asker.kind === "members";
      if (next.asker.kind === "members" || !isOnWayIn) this.#nextOf.set(member, next);
      return [];
    }
    return next.asker.kind === "members" && this.#share(member, next) ? [] : this.#ask(next, now, fruitless);
  }

  #share(member: ConnectionId, { after, root }: Inquiry): boolean {
    for (const [request, { asker, after: asked, root: askedRoot, isHeld }] of this.#questions) {
      if (asker.kind !== "members" || isHeld || askedRoot !== root || asked.seq !== after.seq || asked.epoch !== after.epoch) continue;
      asker.members.add(member);
      this.#openOf.set(member, request);
      return true;
    }
    return false;
  }

  /** Returns the questions that waited for this one. */
  #close(request: number, asker: Asker, now: Millis): ToOwner[] {
    this.#questions.delete(request);
    return membersOf(asker).flatMap((member) => {
      this.#openOf.delete(member);
      const next = this.#nextOf.get(member);
      this.#nextOf.delete(member);
      return next === undefined ? [] : this.#askNext(member, next, now);
    });
  }

  /** Asks immediately, or after a pause that doubles with each fruitless question. */
  #ask(inquiry: Inquiry, now: Millis, fruitless = 0): ToOwner[] {
    const request = this.#newRequest();
    const pauseMs = fruitless === 0 ? 0 : PAUSE_MS_MIN * 2 ** Math.min(fruitless - 1, PAUSE_DOUBLINGS_MAX);
    const pausedUntil = pauseMs === 0 ? undefined : ((now + pauseMs) as Millis);
    this.#questions.set(request, { ...inquiry, askedAt: now, attempt: fruitless, pausedUntil, isHeld: false });
    for (const member of membersOf(inquiry.asker)) this.#openOf.set(member, request);
    return pausedUntil === undefined ? [this.#message(request, inquiry)] : [];
  }

  #hold(inquiry: Inquiry, now: Millis): void {
    const request = this.#newRequest();
    this.#questions.set(request, { ...inquiry, askedAt: now, attempt: 0, pausedUntil: undefined, isHeld: true });
    for (const member of membersOf(inquiry.asker)) this.#openOf.set(member, request);
  }

  #message(request: number, { after, through }: Inquiry): ToOwner {
    return { kind: "catch-up-request", gateway: this.#gateway, request, after, through };
  }

  #overdue(msMax: number, now: Millis): [number, Question][] {
    return [...this.#questions].filter(
      ([, { asker, askedAt, attempt, pausedUntil, isHeld }]) =>
        asker.kind !== "nobody" && !isHeld && pausedUntil === undefined && now - askedAt >= msMax * 2 ** Math.min(attempt, DOUBLINGS_MAX),
    );
  }
}

/** The parts before the first gap, and the position after these parts. */
function inSequence(after: Position, parts: readonly Uint8Array[]): Pick<CaughtUp, "batches" | "position"> {
  const batches: CommittedBatch[] = [];
  let position = after;
  for (const part of parts) {
    const batch = batchFrom(part);
    if (batch === undefined || batch.firstSeq > position.seq + 1) break;
    batches.push(batch);
    if (batch.lastSeq > position.seq) position = { epoch: batch.epoch, seq: batch.lastSeq };
  }
  return { batches, position };
}

function membersOf(asker: Asker): readonly ConnectionId[] {
  switch (asker.kind) {
    case "order":
      return [];
    case "members":
      return [...asker.members];
    case "replay":
    case "nobody":
      return [asker.member];
    default:
      return assertNever(asker);
  }
}
