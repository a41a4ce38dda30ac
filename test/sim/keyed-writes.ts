/**
 * Backends that send edits over HTTP with an `Idempotency-Key`. Answers are late or lost, so each request is repeated
 * over any gateway until it is answered, then later in the run, and once more after the last fault. Some keys are used
 * for two requests with different bodies. The log must have at most one edit of each key, and each answer must be true.
 */

import type { RoomKey } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { Judge } from "./judge.ts";
import { isSameBytes, keystroke } from "./keystrokes.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";

/** Author numbers of the requests, which no tab has. */
const AUTHORS_FROM = 200;
const KEYS_MAX = 12;
const SHARED_KEY_CHANCE = 0.5;
const LOST_CHANCE = 0.3;
const REPEATS = 3;
/** A client repeats a request that is not answered within this time. Most clients are impatient. */
const PATIENCE_MS_MAX = 1_500;
/** Time between attempts while no gateway is ready. */
const SOON_MS = 10;

export type PostRequest = { readonly user: string; readonly key: string; readonly body: Uint8Array };
/** `error`: the code of a refusal. `seq`: 0 if nothing was written. */
export type PostAnswer = { readonly status: number; readonly error: string | undefined; readonly seq: number };
type WritingGateway = {
  readonly isUp: boolean;
  readonly process: SimProcess;
  post(place: "edits", room: RoomKey, request: PostRequest): Promise<PostAnswer>;
};
/** The parts of the world that clients of the HTTP API use. */
export type HttpClientWorld = {
  readonly scheduler: Scheduler;
  readonly judge: Judge;
  readonly trace: Trace;
  readonly chance: (purpose: string) => Prng;
  readonly size: { readonly faultyMs: number };
};
type WrittenCluster = { readonly world: HttpClientWorld; gateway(whom: { readonly whom: number }): WritingGateway };

/** One request body. `answer`: the last answer that settles it. */
type KeyedRequest = {
  readonly author: number;
  readonly payload: Uint8Array;
  answer: PostAnswer | undefined;
  repeats: number;
  attempts: number;
};

export class KeyedWrites {
  readonly #writes: KeyedWrite[] = [];

  /** Undefined: the run has the maximum of keys. */
  begin(cluster: WrittenCluster, room: RoomKey): KeyedWrite | undefined {
    if (this.#writes.length === KEYS_MAX) return undefined;
    const write = new KeyedWrite(cluster, room, this.#writes.length);
    this.#writes.push(write);
    return write;
  }

  /** Sends each request once more. From now on no answer is lost. */
  repeatAll(): void {
    for (const write of this.#writes) write.repeatLast();
  }

  /** Describes a request without a final answer, or one whose answer is no longer true. */
  unsettled(): string | undefined {
    return this.#writes.map((write) => write.unsettled()).find((what) => what !== undefined);
  }
}

class KeyedWrite {
  readonly #cluster: WrittenCluster;
  readonly #room: RoomKey;
  readonly #name: string;
  readonly #prng: Prng;
  readonly #requests: readonly KeyedRequest[];
  #isLast = false;

  constructor(cluster: WrittenCluster, room: RoomKey, number: number) {
    this.#cluster = cluster;
    this.#room = room;
    this.#name = `backend-${number}`;
    this.#prng = cluster.world.chance(this.#name);
    const bodies = this.#prng.chance(SHARED_KEY_CHANCE) ? 2 : 1;
    this.#requests = Array.from({ length: bodies }, (_, body) => {
      const author = AUTHORS_FROM + 2 * number + body;
      return { author, payload: keystroke({ author, index: 0 }), answer: undefined, repeats: REPEATS, attempts: 0 };
    });
    for (const request of this.#requests) {
      cluster.world.judge.receiveTab(request.author, this.#name);
      this.#ask(request);
    }
  }

  get isRepeated(): boolean {
    return this.#requests.some(({ attempts }) => attempts > 1);
  }

  repeatLast(): void {
    this.#isLast = true;
    for (const request of this.#requests) {
      if (request.answer === undefined) continue; // Its next attempt is under way.
      request.answer = undefined;
      request.repeats = 0;
      this.#ask(request);
    }
  }

  unsettled(): string | undefined {
    const open = this.#requests.find(({ answer }) => answer === undefined);
    if (open !== undefined) return `${this.#name} has no answer to the request of ${open.author}`;
    return this.#requests.map((request) => this.#wrongAbout(request, request.answer!)).find((wrong) => wrong !== undefined);
  }

  #ask(request: KeyedRequest): void {
    const { scheduler } = this.#cluster.world;
    const gateway = this.#cluster.gateway({ whom: this.#prng.unit() });
    if (!gateway.isUp) return void scheduler.after(SOON_MS, () => this.#ask(request));
    request.attempts += 1;
    let isSettled = false;
    const receive = (answer: PostAnswer): void => {
      const isFinal = this.#receive(request, answer);
      if (isSettled || !isFinal || (!this.#isLast && this.#prng.chance(LOST_CHANCE))) return;
      isSettled = true;
      const isFirst = request.answer === undefined;
      request.answer = answer;
      if (isFirst) this.#repeatLater(request);
    };
    gateway.process.run(
      () => void gateway.post("edits", this.#room, { user: this.#name, key: this.#name, body: request.payload }).then(receive),
    );
    scheduler.after(1 + this.#prng.unit() ** 2 * PATIENCE_MS_MAX, () => {
      if (isSettled || request.answer !== undefined) return;
      this.#ask(request);
    });
  }

  #repeatLater(request: KeyedRequest): void {
    const { scheduler, size } = this.#cluster.world;
    if (request.repeats === 0) return;
    request.repeats -= 1;
    scheduler.after((this.#prng.unit() * size.faultyMs) / REPEATS, () => {
      if (this.#isLast) return;
      request.answer = undefined;
      this.#ask(request);
    });
  }

  /** Returns whether the answer settles the request. */
  #receive(request: KeyedRequest, answer: PostAnswer): boolean {
    const { judge, trace } = this.#cluster.world;
    trace.note(`${this.#name} is answered about ${request.author}: ${answer.status} ${answer.error ?? `seq ${answer.seq}`}`, this.#room);
    const wrong = this.#wrongAbout(request, answer);
    if (wrong !== undefined) judge.fail(wrong, this.#room);
    return answer.status === 200 || answer.error === "key-reused" || answer.status === 410;
  }

  /** Checks an answer against the log. Undefined: it is true, or promises nothing. */
  #wrongAbout({ author, payload }: KeyedRequest, { status, error, seq }: PostAnswer): string | undefined {
    const room = this.#cluster.world.judge.room(this.#room);
    const { order, lost, isDeleted } = room;
    const isStored = room.accountedFor(author) > 0;
    const stored = order[seq - 1]?.payload;
    if (status === 200 && !lost.hasAny && (stored === undefined || !isSameBytes(stored, payload)))
      return `${this.#name} received that ${author} has seq ${seq}, where the log has another edit`;
    if (status === 200 && !isStored) return `${this.#name} received that ${author} is stored, which the log does not have`;
    if (status === 410 && !isDeleted) return `${this.#name} received that its room is deleted, which is false`;
    if (error !== "key-reused") return undefined;
    if (this.#requests.length === 1) return `${this.#name} received that its key was used for another request, which is false`;
    if (lost.hasAny) return undefined;
    if (isStored) return `${this.#name} received that ${author} is refused, and the log has it`;
    const hasOther = this.#requests.some((other) => other.author !== author && room.accountedFor(other.author) > 0);
    return hasOther || isDeleted ? undefined : `${this.#name} received that its key is used, and the log has no edit of it`;
  }
}
