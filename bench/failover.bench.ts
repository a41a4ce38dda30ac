/**
 * Waits of writers and readers when their room server is killed, paused, cut off, stopped or drained, or when the log
 * loses its leader. For every affected room it measures the longest wait for an ack and for an edit to be visible, and
 * the time from the disturbance to the next ack. Every room has an edit in flight at the disturbance.
 *
 * Edits are sent at a steady rate and a wait runs from the send, so a wait of 0 means that the fault had no effect.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { ServerCommandReply } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { requestReply } from "../shared/io/nats-json.ts";
import type { NatsConnection } from "../shared/io/nats.ts";
import { list, oneOf, positiveInteger, readSettings } from "../shared/settings/settings.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { opsStepDownSettings } from "../cli/command-settings.ts";
import { stepDown } from "../cli/ops-step-down.ts";
import type { Engine } from "../engines/engine.ts";
import type { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { leaderOfLog } from "../test/system/log-leader.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { TypingCluster, type TypingOptions, type OwningServer } from "./typing-cluster.ts";

/**
 * Disturbances of a room server. `left alone`: no disturbance, to measure the machine's own noise. `stopped`: by SIGTERM, as in a rolling restart.
 * `emptied`: drained while it keeps running.
 */
const OF_THE_OWNER = ["left alone", "killed", "paused", "cut off", "stopped", "emptied"] as const;
/** Faults that need three nats-servers. `log leader restarted`: the leader steps down, stops and starts again. */
const OF_THE_LOG = ["log leader killed", "log leader paused", "log leader restarted"] as const;

const DISTURBANCES = [...OF_THE_OWNER, ...OF_THE_LOG] as const;
type Disturbance = (typeof DISTURBANCES)[number];

type Victims = OwningServer & { readonly cluster: SystemCluster; readonly nats: NatsConnection; readonly logLeader: Engine };

/** Returns the function that undoes the disturbance. */
async function strike(
  disturbance: Disturbance,
  { cluster, nats, server, process: owner, connection, logLeader }: Victims,
): Promise<() => Promise<void>> {
  switch (disturbance) {
    case "left alone":
      return async () => {};
    case "killed":
      await owner.kill();
      return () => owner.startAgain();
    case "paused":
      owner.signal("SIGSTOP");
      return async () => owner.signal("SIGCONT");
    case "cut off":
      connection.cut();
      return async () => connection.repair();
    case "emptied":
      await requestReply(nats, subjectsOf(cluster.environment).order(server), { kind: "drain" }, ServerCommandReply, 1_000);
      return () => owner.restart();
    case "stopped":
      owner.signal("SIGTERM");
      return async () => {
        await owner.exited;
        await owner.startAgain();
      };
    case "log leader killed":
      logLeader.kill("SIGKILL");
      await logLeader.exited;
      return () => logLeader.restart();
    case "log leader paused":
      logLeader.kill("SIGSTOP");
      return async () => logLeader.kill("SIGCONT");
    case "log leader restarted": {
      const name = `nats-${cluster.natsServers.indexOf(logLeader) + 1}`;
      await stepDown(
        readSettings(opsStepDownSettings, { flags: { natsUrl: cluster.natsUrl, environment: cluster.environment, server: name }, env: {} }),
        () => {},
      );
      await logLeader.restart();
      return async () => {};
    }
  }
}

function isOfTheLog(disturbance: Disturbance): boolean {
  return OF_THE_LOG.some((one) => one === disturbance);
}

type FailoverOptions = TypingOptions & { readonly seconds: number };

/** Longest waits of one room, in milliseconds. */
export type LongestWaits = { readonly acked: number; readonly seen: number };

/** `shown`: until the edit is visible, tentative or committed. `back`: from the disturbance to the next ack. */
type DisturbanceWaits = LongestWaits & { readonly shown: number; readonly back: number };

/** Edits sent this long before a disturbance may still be in flight. */
export const BEFORE_MS = 100;
const SETTLED_MS_MAX = 60_000;
const REPLICAS_MS_MAX = 180_000;
/**
 * Replicas are planned before they have read the room. After this delay the work that the last disturbance caused is
 * done.
 */
const CALM_MS = 3_000;
/** A server keeps the rooms that it takes over, so the next disturbance hits a server that owns all rooms. */
const UNBALANCED = { IMBALANCE_PERCENT: "1000000", TENANT_EDITS_PER_SECOND_MAX: "1000000000" };

class FailoverBench {
  readonly #typing: TypingCluster;
  readonly #seconds: number;

  private constructor(typing: TypingCluster, seconds: number) {
    this.#typing = typing;
    this.#seconds = seconds;
  }

  static async start(options: FailoverOptions): Promise<FailoverBench> {
    return new FailoverBench(await TypingCluster.start({ ...options, settings: { ...UNBALANCED, ...options.settings } }), options.seconds);
  }

