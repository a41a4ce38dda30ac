/**
 * Runs this server's replicas of other servers' rooms: subscribes to announcements, reads the log, and answers requests
 * to follow a room. `replica-set.ts` decides.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey, ServerId } from "../../shared/ids.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { CheckpointReader, FanOut, RoomLog, Subscription } from "../ports.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import type { ReplicaContent } from "./claim.ts";
import { type KeptReplica, ReplicaSet, type ReplicaSetEffect, type ReplicaSetInput, type ReplicasOptions } from "./replica-set.ts";

type ReplicasPorts = {
  readonly log: Pick<RoomLog, "readLast" | "read">;
  readonly checkpoints: CheckpointReader;
  readonly fanOut: FanOut;
};
type ReplicasDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly budget: BacklogBudget;
};

const TICK_MS = 1_000;
/** A request to follow a room is answered within this time and one tick: the other server waits for 10 s. */
const ANSWER_MS_MAX = 8_000;
/**
 * Maximum number of concurrent reads of the log. After a reconnect every replica needs one, and JetStream drops
 * requests that do not fit its queue.
 */
const READS_AT_ONCE = 64;

type Waiting = { readonly until: Millis; readonly resolve: (isWarm: boolean) => void };

export class Replicas {
  readonly #ports: ReplicasPorts;
  readonly #deps: ReplicasDeps;
  readonly #set: ReplicaSet;
  readonly #subscriptions = new Map<KeptReplica, Subscription>();
  /** Requests to follow a room whose replica is not complete yet. */
  readonly #waiting = new Map<RoomKey, readonly Waiting[]>();
  readonly #logEndReads = limitConcurrency(READS_AT_ONCE, (kept: KeptReplica) => this.#readLogEnd(kept));
  readonly #loads = limitConcurrency(READS_AT_ONCE, (range: ReplicaSetEffect & { kind: "load" }) => this.#load(range));
  readonly #cancelTick: () => void;

  constructor(ports: ReplicasPorts, options: ReplicasOptions, deps: ReplicasDeps) {
    this.#ports = ports;
    this.#deps = deps;
    this.#set = new ReplicaSet(options, deps.budget);
    this.#cancelTick = every(deps.clock, TICK_MS, () => this.#tick());
    ports.fanOut.onGap(() => this.#receiveReplicaSetInput({ kind: "reconnected" }));
  }

  get size(): number {
    return this.#set.size;
  }

  /** Whether this server keeps a replica, complete or not. */
  has(room: RoomKey): boolean {
    return this.#set.has(room);
  }

  /** The room's owner according to the newest announcement, if this server has a complete replica. */
  ownerOf(room: RoomKey): ServerId | undefined {
    return this.#set.ownerOf(room);
  }

  /** The rooms owned by that server, most recently announced first. */
  roomsOf(server: ServerId): RoomKey[] {
    return this.#set.roomsOf(server);
  }

  /**
   * Resolves to true once the replica is complete. False: this server keeps no replica of the room, or it is still
   * incomplete after some seconds. It is then completed later, because failed reads are repeated.
   */
  follow(room: RoomKey): Promise<boolean> {
    return new Promise((resolve) => {
      const until = (this.#deps.clock.now() + ANSWER_MS_MAX) as Millis;
      this.#waiting.set(room, [...(this.#waiting.get(room) ?? []), { until, resolve }]);
      this.#receiveReplicaSetInput({ kind: "follow", room });
    });
  }

  unfollow(room: RoomKey): void {
    this.#receiveReplicaSetInput({ kind: "unfollow", room });
  }

  /** Takes a replica for a takeover. It is no longer kept afterwards. */
  take(room: RoomKey): ReplicaContent | undefined {
    const { content, effects } = this.#set.take(room);
    for (const effect of effects) this.#carryOut(effect);
    return content;
  }

  stop(): void {
    this.#cancelTick();
  }

  #receiveReplicaSetInput(input: ReplicaSetInput): void {
    const { clock } = this.#deps;
    for (const effect of this.#set.receiveReplicaSetInput(input, { now: clock.now(), wallNow: clock.wallNow() })) this.#carryOut(effect);
  }

  #carryOut(effect: ReplicaSetEffect): void {
    const { metrics } = this.#deps;
    switch (effect.kind) {
      case "subscribe":
        metrics.replicas.set(this.#set.size);
        return this.#await(effect.kept, this.#subscribe(effect.kept));
      case "read-log-end":
        return this.#await(effect.kept, this.#logEndReads(effect.kept));
      case "load":
        return this.#await(effect.kept, this.#loads(effect));
      case "close":
        metrics.replicas.set(this.#set.size);
        return this.#close(effect.kept);
      case "settled":
        return this.#resolveWaiting(effect.room, effect.isWarm);
      case "limit-reached":
        return metrics.limitsReached.inc({ limit: "replicas" });
      default:
        return assertNever(effect);
    }
  }

  async #subscribe(kept: KeptReplica): Promise<ReplicaSetInput> {
    const subscription = await this.#ports.fanOut.subscribe(kept.key, (announcement) =>
      this.#receiveReplicaSetInput({ kind: "announced", kept, announcement }),
    );
    this.#subscriptions.set(kept, subscription);
    return { kind: "subscribed", kept };
  }

  /** The replica may have been taken while its read waited. */
  async #readLogEnd(kept: KeptReplica): Promise<ReplicaSetInput> {
    if (!this.#set.isKept(kept)) return { kind: "failed", kept };
    const { log, checkpoints } = this.#ports;
    // Read before the log's end, because the log contained everything that the checkpoint covers.
    const checkpoint = await checkpoints.newest(kept.key);
    return { kind: "log-end-read", kept, last: await log.readLast(kept.key), checkpoint };
  }

  async #load({ kept, after, through }: ReplicaSetEffect & { kind: "load" }): Promise<ReplicaSetInput> {
    if (!this.#set.isKept(kept)) return { kind: "failed", kept };
    for await (const stored of this.#ports.log.read(kept.key, after, through))
      this.#receiveReplicaSetInput({ kind: "log-read", kept, stored });
    return { kind: "log-loaded", kept };
  }

  #await(kept: KeptReplica, outcome: Promise<ReplicaSetInput>): void {
    outcome.then(
      (input) => this.#receiveReplicaSetInput(input),
      (cause: unknown) => {
        this.#deps.log.debug({ room: kept.key, cause }, "NATS did not answer for a room's replica; it is tried again");
        this.#receiveReplicaSetInput({ kind: "failed", kept });
      },
    );
  }

  #resolveWaiting(room: RoomKey, isWarm: boolean): void {
    const waiting = this.#waiting.get(room) ?? [];
    this.#waiting.delete(room);
    for (const { resolve } of waiting) resolve(isWarm);
  }

  #refuseOverdue(now: Millis): void {
    for (const [room, waiting] of this.#waiting) {
      const later = waiting.filter(({ until }) => now < until);
      if (later.length > 0) this.#waiting.set(room, later);
      else this.#waiting.delete(room);
      for (const { until, resolve } of waiting) if (now >= until) resolve(false);
    }
  }

  #close(kept: KeptReplica): void {
    const subscription = this.#subscriptions.get(kept);
    this.#subscriptions.delete(kept);
    subscription
      ?.close()
      .catch((cause: unknown) =>
        this.#deps.log.debug({ room: kept.key, cause }, "the NATS connection was lost while a replica's subscription closed"),
      );
  }

  #tick(): void {
    this.#receiveReplicaSetInput({ kind: "tick" });
    this.#refuseOverdue(this.#deps.clock.now());
  }
}
