/**
 * The questions a room has open with its owner: which edits come after a position. A question is small and its answer
 * may be megabytes, so a member has one open at a time, also when it does not wait for it any more; what it asks
 * meanwhile is asked once that is answered. Members that ask from the same position share a question. An answer
 * holds what fits a message, and one in several may lose one on its way: what follows a hole is not taken, and the rest
 * is asked for again.
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

export type CaughtUp = {
  readonly asker: Asker;
  /** Some of the answer had come before. */
  readonly begun: boolean;
  readonly batches: readonly CommittedBatch[];
  /** Where the batches lead to. */
  readonly position: Position;
  readonly done: boolean;
  /** So many questions in a row brought it no further. */
  readonly inVain: number;
  /** What is to be asked now: the rest, where it was not all of the answer, or what waited for this one's end. */
  readonly ask: readonly ToOwner[];
};

type Question = {
  readonly asker: Asker;
  readonly from: Seq;
  after: Position;
  readonly through: Seq;
  askedAt: Millis;
  begun: boolean;
  attempt: number;
  /** Asked again without having come any further: it is asked then, and not before. */
  readonly pausedUntil: Millis | undefined;
};
type Next = { readonly asker: Asker & { kind: "members" | "replay" }; readonly after: Position; readonly through: Seq };

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
  /** The newest that a member asks for besides. */
  readonly #nextOf = new SeldomMap<ConnectionId, Next>();
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
    return this.asksForOrder ? [] : this.#ask({ kind: "order" }, after, through, now);
  }

  /** After a pause, if so many questions were `inVain`. */
  askForMember(member: ConnectionId, after: Position, now: Millis, inVain = 0): ToOwner[] {
    return this.#askNext(member, { asker: { kind: "members", members: new Set([member]) }, after, through: TO_HEAD }, now, inVain);
  }

  askForReplay(member: ConnectionId, after: Position, through: Seq, now: Millis): ToOwner[] {
    return this.#askNext(member, { asker: { kind: "replay", member }, after, through }, now);
  }

  /** The order begins anew elsewhere: what its question is answered is not taken. */
  forgetOrder(): void {
    for (const [request, { asker }] of this.#questions) if (asker.kind === "order") this.#questions.delete(request);
  }

  /** Undefined: nobody has asked for it. */
  receive({ request, head, answer }: CatchUpAnswer, now: Millis): CaughtUp | undefined {
    const question = this.#questions.get(request);
    if (question === undefined) return undefined;
    const { asker, begun, through, from, attempt } = question;
    if (answer.kind === "resync")
      return { asker, begun, batches: [], position: question.after, done: true, inVain: 0, ask: this.#close(request, asker, now) };
    question.begun = true;
    question.askedAt = now;
    if (asker.kind === "nobody")
      return {
        asker,
        begun,
        batches: [],
        position: question.after,
        done: answer.last,
        inVain: 0,
        ask: answer.last ? this.#close(request, asker, now) : [],
      };
    const batches = this.#inSequence(question, answer.parts);
    const { after } = question;
    const complete = after.seq >= (through === TO_HEAD ? head : Math.min(through, head));
    const lost = batches.length < answer.parts.length || (answer.last && !complete);
    const inVain = after.seq > from ? 0 : attempt + 1;
    if (!lost)
      return {
        asker,
        begun,
        batches,
        position: after,
        done: answer.last,
        inVain,
        ask: answer.last ? this.#close(request, asker, now) : [],
      };
    this.#questions.delete(request);
    return { asker, begun, batches, position: after, done: false, inVain, ask: this.#askOn(asker, after, through, now, inVain) };
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

  /** What is to be asked now: after a pause, or because an answer that nobody waits for stays away. */
  receiveTick(unwantedMsMax: number, now: Millis): ToOwner[] {
    const ask: ToOwner[] = [];
    for (const [request, { asker, after, through, attempt, askedAt, pausedUntil }] of this.#questions) {
      if (asker.kind === "nobody" && now - askedAt >= unwantedMsMax) ask.push(...this.#close(request, asker, now));
      else if (pausedUntil !== undefined && now >= pausedUntil) {
        this.#questions.delete(request);
        ask.push(...this.#ask(asker, after, through, now, attempt));
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

  /** Of an owner that speaks. A question that nothing has come of keeps its number: an answer that is only late is taken. */
  askOverdueAgain(msMax: number, now: Millis): ToOwner[] {
    return this.#overdue(msMax, now).flatMap(([request, question]) => {
      const { asker, after, through, attempt, begun } = question;
      if (begun) {
        this.#questions.delete(request);
        return this.#ask(asker, after, through, now, attempt + 1);
      }
      question.askedAt = now;
      question.attempt += 1;
      return [this.#message(request, question)];
    });
  }

  /** Asks everything open anew, from where its answer broke off, for the first time of whoever hears it; late answers to the old questions are not taken. */
  askAllAgain(now: Millis): ToOwner[] {
    const questions = [...this.#questions];
    this.#questions.clear();
    return questions.flatMap(([request, { asker, after, through }]) =>
      asker.kind === "nobody" ? this.#close(request, asker, now) : this.#ask(asker, after, through, now),
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

  #askNext(member: ConnectionId, next: Next, now: Millis, inVain = 0): ToOwner[] {
    if (this.#openOf.has(member)) {
      this.#nextOf.set(member, next);
      return [];
    }
    return next.asker.kind === "members" && this.#share(member, next.after)
      ? []
      : this.#askOn(next.asker, next.after, next.through, now, inVain);
  }

  #share(member: ConnectionId, after: Position): boolean {
    for (const [request, { asker, after: asked, begun }] of this.#questions) {
      if (asker.kind !== "members" || begun || asked.seq !== after.seq || asked.epoch !== after.epoch) continue;
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
  #askOn(asker: Asker, after: Position, through: Seq, now: Millis, attempt: number): ToOwner[] {
    if (attempt === 0) return this.#ask(asker, after, through, now);
    const pauseMs = PAUSE_MS_MIN * 2 ** Math.min(attempt - 1, PAUSE_DOUBLINGS_MAX);
    this.#open(asker, { after, through, askedAt: now, attempt, pausedUntil: (now + pauseMs) as Millis });
    return [];
  }

  #ask(asker: Asker, after: Position, through: Seq, now: Millis, attempt = 0): ToOwner[] {
    const request = this.#open(asker, { after, through, askedAt: now, attempt, pausedUntil: undefined });
    return [this.#message(request, { after, through })];
  }

  #message(request: number, { after, through }: Pick<Question, "after" | "through">): ToOwner {
    return { kind: "catch-up-request", gateway: this.#gateway, request, after, through };
  }

  #overdue(msMax: number, now: Millis): [number, Question][] {
    return [...this.#questions].filter(
      ([, { asker, askedAt, attempt, pausedUntil }]) =>
        asker.kind !== "nobody" && pausedUntil === undefined && now - askedAt >= msMax * 2 ** Math.min(attempt, DOUBLINGS_MAX),
    );
  }

  #open(asker: Asker, question: Omit<Question, "asker" | "from" | "begun">): number {
    this.#lastRequest += 1;
    this.#questions.set(this.#lastRequest, { ...question, asker, from: question.after.seq, begun: false });
    for (const member of membersOf(asker)) this.#openOf.set(member, this.#lastRequest);
    return this.#lastRequest;
  }
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
