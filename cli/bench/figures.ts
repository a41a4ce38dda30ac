/** The results of `coroom bench` as counts and percentiles, and the conclusions from them. */

import { CLOSE, CLOSE_MEANINGS, type CloseName } from "../../shared/wire/close-codes.ts";
import type { Problem, Refusal, SocketClose } from "../../client/index.ts";
import type { Latencies } from "./latencies.ts";
import type { BenchLoad } from "./plan.ts";

/** Milliseconds. Undefined: nothing was measured. `max` and percentiles are at most 1% too high. */
export type LatencySummary = { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number } | undefined;

/** `message`: the first one with this reason, as the SDK reports it. */
export type CountedReason = { readonly reason: string; readonly count: number; readonly message: string };

/** `edits`: numbers of the author's edits, such as "3" or "3 to 5". */
export type MissingReport = {
  readonly room: string;
  readonly person: string;
  readonly author: string;
  readonly edits: string;
  readonly count: number;
  readonly isConnected: boolean;
};

export type BenchFigures = {
  /** A signal stopped the run. */
  readonly isStopped: boolean;
  readonly url: string;
  readonly tenant: string;
  readonly load: BenchLoad;
  /** Seconds of load. Less than `load.seconds` if the run was stopped. */
  readonly loadSeconds: number;
  readonly connections: { readonly wanted: number; readonly opened: number; readonly joinMs: LatencySummary };
  /** `received` and `expected`: receipts by other people than the author. */
  readonly edits: {
    readonly sent: number;
    readonly acknowledged: number;
    readonly received: number;
    readonly expected: number;
    readonly repeated: number;
    readonly acknowledgedMs: LatencySummary;
    readonly receivedMs: LatencySummary;
    readonly missing: readonly MissingReport[];
  };
  readonly cursors: { readonly sent: number; readonly seen: number; readonly seenMs: LatencySummary };
  readonly refusals: readonly CountedReason[];
  readonly disconnects: readonly CountedReason[];
  readonly reconnects: { readonly count: number; readonly awayMs: LatencySummary };
  /** `cpuCores`: of this process during the load. `lateMs`: how much later than due edits and cursor moves were made. */
  readonly generator: { readonly cpuCores: number; readonly lateMs: LatencySummary; readonly isLimit: boolean };
  readonly rooms: { readonly deleted: number; readonly left: readonly string[]; readonly why: string };
};

/** Above one of these the generator's own delay is a part of what it measures. */
const CPU_CORES_MAX = 0.85;
const LATE_P99_MS_MAX = 25;

export function isGeneratorLimit(cpuCores: number, lateMs: LatencySummary): boolean {
  return cpuCores > CPU_CORES_MAX || (lateMs?.p99 ?? 0) > LATE_P99_MS_MAX;
}

export function summaryOf(latencies: Latencies): LatencySummary {
  const ms = (percent: number): number => Number(latencies.percentile(percent).toPrecision(3));
  return latencies.total === 0 ? undefined : { count: latencies.total, p50: ms(50), p99: ms(99), max: ms(100) };
}

/** Why the command ends with an error. Undefined: no edit was lost, and people joined. */
export function failureOf({ isStopped, connections, edits, loadSeconds, load, rooms }: BenchFigures): string | undefined {
  if (connections.opened === 0 && isStopped) return "stopped by a signal before anybody had joined";
  if (connections.opened === 0)
    return "nobody could join. The refusals in the output name the reasons; coroom doctor checks the system, and docs/operations/limits.md lists the limits";
  const unacknowledged = edits.sent - edits.acknowledged;
  const lacking = edits.expected - edits.received;
  if (unacknowledged > 0 || lacking > 0)
    return `${count(unacknowledged)} edits were not acknowledged, and ${count(lacking)} receipts are missing. The output names them; look for the rooms' events with coroom ops watch`;
  if (edits.repeated > 0)
    return `${count(edits.repeated)} receipts were repeated. This is a defect of Coroom: report it with the output of this command`;
  if (loadSeconds < load.seconds)
    return `stopped by a signal after ${loadSeconds.toFixed(0)} of ${load.seconds} s. The figures are those of this time`;
  return rooms.left.length > 0 ? "some rooms were not deleted. The output names them" : undefined;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** Counts refusals and closed connections by reason, with the first message of each reason. */
export class Reasons {
  readonly #counts = new Map<string, { count: number; readonly message: string }>();

  add({ reason, message }: { readonly reason: string; readonly message: string }): void {
    const known = this.#counts.get(reason);
    if (known === undefined) this.#counts.set(reason, { count: 1, message });
    else known.count += 1;
  }

  /** The most frequent first. */
  get all(): readonly CountedReason[] {
    return [...this.#counts].map(([reason, counted]) => ({ reason, ...counted })).toSorted((a, b) => b.count - a.count);
  }
}

/** `room-unavailable` and `room-refused` have a reason of the gateway. */
export function reasonOf(refused: Problem | Refusal): { readonly reason: string; readonly message: string } {
  const { kind, message } = refused;
  if (kind === "connection-refused") return { reason: nameOf(refused.code) ?? kind, message };
  return { reason: "reason" in refused ? refused.reason : kind, message };
}

export function reasonOfClose({ code, reason }: SocketClose): { readonly reason: string; readonly message: string } {
  const name = nameOf(code);
  return {
    reason: name ?? "broken",
    message: `${reason || (name === undefined ? "the connection broke or could not be opened" : CLOSE_MEANINGS[name])} (close code ${code})`,
  };
}

function nameOf(code: number): CloseName | undefined {
  return (Object.keys(CLOSE) as CloseName[]).find((name) => CLOSE[name].code === code);
}
