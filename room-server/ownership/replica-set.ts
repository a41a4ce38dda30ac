/**
 * The replicas that this server keeps of other servers' rooms. Decides which replica subscribes, reads the log, or is
 * dropped. A result that arrives after its replica was taken has no effect, even if a new replica of the same room
 * exists by then.
 */

import { assertNever } from "../../shared/assert.ts";
import type { DeletedRecord } from "../../shared/bus/record.ts";
import type { Millis, RoomKey, ServerId } from "../../shared/ids.ts";
import type { Beacon, DecodedRecord, KnownCheckpoint, LastRecord } from "../ports.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import type { LoadingOptions, LoadTime } from "../rooms/loading.ts";
import type { ReplicaContent } from "./claim.ts";
import { Replica, type ReplicaEffect, type ReplicaInput } from "./replica.ts";

export type ReplicasOptions = LoadingOptions & { readonly replicasMax: number; readonly idleMsMax: number };

/** One replica. `usedAt`: time of the last announcement or request. */
export type KeptReplica = {
  readonly key: RoomKey;
  readonly replica: Replica;
  subscription: "none" | "under-way" | "open";
  usedAt: Millis;
};

export type ReplicaSetInput =
  | { kind: "follow"; room: RoomKey }
  | { kind: "unfollow"; room: RoomKey }
  | { kind: "subscribed"; kept: KeptReplica }
  | { kind: "announced"; kept: KeptReplica; announcement: DecodedRecord | Beacon | DeletedRecord }
  | { kind: "log-end-read"; kept: KeptReplica; last: LastRecord | undefined; checkpoint: KnownCheckpoint }
  | { kind: "log-read"; kept: KeptReplica; stored: DecodedRecord }
  | { kind: "log-loaded"; kept: KeptReplica }
  /** The awaited result failed. */
  | { kind: "failed"; kept: KeptReplica }
  /** The connection was lost and is back. Announcements in between are lost. */
  | { kind: "reconnected" }
  | { kind: "tick" };

export type ReplicaSetEffect =
  | { kind: "subscribe"; kept: KeptReplica }
  | { kind: "read-log-end"; kept: KeptReplica }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; kept: KeptReplica; after: number; through: number }
  /** Ends the subscription, if there is one. */
  | { kind: "close"; kept: KeptReplica }
  /** Answers every request to follow the room. */
  | { kind: "settled"; room: RoomKey; isWarm: boolean }
  | { kind: "limit-reached" };

/**
 * Number of idle times after which a replica is dropped. The owner releases an idle room after one idle time, and
 * announces its head several times before.
 */
const IDLE_TIMES = 2;

export class ReplicaSet {
  readonly #options: ReplicasOptions;
  readonly #budget: BacklogBudget;
  readonly #kept = new Map<RoomKey, KeptReplica>();

