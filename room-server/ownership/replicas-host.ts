/**
 * The warm copies that this server keeps of other servers' rooms: feeds each what is said in its room and what it reads
 * from the log. A copy that hears nothing for long is let go: its room was released.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey, ServerId } from "../../shared/ids.ts";
import { inTurn } from "../../shared/in-turn.ts";
import type { Log } from "../../shared/log.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import type { LoadingOptions } from "../rooms/loading.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { WarmCopy } from "./claim.ts";
import type { Checkpoints, FanOut, RoomLog, Subscription } from "../ports.ts";
import { Replica, type ReplicaEffect, type ReplicaInput } from "./replica.ts";

export type ReplicasPorts = { readonly log: RoomLog; readonly checkpoints: Checkpoints; readonly fanOut: FanOut };
export type ReplicasOptions = LoadingOptions & { readonly replicasMax: number; readonly idleMsMax: number };
export type ReplicasDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly budget: BacklogBudget;
};

type Followed = {
  readonly key: RoomKey;
  readonly replica: Replica;
  subscription: Subscription | undefined;
  /** While NATS has not answered for its subscription. */
  subscribing: boolean;
  /** When it was last told or asked anything. */
  usedAt: Millis;
  waiting: ((isWarm: boolean) => void)[];
};

const TICK_MS = 1_000;
/** Looks at the log at a time, and reads of it: after a lost line every copy wants one, and JetStream drops what does not fit its queue. */
const READS_AT_ONCE = 64;
/** A room that nobody uses is released by its owner; its copy goes some time after. Until then the owner tells its head several times. */
const IDLE_TIMES = 2;

export class Replicas {
  readonly #ports: ReplicasPorts;
  readonly #options: ReplicasOptions;
  readonly #deps: ReplicasDeps;
  readonly #followed = new Map<RoomKey, Followed>();
  readonly #looks = inTurn(READS_AT_ONCE, (followed: Followed) => this.#readLogEnd(followed));
  readonly #loads = inTurn(READS_AT_ONCE, (followed: Followed, range: ReplicaEffect & { kind: "load" }) => this.#load(followed, range));
  #cancelTick: () => void;

  constructor(ports: ReplicasPorts, options: ReplicasOptions, deps: ReplicasDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#cancelTick = deps.clock.after(TICK_MS, () => this.#tick());
    ports.fanOut.onGap(() => this.#receiveGap());
  }

  get size(): number {
    return this.#followed.size;
  }

  /** Whether a copy is kept here, warm or not yet. */
  has(key: RoomKey): boolean {
    return this.#followed.has(key);
  }

  /** Resolves once the copy is warm; false when it does not become so. */
  follow(key: RoomKey): Promise<boolean> {
    const known = this.#followed.get(key);
    if (known === undefined && this.#followed.size >= this.#options.replicasMax) {
      this.#deps.metrics.limitsReached.inc({ limit: "replicas" });
      return Promise.resolve(false);
    }
    const followed = known ?? this.#begin(key);
    followed.usedAt = this.#deps.clock.now();
    if (followed.replica.isWarm) return Promise.resolve(true);
    return new Promise((resolve) => followed.waiting.push(resolve));
  }

  /** Who owned the room when something was last heard in it, if a copy of it is kept here. */
  ownerOf(key: RoomKey): ServerId | undefined {
    const replica = this.#followed.get(key)?.replica;
    return replica?.isWarm === true ? replica.writer : undefined;
  }

  /** The rooms of which this is true, those that were heard of last first. */
  copiesOf(server: ServerId): RoomKey[] {
    const copies = [...this.#followed.values()].filter(({ key }) => this.ownerOf(key) === server);
    return copies.sort((a, b) => b.usedAt - a.usedAt).map(({ key }) => key);
  }

  unfollow(key: RoomKey): void {
    this.take(key)?.loading.clear();
  }

  /** For a takeover: from now on the copy is no longer kept here. */
  take(key: RoomKey): WarmCopy | undefined {
    const followed = this.#followed.get(key);
    if (followed === undefined) return undefined;
    this.#followed.delete(key);
    this.#deps.metrics.replicas.set(this.#followed.size);
    this.#close(followed);
    this.#tellWaiting(followed, false);
    return followed.replica.take();
  }

  stop(): void {
    this.#cancelTick();
  }

  #begin(key: RoomKey): Followed {
    const followed: Followed = {
      key,
      replica: new Replica(this.#options, this.#deps.budget),
      subscription: undefined,
      subscribing: false,
      usedAt: this.#deps.clock.now(),
      waiting: [],
    };
    this.#followed.set(key, followed);
    this.#deps.metrics.replicas.set(this.#followed.size);
    this.#await(followed, this.#subscribe(followed));
    return followed;
  }

  async #subscribe(followed: Followed): Promise<ReplicaInput> {
    followed.subscribing = true;
    const subscribed = this.#ports.fanOut.subscribe(followed.key, (heard) => {
      followed.usedAt = this.#deps.clock.now();
      if ("kind" in heard && heard.kind === "deleted") this.#drop(followed);
      else this.#receive(followed, "kind" in heard ? heard : { kind: "heard", stored: heard });
    });
    followed.subscription = await subscribed.finally(() => (followed.subscribing = false));
    if (this.#followed.get(followed.key) !== followed) this.#close(followed);
    return { kind: "attached" };
  }