  /** Disturbs the server with the most rooms, or the log, and undoes it once all members have all edits. */
  async disturb(disturbance: Disturbance): Promise<{ rooms: number; waits: DisturbanceWaits[] }> {
    const typing = this.#typing;
    await eventually("every room has a replica", () => typing.hasReplicas(), REPLICAS_MS_MAX); // As in operation between two faults.
    await sleep(CALM_MS);
    const [server, owned] = [...(await typing.roomsByOwner())].sort(([, a], [, b]) => b.length - a.length)[0]!;
    const rooms = isOfTheLog(disturbance) ? typing.rooms : owned;
    const victims = {
      ...typing.running(server),
      cluster: typing.cluster,
      nats: typing.nats,
      logLeader: typing.cluster.natsServers[await leaderOfLog(typing.cluster)]!,
    };

    const struckAt = performance.now();
    const measured = rooms.map((room) => (room.measured = new AroundDisturbance(struckAt)));
    const striking = strike(disturbance, victims);
    rooms.forEach(write);
    const undo = await striking;
    await sleep(this.#seconds * 1_000);
    for (const one of measured) one.end(performance.now());
    const written = rooms.map(({ writers }) => writers.reduce((sum, { sent }) => sum + sent, 0));
    await eventually(
      "every member has all edits sent so far",
      () => rooms.every((room, index) => room.everywhere() >= written[index]!),
      SETTLED_MS_MAX,
    );
    await undo();
    return { rooms: rooms.length, waits: measured.map((one) => one.waits()) };
  }

  /** Throws when an edit is missing, repeated or out of order. */
  stop(): Promise<void> {
    return this.#typing.stop();
  }

  abandon(): Promise<void> {
    return this.#typing.abandon();
  }
}

/** Waits of one room around a disturbance, and the time of the first ack of an edit sent after it. */
class AroundDisturbance extends Measured {
  readonly #struckAt: number;
  #backMs: number | undefined;

  constructor(struckAt: number) {
    super();
    this.#struckAt = struckAt;
    this.begin(struckAt - BEFORE_MS);
  }

  override receiveAcked(sentAt: number, now: number): void {
    super.receiveAcked(sentAt, now);
    if (sentAt >= this.#struckAt) this.#backMs ??= now - this.#struckAt;
  }

  waits(): DisturbanceWaits {
    return {
      acked: this.acked.percentile(100),
      seen: this.seen.percentile(100),
      shown: this.shown.percentile(100),
      back: this.#backMs ?? Number.NaN,
    };
  }
}

function write(room: RoomLoad): void {
  for (const writer of room.writers) room.send(writer);
}

/** Distribution over all rooms and all rounds of one disturbance. */
export function distribution(waits: readonly number[]): { rooms: number; p50: number; p99: number; max: number } {
  const latencies = new Latencies();
  for (const wait of waits) latencies.record(wait);
  return { rooms: waits.length, p50: latencies.percentile(50), p99: latencies.percentile(99), max: latencies.percentile(100) };
}

const WITH_ONE_NATS: readonly Disturbance[] = ["left alone", "killed", "paused", "cut off", "stopped", "emptied"];
/** Rounds between two summaries. A run that is interrupted has printed most of its results. */
const SUMMARY_EVERY = 10;

export const failover = defineExperiment({
  name: "failover",
  summary: "waits of writers and readers when their room server or the log's leader fails; three minutes",
  settings: {
    rooms: { parse: positiveInteger, fallback: 60, meaning: "rooms, each with one writer and one reader" },
    roomServers: {
      parse: positiveInteger,
      fallback: 3,
      meaning: "room servers; of two, each takes over all rooms of the other",
    },
    natsServers: { parse: positiveInteger, fallback: 1, meaning: "nats-servers, 1 or 3; the log has as many copies" },
    editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "edits per second of each room" },
    rounds: { parse: positiveInteger, fallback: 5, meaning: "rounds of each disturbance" },
    seconds: { parse: positiveInteger, fallback: 3, meaning: "seconds that each disturbance lasts" },
    secondsMax: { parse: positiveInteger, fallback: 3_600, meaning: "seconds after which no further round of a disturbance begins" },
    disturbances: {
      parse: (raw: string): readonly Disturbance[] => list(raw).map(oneOf(...DISTURBANCES)),
      fallback: WITH_ONE_NATS,
      meaning: `any of ${DISTURBANCES.join(", ")}`,
    },
  },
  run: async (options, print) => {
    const bench = await FailoverBench.start(options);
    try {
      await bench.disturb(options.disturbances[0]!); // The first round is not counted: it gathers the rooms on one server, and new processes run slowly.
      for (const disturbance of options.disturbances) await repeat(bench, disturbance, options, print);
      await bench.stop();
    } catch (error) {
      await bench.abandon();
      throw error;
    }
    print("no edit missing, none twice, the same order everywhere");
  },
});

async function repeat(
  bench: FailoverBench,
  disturbance: Disturbance,
  { rounds: roundsMax, secondsMax }: { rounds: number; secondsMax: number },
  print: Print,
): Promise<void> {
  const all: DisturbanceWaits[] = [];
  const until = performance.now() + secondsMax * 1_000;
  let rounds = 0;
  const printAll = (name: string, wait: keyof DisturbanceWaits): void =>
    print(
      lineOf(
        name,
        all.map((waits) => waits[wait]),
      ),
    );
  while (rounds < roundsMax && performance.now() < until) {
    const begun = performance.now();
    const { waits } = await bench.disturb(disturbance);
    all.push(...waits);
    rounds += 1;
    const line = lineOf(
      `${disturbance} ${rounds}`,
      waits.map(({ back }) => back),
    );
    print(`${line} of this round, which took ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
    if (rounds % SUMMARY_EVERY === 0) printAll(`${disturbance}, ${rounds} times so far`, "back");
  }
  print(`${disturbance}, ${rounds} times`);
  printAll("from the disturbance to the next ack", "back");
  printAll("longest wait of the writer for an ack", "acked");
  printAll("longest wait of the reader, committed", "seen");
  printAll("longest wait of the reader, also tentative", "shown");
}

function lineOf(name: string, waits: readonly number[]): string {
  const { rooms, p50, p99, max } = distribution(waits);
  return `  ${name.padEnd(46)} p50 ${p50.toFixed(0).padStart(6)} ms   p99 ${p99.toFixed(0).padStart(6)} ms   max ${max.toFixed(0).padStart(6)} ms   (${rooms} rooms)`;
}
