/**
 * Keeps this server's replicas of other servers' rooms: feeds each with announcements of its room and records from the
 * log. A replica without an announcement for long is dropped, because its room was released.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, RoomKey, ServerId } from "../../shared/ids.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { Log } from "../../shared/process/log.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import type { LoadingOptions } from "../rooms/loading.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { ReplicaContent } from "./claim.ts";
import type { CheckpointReader, FanOut, RoomLog, Subscription } from "../ports.ts";
import { Replica, type ReplicaEffect, type ReplicaInput } from "./replica.ts";

export type ReplicasPorts = { readonly log: RoomLog; readonly checkpoints: CheckpointReader; readonly fanOut: FanOut };
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
  /** True until NATS confirms the subscription. */
  subscribing: boolean;
  /** Time of the last announcement or request. */
  usedAt: Millis;
  waiting: ((isWarm: boolean) => void)[];
};

const TICK_MS = 1_000;
/**
 * Reads of the log at once. After a reconnect every replica wants one, and JetStream drops what does not fit its queue.
 */
const READS_AT_ONCE = 64;
/**
 * An idle room is released by its owner, and its replica is dropped after this many idle times. The owner announces its
 * head several times before.
 */
const IDLE_TIMES = 2;

export class Replicas {
  readonly #ports: ReplicasPorts;
  readonly #options: ReplicasOptions;
  readonly #deps: ReplicasDeps;
  readonly #followed = new Map<RoomKey, Followed>();
  readonly #looks = limitConcurrency(READS_AT_ONCE, (followed: Followed) => this.#readLogEnd(followed));
  readonly #loads = limitConcurrency(READS_AT_ONCE, (followed: Followed, range: ReplicaEffect & { kind: "load" }) =>
    this.#load(followed, range),
  );
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

  /** Whether a replica is kept here, complete or not. */
  has(key: RoomKey): boolean {
    return this.#followed.has(key);
  }

  /** Resolves to true once the replica is complete; false if it fails. */
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

  /** The room's owner by the newest announcement, if a replica is kept here. */
  ownerOf(key: RoomKey): ServerId | undefined {
    const replica = this.#followed.get(key)?.replica;
    return replica?.isWarm === true ? replica.writer : undefined;
  }

  /** The rooms owned by that server, most recently announced first. */
  copiesOf(server: ServerId): RoomKey[] {
    const copies = [...this.#followed.values()].filter(({ key }) => this.ownerOf(key) === server);
    return copies.sort((a, b) => b.usedAt - a.usedAt).map(({ key }) => key);
  }

  unfollow(key: RoomKey): void {
    this.take(key)?.loading.clear();
  }

  /** For a takeover: the replica is no longer kept here afterwards. */
  take(key: RoomKey): ReplicaContent | undefined {
    const followed = this.#followed.get(key);
    if (followed === undefined) return undefined;
    this.#followed.delete(key);
    this.#deps.metrics.replicas.set(this.#followed.size);
    this.#close(followed);
    this.#resolveWaiting(followed, false);
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

  /** The room is deleted: nobody takes it over. */
  #drop(followed: Followed): void {
    if (this.#followed.get(followed.key) === followed) this.unfollow(followed.key);
  }

  #receive(followed: Followed, input: ReplicaInput): void {
    if (this.#followed.get(followed.key) !== followed) return; // Taken or dropped in the meantime.
    const { clock } = this.#deps;
    for (const effect of followed.replica.receiveReplicaInput(input, { now: clock.now(), wallNow: clock.wallNow() }))
      this.#carryOut(followed, effect);
  }

  #carryOut(followed: Followed, effect: ReplicaEffect): void {
    switch (effect.kind) {
      case "read-log-end":
        return this.#await(followed, this.#looks(followed));
      case "load":
        return this.#await(followed, this.#loads(followed, effect));
      case "warm":
        return this.#resolveWaiting(followed, true);
      default:
        return assertNever(effect);
    }
  }

  async #readLogEnd(followed: Followed): Promise<ReplicaInput> {
    const { key } = followed;
    if (this.#followed.get(key) !== followed) return { kind: "failed" }; // Taken or dropped while it waited.
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
    return { kind: "log-loaded" };
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

  #resolveWaiting(followed: Followed, isWarm: boolean): void {
    for (const tell of followed.waiting.splice(0)) tell(isWarm);
  }

  #close({ key, subscription }: Followed): void {
    subscription
      ?.close()
      .catch((cause: unknown) =>
        this.#deps.log.debug({ room: key, cause }, "the NATS connection was lost while a replica's subscription closed"),
      );
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
