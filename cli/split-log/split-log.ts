/**
 * `coroom split-log`: splits each partition of the log into equally many, while the system is stopped
 * (docs/operations/partitions.md, ADR 70). It may be killed at any moment and run again.
 *
 * The first stream states each step before it begins, so that no process starts in between. Until it states `moving`,
 * the former partitions have all records, and a split can be cancelled.
 */

import { jetstream, JetStreamApiError, JetStreamError, jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";

import { type Subjects, subjectsOf } from "../../shared/bus/subjects.ts";
import { existingBucket } from "../../shared/io/jetstream-stores.ts";
import { existingLeases } from "../../shared/io/kv-leases.ts";
import { statedPartitions, statePartitions } from "../../shared/io/log-stream.ts";
import { isNoAnswer } from "../../shared/io/nats-json.ts";
import { isForbidden, type NatsConnection } from "../../shared/io/nats.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import { SettingError, type Values } from "../../shared/settings/settings.ts";
import { moveCheckpoints } from "../../leaderboard/io/moved-checkpoints.ts";
import type { splitLogSettings } from "../command-settings.ts";
import type { PrintLine } from "../command.ts";
import { withOperator } from "../ops.ts";
import { refuseRunningProcesses } from "../running-processes.ts";
import { leaseAfter, originOf, planSplit, type SplitNumbers } from "./split-plan.ts";
import { activityFamily, logFamily, SplitStreams } from "./split-streams.ts";

const ANSWER_MS_MAX = 30_000;
const NATS_SINCE = [2, 12] as const;

export async function splitLog(config: Values<typeof splitLogSettings>, print: PrintLine): Promise<void> {
  try {
    await withOperator(config, (nats) => splitOver(nats, config, print));
  } catch (cause) {
    if (!isNoAnswer(cause) && !(cause instanceof JetStreamError) && !(cause instanceof JetStreamApiError)) throw cause;
    throw new StartError(
      `NATS did not carry out a step of the split (${cause instanceof Error ? cause.message : ""}). See nats-server's log, and run this command again: it continues`,
      { cause },
    );
  }
}

async function splitOver(nats: NatsConnection, config: Values<typeof splitLogSettings>, print: PrintLine): Promise<void> {
  const subjects = subjectsOf(config.environment);
  const manager = await jetstreamManager(nats, { timeout: ANSWER_MS_MAX });
  const stated = await statedPartitions(manager, subjects);
  const plan = planSplit(stated, config.logPartitions);
  if (plan.kind === "refuse") throw new SettingError(plan.reason);
  if (plan.kind === "nothing") return print(`the log has ${config.logPartitions} partitions`);
  refuseOldNats(nats);
  await refuseForbidden(manager, subjects, plan.to);
  const split = new LogSplit({ nats, manager, subjects, print }, plan);
  const isNew = !(await split.hasBegun());
  if (stated?.kind === "settled" && !isNew)
    throw new SettingError(
      `the log has ${plan.from} partitions, and there are streams of further ones, such as ${subjects.logStream(plan.from)}. Remove them (nats stream rm), and run this command again`,
    );
  if (plan.kind !== "cancel" || !isNew) await split.refuseRunning(isNew);
  if (plan.kind === "cancel") return split.cancel();
  if (plan.kind === "copy") await split.copy();
  await split.move();
}

type SplitDeps = {
  readonly nats: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: Subjects;
  readonly print: PrintLine;
};

/** The steps, after the checks. */
export class LogSplit {
  readonly #deps: SplitDeps;
  readonly #numbers: SplitNumbers;
  readonly #log: SplitStreams;
  readonly #activities: SplitStreams;

  constructor(deps: SplitDeps, { from, to }: SplitNumbers) {
    const { nats, manager, subjects } = deps;
    this.#deps = deps;
    this.#numbers = { from, to };
    this.#log = new SplitStreams(manager, logFamily(nats, manager, subjects), this.#numbers);
    this.#activities = new SplitStreams(manager, activityFamily(subjects), this.#numbers);
  }

  /** False: no step has been taken, except perhaps the statement. Processes may run then. */
  async hasBegun(): Promise<boolean> {
    return (await this.#log.hasBegun()) || (await this.#activities.hasBegun());
  }

  /** No process starts after the statement, so none can be missed. `isNew`: no step has been taken. */
  async refuseRunning(isNew: boolean): Promise<void> {
    const { nats, manager, subjects } = this.#deps;
    const { from } = this.#numbers;
    if (isNew) await statePartitions(manager, subjects, { kind: "copying", ...this.#numbers });
    try {
      await refuseRunningProcesses(nats, subjects, "split-log");
    } catch (error) {
      if (isNew) await statePartitions(manager, subjects, { kind: "settled", count: from });
      throw error;
    }
  }

  async copy(): Promise<void> {
    const { manager, subjects, print } = this.#deps;
    for (const streams of [this.#log, this.#activities]) {
      await streams.refuseAppends();
      await streams.copy((stream) => print(`${stream}: copied`));
    }
    await this.#warnOfRepeats();
    await statePartitions(manager, subjects, { kind: "moving", ...this.#numbers });
  }

  async move(): Promise<void> {
    const { manager, subjects, print } = this.#deps;
    const { from, to } = this.#numbers;
    const rooms = await this.#log.separate();
    await this.#activities.separate();
    for (const bucket of [subjects.documentsBucket, subjects.boardsBucket]) await this.#moveLeases(bucket);
    const checkpoints = await existingBucket(jetstream(this.#deps.nats, { timeout: ANSWER_MS_MAX }), subjects.boardCheckpointsBucket);
    const boards = checkpoints === undefined ? 0 : await moveCheckpoints(checkpoints, to);
    const first = (await manager.streams.info(subjects.logStream(0))).config;
    await this.#activities.acceptAppends();
    await this.#log.acceptAppends(first.name);
    // All at once: a repetition must not divide the limit again.
    const limit = first.max_bytes > 0 ? { max_bytes: Math.floor((first.max_bytes * from) / to) } : {};
    await statePartitions(manager, subjects, { kind: "settled", count: to }, { ...limit, max_msg_size: -1 });
    print(`${rooms} rooms and the checkpoints of ${boards} boards moved. The log has ${to} partitions`);
    print(`Set COROOM_LOG_PARTITIONS=${to} for every role, and start the system`);
  }

  async cancel(): Promise<void> {
    const { manager, subjects, print } = this.#deps;
    const { from } = this.#numbers;
    for (const streams of [this.#log, this.#activities]) await streams.removeCopies();
    await this.#activities.acceptAppends();
    await this.#log.acceptAppends();
    await statePartitions(manager, subjects, { kind: "settled", count: from });
    print(`the split is cancelled. The log has ${from} partitions`);
  }

  /** Also of the former partitions. A partition whose origin nobody has read yet gets none. */
  async #moveLeases(bucket: string): Promise<void> {
    const leases = await existingLeases(jetstream(this.#deps.nats, { timeout: ANSWER_MS_MAX }), bucket);
    if (leases === undefined) return;
    for (let partition = this.#numbers.to - 1; partition >= 0; partition--) {
      const origin = originOf(partition, this.#numbers);
      const { lease } = await leases.read(origin);
      if (lease === undefined) continue;
      const { revision } = await leases.read(partition);
      const written = await leases.write(partition, leaseAfter(lease, partition === origin), revision);
      if (written.kind === "superseded")
        throw new StartError(`another process wrote the lease of partition ${partition} in ${bucket}. Stop it, and run this command again`);
    }
  }

  /** A new stream of activities recognises no repeat of an activity from before the split. */
  async #warnOfRepeats(): Promise<void> {
    const recent = (await this.#activities.lastArrivals()).filter(({ at, repeatMs }) => Date.now() - at < repeatMs);
    for (const { stream, at } of recent)
      this.#deps.print(
        `${stream}: the last activity arrived at ${new Date(at).toISOString()}. A backend that reports it again after the split may give its points twice`,
      );
  }
}

function refuseOldNats({ info }: NatsConnection): void {
  const [major = 0, minor = 0] = (info?.version ?? "").split(".").map(Number);
  if (major > NATS_SINCE[0] || (major === NATS_SINCE[0] && minor >= NATS_SINCE[1])) return;
  throw new StartError(
    `split-log needs nats-server ${NATS_SINCE.join(".")} or newer, and ${info?.version ?? "an older one"} runs. Upgrade all nats-servers first`,
  );
}

/** The user of NATS may have been made for the former number of partitions. */
async function refuseForbidden(manager: JetStreamManager, subjects: Subjects, partitions: number): Promise<void> {
  const stream = subjects.logStream(partitions - 1);
  try {
    await manager.streams.getMessage(stream, { seq: 1 }); // An operator may ask for the state of every stream.
  } catch (cause) {
    if (cause instanceof JetStreamApiError) return; // JetStream answered, so the user has the permission, even if the stream or the message does not exist.
    if (!isForbidden(cause)) throw cause;
    throw new SettingError(
      `this user of NATS may not use ${stream}. Print the users with coroom nats-users --log-partitions ${partitions}, and reload nats-server's configuration. For a local system, run coroom start --roles engines --log-partitions ${partitions} meanwhile`,
      { cause },
    );
  }
}