  /** Its room is deleted: nobody takes it over. */
  #drop(followed: Followed): void {
    if (this.#followed.get(followed.key) === followed) this.unfollow(followed.key);
  }

  #receive(followed: Followed, input: ReplicaInput): void {
    if (this.#followed.get(followed.key) !== followed) return; // Taken or let go meanwhile.
    const { clock } = this.#deps;
    for (const effect of followed.replica.receive(input, { now: clock.now(), wallNow: clock.wallNow() })) this.#carryOut(followed, effect);
  }

  #carryOut(followed: Followed, effect: ReplicaEffect): void {
    switch (effect.kind) {
      case "read-log-end":
        return this.#await(followed, this.#looks(followed));
      case "load":
        return this.#await(followed, this.#loads(followed, effect));
      case "warm":
        return this.#tellWaiting(followed, true);
      default:
        return assertNever(effect);
    }
  }

  async #readLogEnd(followed: Followed): Promise<ReplicaInput> {
    const { key } = followed;
    if (this.#followed.get(key) !== followed) return { kind: "failed" }; // Taken or let go while it waited.
    const [last, checkpoint] = await Promise.all([this.#ports.log.readLast(key), this.#ports.checkpoints.newest(key)]);
    if (checkpoint === "deleted" || last?.record.kind === "deleted") {
      this.#drop(followed);
      return { kind: "failed" };
    }
    return { kind: "log-end-read", last: last && { ...last, record: last.record }, checkpoint };
  }

  async #load(followed: Followed, { after, through }: ReplicaEffect & { kind: "load" }): Promise<ReplicaInput> {
    if (this.#followed.get(followed.key) !== followed) return { kind: "failed" };
    for await (const stored of this.#ports.log.read(followed.key, after, through)) this.#receive(followed, { kind: "log-read", stored });
    return { kind: "log-read-whole" };
  }

  #await(followed: Followed, outcome: Promise<ReplicaInput>): void {
    outcome.then(
      (input) => this.#receive(followed, input),
      (cause: unknown) => {
        this.#deps.log.debug({ room: followed.key, cause }, "NATS did not answer for a room's copy; it is tried again");
        this.#receive(followed, { kind: "failed" });
      },
    );
  }

  #tellWaiting(followed: Followed, isWarm: boolean): void {
    for (const tell of followed.waiting.splice(0)) tell(isWarm);
  }

  #close({ key, subscription }: Followed): void {
    subscription
      ?.close()
      .catch((cause: unknown) => this.#deps.log.debug({ room: key, cause }, "the line was lost while a copy's subscription was closed"));
  }

  #receiveGap(): void {
    for (const followed of this.#followed.values()) if (followed.subscription !== undefined) this.#receive(followed, { kind: "attached" });
  }

  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(TICK_MS, () => this.#tick());
    const now = this.#deps.clock.now();
    for (const followed of this.#followed.values()) {
      if (now - followed.usedAt > this.#options.idleMsMax * IDLE_TIMES) this.unfollow(followed.key);
      else if (followed.subscribing) continue;
      else if (followed.subscription === undefined && followed.replica.hasFailed) this.#await(followed, this.#subscribe(followed));
      else this.#receive(followed, { kind: "tick" });
    }
  }
}
