/**
 * The questions a room has open with its owner: which edits come after a position. A question is small and its answer
 * may be megabytes, so a member has one open at a time, also when it does not wait for it any more; what it asks
 * meanwhile is asked once that is answered. Members that ask from the same position share a question. An answer
 * holds what fits a message: for the rest it is asked on, as for what follows a part that cannot be read.
 * Rules CUP1 to CUP16.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUpAnswer, ToOwner } from "../../shared/bus/envelope.ts";
import type { GatewayId, Millis, Position, Seq } from "../../shared/ids.ts";
import { SeldomMap } from "../../shared/seldom.ts";
import { batchFrom, type CommittedBatch } from "./in-order.ts";
import type { ConnectionId } from "../ports.ts";

/** Who is to get the edits: the room's order, members on their way into it, one member that missed some, or nobody: the member that asked has gone, or asks for something else. */
export type Asker =
  | { readonly kind: "order" }
  | { readonly kind: "members"; readonly members: Set<ConnectionId> }
  | { readonly kind: "replay"; readonly member: ConnectionId }
  | { readonly kind: "nobody"; readonly member: ConnectionId };

/** What an answer means for whoever asked. */
export type CaughtUp = {
  readonly asker: Asker;
  readonly batches: readonly CommittedBatch[];
  /** Where the batches lead to. */
  readonly position: Position;
  /** All that was asked for has come. */
  readonly isWhole: boolean;
  /** Some of what the asker missed came with answers before this one. */
  readonly isBegun: boolean;
  /** So many questions in a row brought it no further. */
  readonly inVain: number;
  /** What is to be asked now: the rest, or what waited for this one's end. */
  readonly ask: readonly ToOwner[];
};

/** Asks for the edits after a position, up to a seq. */
type Inquiry = {
  readonly asker: Asker;
  readonly after: Position;
  readonly through: Seq;
  /** It asks on. The owner goes by all that it has read for this asker: what it says then holds for nobody else who asks from there. */
  readonly isBegun: boolean;
};
type Question = Inquiry & {
  askedAt: Millis;
  attempt: number;
  /** Its asker came no further by the last: it is asked then, and not before. */
  pausedUntil: Millis | undefined;
};

/** The seq that stands for "to the head". */
const TO_HEAD = 0 as Seq;
const DOUBLINGS_MAX = 3;
/** Asked again so often, a question is open in vain: after 7 s, where an answer is due within one. */
const ASKED_AGAIN_MAX = 2;
const PAUSE_MS_MIN = 100;
const PAUSE_DOUBLINGS_MAX = 6;