  constructor(options: ReplicasOptions, budget: BacklogBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get size(): number {
    return this.#kept.size;
  }

  has(room: RoomKey): boolean {
    return this.#kept.has(room);
  }

  /** False after the replica was taken or dropped. */
  isKept(kept: KeptReplica): boolean {
    return this.#kept.get(kept.key) === kept;
  }

  /** The room's owner according to the newest announcement, if this server has a complete replica. */
  ownerOf(room: RoomKey): ServerId | undefined {
    const replica = this.#kept.get(room)?.replica;
    return replica?.isWarm === true ? replica.writer : undefined;
  }

  /** The rooms owned by that server, most recently announced first. */
  roomsOf(server: ServerId): RoomKey[] {
    const owned = [...this.#kept.values()].filter(({ key }) => this.ownerOf(key) === server);
    return owned.sort((a, b) => b.usedAt - a.usedAt).map(({ key }) => key);
  }

  /** Takes a replica for a takeover. It is no longer kept afterwards. */
  take(room: RoomKey): { readonly content: ReplicaContent | undefined; readonly effects: readonly ReplicaSetEffect[] } {
    const kept = this.#kept.get(room);
    if (kept === undefined) return { content: undefined, effects: [] };
    this.#kept.delete(room);
    return {
      content: kept.replica.take(),
      effects: [
        { kind: "close", kept },
        { kind: "settled", room, isWarm: false },
      ],
    };
  }

  receiveReplicaSetInput(input: ReplicaSetInput, moment: LoadTime): readonly ReplicaSetEffect[] {
    switch (input.kind) {
      case "follow":
        return this.#follow(input.room, moment.now);
      case "unfollow":
        return this.#drop(input.room);
      case "subscribed":
        if (!this.isKept(input.kept)) return [{ kind: "close", kept: input.kept }];
        input.kept.subscription = "open";
        return this.#forward(input.kept, { kind: "attached" }, moment);
      case "announced":
        return this.#receiveAnnouncement(input.kept, input.announcement, moment);
      case "log-end-read":
        return this.#receiveLogEnd(input, moment);
      case "log-read":
        return this.#forward(input.kept, { kind: "log-read", stored: input.stored }, moment);
      case "log-loaded":
        return this.#forward(input.kept, { kind: "log-loaded" }, moment);
      case "failed":
        if (input.kept.subscription === "under-way") input.kept.subscription = "none";
        return this.#forward(input.kept, { kind: "failed" }, moment);
      case "reconnected":
        return [...this.#kept.values()].flatMap((kept) =>
          kept.subscription === "open" ? this.#forward(kept, { kind: "attached" }, moment) : [],
        );
      case "tick":
        return [...this.#kept.values()].flatMap((kept) => this.#tick(kept, moment));
      default:
        return assertNever(input);
    }
  }

  #follow(room: RoomKey, now: Millis): ReplicaSetEffect[] {
    const known = this.#kept.get(room);
    if (known !== undefined) {
      known.usedAt = now;
      return known.replica.isWarm ? [{ kind: "settled", room, isWarm: true }] : [];
    }
    if (this.#kept.size >= this.#options.replicasMax) return [{ kind: "limit-reached" }, { kind: "settled", room, isWarm: false }];
    const kept: KeptReplica = { key: room, replica: new Replica(this.#options, this.#budget), subscription: "under-way", usedAt: now };
    this.#kept.set(room, kept);
    return [{ kind: "subscribe", kept }];
  }

  #drop(room: RoomKey): readonly ReplicaSetEffect[] {
    const { content, effects } = this.take(room);
    content?.loading.clear();
    return effects;
  }

  #receiveAnnouncement(
    kept: KeptReplica,
    announcement: DecodedRecord | Beacon | DeletedRecord,
    moment: LoadTime,
  ): readonly ReplicaSetEffect[] {
    if (!this.isKept(kept)) return [];
    kept.usedAt = moment.now;
    if (!("kind" in announcement)) return this.#forward(kept, { kind: "announced", stored: announcement }, moment);
    return announcement.kind === "deleted" ? this.#drop(kept.key) : this.#forward(kept, announcement, moment);
  }

  /** A deleted room needs no takeover. */
  #receiveLogEnd({ kept, last, checkpoint }: ReplicaSetInput & { kind: "log-end-read" }, moment: LoadTime): readonly ReplicaSetEffect[] {
    if (checkpoint !== "deleted" && last?.record.kind !== "deleted")
      return this.#forward(kept, { kind: "log-end-read", last: last && { ...last, record: last.record }, checkpoint }, moment);
    return this.isKept(kept) ? this.#drop(kept.key) : [];
  }

  #forward(kept: KeptReplica, input: ReplicaInput, moment: LoadTime): readonly ReplicaSetEffect[] {
    return kept.replica.receiveReplicaInput(input, moment).map((effect) => effectOf(kept, effect));
  }

  #tick(kept: KeptReplica, moment: LoadTime): readonly ReplicaSetEffect[] {
    if (moment.now - kept.usedAt > this.#options.idleMsMax * IDLE_TIMES) return this.#drop(kept.key);
    switch (kept.subscription) {
      case "under-way":
        return [];
      case "none":
        kept.subscription = "under-way";
        return [{ kind: "subscribe", kept }];
      case "open":
        return this.#forward(kept, { kind: "tick" }, moment);
      default:
        return assertNever(kept.subscription);
    }
  }
}

function effectOf(kept: KeptReplica, effect: ReplicaEffect): ReplicaSetEffect {
  return effect.kind === "warm" ? { kind: "settled", room: kept.key, isWarm: true } : { ...effect, kept };
}
