/**
 * The streams of a split: of the log, and of the activities beside it. A new partition begins as a mirror of its origin,
 * so that its messages keep their sequences and times: checkpoints, leases, boards and owners refer to them. Then it
 * becomes a stream of its own. Each step may be repeated after a kill.
 *
 * The invariant: no message is removed from an origin before the copies of all its messages are complete.
 */

import { setTimeout } from "node:timers/promises";

import { type JetStreamManager, type StreamConfig, type StreamInfo, type StreamSource } from "@nats-io/jetstream";

import { findStream } from "../../shared/io/jetstream-stores.ts";
import { fillerSubject, fillNumbers } from "../../shared/io/log-numbers.ts";
import { roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import { type CopyState, judgeCopy, originOf, roomsLacking, type SplitNumbers, strangersIn } from "./split-plan.ts";

/** An origin refuses every message while it has this limit, and keeps its stored messages. */
const REFUSES_ALL = 1;
const COPY_POLL_MS = 100;
/** A copy without progress for this long has failed, for example for lack of storage. */
const COPY_MS_MAX = 60_000;
const PURGES_AT_ONCE = 32;
const NAMED_MAX = 5;

/** The streams of one kind: one for each partition. */
type SplitFamily = {
  readonly stream: (partition: number) => string;
  /** The subjects of the partition, as `{env}.{kind}.{partition}.*.*`. */
  readonly subjects: (partition: number) => string;
  /** Messages that belong to no room and only use numbers. Absent: the streams have none. */
  readonly fillers?: {
    readonly purge: (partition: number) => Promise<void>;
    /** Fills the numbers up to `needed`. */
    readonly fill: (partition: number, needed: number) => Promise<void>;
  };
};

export function logFamily(nats: NatsConnection, manager: JetStreamManager, subjects: Subjects): SplitFamily {
  const purge = async (partition: number): Promise<void> => {
    await manager.streams.purge(subjects.logStream(partition), { filter: fillerSubject(subjects, partition) });
  };
  const fill = async (partition: number, needed: number): Promise<void> => {
    const { state } = await manager.streams.info(subjects.logStream(partition));
    if (state.last_seq < needed) await fillNumbers(nats, subjects, partition, { last: state.last_seq, needed });
    await purge(partition);
  };
  return { stream: subjects.logStream, subjects: subjects.logOfPartition, fillers: { purge, fill } };
}

export function activityFamily(subjects: Subjects): SplitFamily {
  return { stream: subjects.activityStream, subjects: subjects.activityOfPartition };
}

export class SplitStreams {
  readonly #manager: JetStreamManager;
  readonly #family: SplitFamily;
  readonly #numbers: SplitNumbers;

  constructor(manager: JetStreamManager, family: SplitFamily, numbers: SplitNumbers) {
    this.#manager = manager;
    this.#family = family;
    this.#numbers = numbers;
  }

  /** The partitions that exist before the split, and those that it adds. */
  get #origins(): number[] {
    return range(0, this.#numbers.from);
  }

  get #added(): number[] {
    return range(this.#numbers.from, this.#numbers.to);
  }

  async hasBegun(): Promise<boolean> {
    for (const partition of this.#origins) if ((await this.#find(partition))?.config.max_msg_size === REFUSES_ALL) return true;
    for (const partition of this.#added) if ((await this.#find(partition)) !== undefined) return true;
    return false;
  }

  async refuseAppends(): Promise<void> {
    for (const partition of this.#origins) {
      await this.#limitMessages(partition, REFUSES_ALL);
      await this.#family.fillers?.purge(partition); // A killed room server may have left some.
    }
  }

  /** `but`: a stream that another step changes. */
  async acceptAppends(but?: string): Promise<void> {
    for (const partition of this.#origins) if (this.#family.stream(partition) !== but) await this.#limitMessages(partition, -1);
  }

  /** Origins refuse messages. */
  async copy(progress: (stream: string) => void): Promise<void> {
    for (const partition of this.#added) {
      const origin = await this.#find(originOf(partition, this.#numbers));
      if (origin === undefined) continue; // No leaderboard has run.
      await this.#copy(partition, origin);
      progress(this.#family.stream(partition));
    }
  }

  async removeCopies(): Promise<void> {
    for (const partition of this.#added)
      if ((await this.#find(partition)) !== undefined) await this.#manager.streams.delete(this.#family.stream(partition));
  }

  /** Each partition keeps the messages of its rooms only. Returns how many rooms moved. */
  async separate(): Promise<number> {
    let moved = 0;
    for (const partition of this.#added) await this.#purgeStrangers(partition);
    for (const partition of this.#origins) {
      await this.#refuseLostCopies(partition);
      moved += await this.#purgeStrangers(partition);
    }
    return moved;
  }

  /** The dates of the origins' last messages, and for how long repeats of such a message are recognised. */
  async lastArrivals(): Promise<readonly { readonly stream: string; readonly at: number; readonly repeatMs: number }[]> {
    const found = await Promise.all(this.#origins.map((partition) => this.#find(partition)));
    return found.flatMap((info) =>
      info === undefined
        ? []
        : [{ stream: info.config.name, at: Date.parse(info.state.last_ts), repeatMs: info.config.duplicate_window / 1_000_000 }],
    );
  }

  async #copy(partition: number, origin: StreamInfo): Promise<void> {
    const name = this.#family.stream(partition);
    const subjects = this.#family.subjects(partition);
    if ((await this.#find(partition)) === undefined) await this.#manager.streams.add({ name, ...this.#begun(partition, origin) });
    await this.#awaitCopy(partition, origin);
    if ((await this.#manager.streams.info(name)).config.mirror !== undefined)
      await this.#manager.streams.update(name, { ...settingsLike(origin.config, subjects), ...NO_MIRROR });
    await this.#family.fillers?.fill(partition, origin.state.last_seq);
    const copy = await this.#manager.streams.info(name);
    if (judgeCopy(stateOf(origin), stateOf(copy)) !== "complete")
      throw new StartError(`the stream ${name} differs from ${origin.config.name}. ${this.#cancel("Cancel the split", "repeat it")}`);
  }

  /** A mirror of a stream without messages would be numbered from 1. */
  #begun(partition: number, origin: StreamInfo): Partial<StreamConfig> {
    const { storage, num_replicas, retention, allow_direct } = origin.config;
    const settings = { storage, num_replicas, retention, allow_direct };
    const subjects = this.#family.subjects(partition);
    if (origin.state.messages === 0) return { ...settings, ...settingsLike(origin.config, subjects), first_seq: origin.state.last_seq + 1 };
    const transform = {
      src: this.#family.subjects(originOf(partition, this.#numbers)),
      dest: subjects.replace("*.*", "{{wildcard(1)}}.{{wildcard(2)}}"),
    };
    return { ...settings, mirror: { name: origin.config.name, subject_transforms: [transform] } };
  }

  /** Also of a copy that has become a stream of its own before a kill. */
  async #awaitCopy(partition: number, origin: StreamInfo): Promise<void> {
    const name = this.#family.stream(partition);
    for (let before = -1, since = performance.now(); ; await setTimeout(COPY_POLL_MS)) {
      const { state, mirror } = await this.#manager.streams.info(name);
      if (state.messages >= origin.state.messages) return;
      if (state.messages !== before) [before, since] = [state.messages, performance.now()];
      if (performance.now() - since < COPY_MS_MAX) continue;
      const cause = mirror?.error?.description ?? "nats-server gives no reason";
      throw new StartError(
        `the copy ${name} has ${state.messages} of ${origin.state.messages} messages, and gets no more (${cause}). Give JetStream more storage, and look at nats-server's log. ${this.#cancel("Then run this command again, or cancel the split", "start the system")}`,
      );
    }
  }

  #cancel(instruction: string, then: string): string {
    return `${instruction} with --log-partitions ${this.#numbers.from}, and ${then}`;
  }

  /** Before messages of the origin are removed: NATS may have lost a copy since it was complete. */
  async #refuseLostCopies(origin: number): Promise<void> {
    const counts = await this.#counts(origin);
    for (const partition of this.#added.filter((added) => originOf(added, this.#numbers) === origin)) {
      const strangers = new Set(strangersIn(counts.keys(), origin, this.#numbers));
      const moving = [...counts].filter(([room]) => strangers.has(room) && strangersIn([room], partition, this.#numbers).length === 0);
      const lacking = moving.length === 0 ? [] : roomsLacking(new Map(moving), await this.#counts(partition));
      if (lacking.length > 0)
        throw new StartError(
          `NATS has lost records of ${lacking.length} rooms in ${this.#family.stream(partition)}, for example ${lacking.slice(0, NAMED_MAX).join(", ")}. ${this.#family.stream(origin)} still has them. Restore all streams of the log from a backup of before the split, and run coroom restore with the former number of partitions`,
        );
    }
  }

  /** Stored messages by room, and fillers. */
  async #counts(partition: number): Promise<Map<string, number>> {
    const info = await this.#find(partition, this.#family.subjects(partition));
    return new Map(Object.entries(info?.state.subjects ?? {}).map(([subject, count]) => [roomOfSubject(subject) ?? subject, count]));
  }

  async #purgeStrangers(partition: number): Promise<number> {
    const stream = this.#family.stream(partition);
    const info = await this.#find(partition, this.#family.subjects(partition));
    const strangers = strangersIn(Object.keys(info?.state.subjects ?? {}), partition, this.#numbers);
    const left = [...strangers];
    const purge = async (): Promise<void> => {
      for (let subject = left.pop(); subject !== undefined; subject = left.pop())
        await this.#manager.streams.purge(stream, { filter: subject });
    };
    await Promise.all(Array.from({ length: PURGES_AT_ONCE }, purge));
    return strangers.length;
  }

  async #limitMessages(partition: number, bytes: number): Promise<void> {
    const info = await this.#find(partition);
    if (info === undefined || info.config.max_msg_size === bytes) return;
    await this.#manager.streams.update(info.config.name, { max_msg_size: bytes });
  }

  /** Undefined: the partition has no stream. `subjects_filter`: with the messages of these subjects. */
  #find(partition: number, subjects_filter?: string): Promise<StreamInfo | undefined> {
    const options = subjects_filter === undefined ? {} : { subjects_filter };
    return findStream(this.#manager, this.#family.stream(partition), options);
  }
}

/** The settings of a new partition, like its origin. A process sets the limit of bytes at its start. */
function settingsLike(origin: StreamConfig, subjects: string): Partial<StreamConfig> {
  const { republish, duplicate_window, discard, allow_direct, allow_atomic } = origin;
  return {
    subjects: [subjects],
    duplicate_window,
    discard,
    allow_direct,
    ...(allow_atomic === undefined ? {} : { allow_atomic }),
    ...(republish === undefined ? {} : { republish: { ...republish, src: subjects } }),
  };
}

/** nats-server 2.12 makes a stream of a mirror whose update names none. */
const NO_MIRROR = { mirror: undefined as unknown as StreamSource, mirror_direct: false } satisfies Partial<StreamConfig>;

function stateOf({ state }: StreamInfo): CopyState {
  return { messages: state.messages, subjects: state.num_subjects ?? 0 };
}

function range(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, index) => first + index);
}