export class CatchUps {
  readonly #gateway: GatewayId;
  readonly #questions = new SeldomMap<number, Question>();
  /** Each member's open question. */
  readonly #openOf = new SeldomMap<ConnectionId, number>();
  /** What a member asks for besides: the newest, but that a hole does not take the place of its way in. */
  readonly #nextOf = new SeldomMap<ConnectionId, Inquiry>();
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
    return this.asksForOrder ? [] : this.#ask({ asker: { kind: "order" }, after, through, isBegun: false }, now);
  }

  /** After a pause, if so many questions were `inVain`. */
  askForMember(member: ConnectionId, after: Position, now: Millis, inVain = 0): ToOwner[] {
    const asker: Asker = { kind: "members", members: new Set([member]) };
    return this.#askNext(member, { asker, after, through: TO_HEAD, isBegun: false }, now, inVain);
  }

  askForReplay(member: ConnectionId, after: Position, through: Seq, now: Millis): ToOwner[] {
    return this.#askNext(member, { asker: { kind: "replay", member }, after, through, isBegun: false }, now);
  }

  /** The order begins anew elsewhere: what its question is answered is not taken. */
  forgetOrder(): void {
    for (const [request, { asker }] of this.#questions) if (asker.kind === "order") this.#questions.delete(request);
  }

  /** Undefined: nobody has asked for it. */
  receive({ request, head, answer }: CatchUpAnswer, now: Millis): CaughtUp | undefined {
    const question = this.#questions.get(request);
    if (question === undefined) return undefined;
    const { asker, isBegun, after, through, attempt } = question;
    if (answer.kind === "resync" || asker.kind === "nobody")
      return { asker, batches: [], position: after, isWhole: true, isBegun, inVain: 0, ask: this.#close(request, asker, now) };
    const { batches, position } = inSequence(after, answer.parts);
    const isFurther = position.seq > after.seq;
    const inVain = isFurther ? 0 : attempt + 1;
    const isWhole = position.seq >= (through === TO_HEAD ? head : Math.min(through, head));
    const caughtUp = { asker, batches, position, isWhole, isBegun, inVain };
    if (isWhole) return { ...caughtUp, ask: this.#close(request, asker, now) };
    this.#questions.delete(request);
    return { ...caughtUp, ask: this.#ask({ asker, after: position, through, isBegun: isBegun || isFurther }, now, inVain) };
  }

  /** What is to be asked now: after a pause, or because an answer that nobody waits for stays away. */
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

  /** What waits for longer than `msMax`, doubled each time it was asked again: the owner may be reading the log for it. */
  overdue(msMax: number, now: Millis): "nothing" | "some" | "in-vain" {
    const overdue = this.#overdue(msMax, now);
    if (overdue.length === 0) return "nothing";
    return overdue.some(([, { attempt }]) => attempt >= ASKED_AGAIN_MAX) ? "in-vain" : "some";
  }

  /** Of an owner that speaks. A question keeps its number: an answer that is only late is taken. */
  askOverdueAgain(msMax: number, now: Millis): ToOwner[] {
    return this.#overdue(msMax, now).map(([request, question]) => {
      question.askedAt = now;
      question.attempt += 1;
      return this.#message(request, question);
    });
  }

  /** Asks everything open anew, for the first time of whoever hears it; late answers to the old questions are not taken. */
  askAllAgain(now: Millis): ToOwner[] {
    const questions = [...this.#questions];
    this.#questions.clear();
    return questions.flatMap(([request, question]) =>
      question.asker.kind === "nobody" ? this.#close(request, question.asker, now) : this.#ask(question, now),
    );
  }

  /** The member wants nothing any more. What it alone had asked stays open until it is answered. */
  forget(member: ConnectionId): void {
    this.#nextOf.delete(member);
    const request = this.#openOf.get(member);
    const question = request === undefined ? undefined : this.#questions.get(request);
    if (request === undefined || question === undefined) return;
    const { asker } = question;
    if (asker.kind === "members" && asker.members.size > 1) {
      asker.members.delete(member);
      this.#openOf.delete(member);
    } else this.#questions.set(request, { ...question, asker: { kind: "nobody", member }, pausedUntil: undefined });
  }

  #askNext(member: ConnectionId, next: Inquiry, now: Millis, inVain = 0): ToOwner[] {
    if (this.#openOf.has(member)) {
      // What brings a member in does not give way to a hole that its client asks for besides: that asks again.
      const isOnWayIn = this.#nextOf.get(member)?.asker.kind === "members";
      if (next.asker.kind === "members" || !isOnWayIn) this.#nextOf.set(member, next);
      return [];
    }
    return next.asker.kind === "members" && this.#share(member, next.after) ? [] : this.#ask(next, now, inVain);
  }

  #share(member: ConnectionId, after: Position): boolean {
    for (const [request, { asker, after: asked, isBegun }] of this.#questions) {
      if (asker.kind !== "members" || isBegun || asked.seq !== after.seq || asked.epoch !== after.epoch) continue;
      asker.members.add(member);
      this.#openOf.set(member, request);
      return true;
    }
    return false;
  }

  /** Returns what waited for its end. */
  #close(request: number, asker: Asker, now: Millis): ToOwner[] {
    this.#questions.delete(request);
    return membersOf(asker).flatMap((member) => {
      this.#openOf.delete(member);
      const next = this.#nextOf.get(member);
      this.#nextOf.delete(member);
      return next === undefined ? [] : this.#askNext(member, next, now);
    });
  }

  /** At once, or after a pause that doubles with each that was in vain. */
  #ask(inquiry: Inquiry, now: Millis, inVain = 0): ToOwner[] {
    const request = ++this.#lastRequest;
    const pauseMs = inVain === 0 ? 0 : PAUSE_MS_MIN * 2 ** Math.min(inVain - 1, PAUSE_DOUBLINGS_MAX);
    const pausedUntil = pauseMs === 0 ? undefined : ((now + pauseMs) as Millis);
    this.#questions.set(request, { ...inquiry, askedAt: now, attempt: inVain, pausedUntil });
    for (const member of membersOf(inquiry.asker)) this.#openOf.set(member, request);
    return pausedUntil === undefined ? [this.#message(request, inquiry)] : [];
  }

  #message(request: number, { after, through }: Inquiry): ToOwner {
    return { kind: "catch-up-request", gateway: this.#gateway, request, after, through };
  }

  #overdue(msMax: number, now: Millis): [number, Question][] {
    return [...this.#questions].filter(
      ([, { asker, askedAt, attempt, pausedUntil }]) =>
        asker.kind !== "nobody" && pausedUntil === undefined && now - askedAt >= msMax * 2 ** Math.min(attempt, DOUBLINGS_MAX),
    );
  }
}

/** The parts up to the first hole, and where they lead to. */
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
