/**
 * What goes wrong in a run. All of it is drawn from the seed before the run begins, so that a failing run can be tried
 * again with fewer faults (minimize.ts). Every fault ends by itself.
 */

import type { Prng } from "../../shared/prng.ts";
import type { Cluster } from "./cluster.ts";

export type Fault = {
  /** Milliseconds since the run began. */
  readonly atMs: number;
  readonly kind: FaultKind;
  readonly forMs: number;
  /** In [0, 1): whom it meets, and how. */
  readonly whom: number;
  readonly how: number;
};

export type FaultKind = keyof typeof FAULTS;

type Strike = (cluster: Cluster, fault: Fault) => void;

export const FAULTS = {
  "gateway killed": (cluster, { whom, forMs }) => cluster.replaceGateway(whom, "killed", forMs),
  "gateway's machine lost": (cluster, { whom, forMs }) => cluster.replaceGateway(whom, "lost", forMs),
  "gateway stopped": (cluster, { whom, forMs }) => cluster.replaceGateway(whom, "stopped", forMs),
  "gateway paused": (cluster, { whom, how, forMs }) => cluster.pause(cluster.gateway(whom), how, forMs),
  "gateway cut off": (cluster, { whom, forMs }) => cluster.cutOff(cluster.gateway(whom), forMs),
  "gateway's line stalled": (cluster, fault) => cluster.stall(cluster.gateway(fault.whom), fault),
  "room server killed": (cluster, { whom, forMs }) => cluster.replaceRoomServer(whom, "killed", forMs),
  "room server's machine lost": (cluster, { whom, forMs }) => cluster.replaceRoomServer(whom, "lost", forMs),
  "room server stopped": (cluster, { whom, forMs }) => cluster.replaceRoomServer(whom, "stopped", forMs),
  "room server paused": (cluster, { whom, how, forMs }) => cluster.pause(cluster.roomServer(whom), how, forMs),
  "room server cut off": (cluster, { whom, forMs }) => cluster.cutOff(cluster.roomServer(whom), forMs),
  "room server's line stalled": (cluster, fault) => cluster.stall(cluster.roomServer(fault.whom), fault),
  "room claimed at random": (cluster, { whom, how }) => cluster.claimAtRandom(whom, how),
  "room moved": (cluster, { whom, how }) => cluster.moveAtRandom(whom, how),
  "placement killed": (cluster, { whom, forMs }) => cluster.replacePlacement(whom, forMs),
  "placement paused": (cluster, { whom, how, forMs }) => cluster.pause(cluster.placement(whom), how, forMs),
  "date set back or ahead": (cluster, { whom, how }) => cluster.setDate(whom, how),
  "NATS restarted": (cluster, { forMs }) => cluster.restartNats(forMs),
  "log silent": (cluster, { forMs }) => cluster.setMood("silent", forMs),
  "log refusing": (cluster, { forMs }) => cluster.setMood("refusing", forMs),
  "log's answers lost": (cluster, { forMs }) => cluster.setMood("mute", forMs),
  "log's leader changing": (cluster, { forMs }) => cluster.setMood("changing-leader", forMs / 4),
  "log slow": (cluster, { how, forMs }) => cluster.slowLog(how, forMs),
  "log trimmed": (cluster, { whom, how }) => cluster.checkpointAndTrim(whom, how),
  "rooms bucket lagging": (cluster, { how, forMs }) => cluster.lagEntries(how, forMs),
  "rooms bucket away": (cluster, { forMs }) => cluster.takeEntriesAway(forMs),
  "snapshots away": (cluster, { forMs }) => cluster.takeSnapshotsAway(forMs),
  "tab's line broken": (cluster, { whom }) => cluster.tab(whom).connection?.break(),
  "tab's line silent": (cluster, { whom, forMs }) => cluster.silenceTab(whom, forMs),
  "tab offline": (cluster, { whom, forMs }) => cluster.takeTabOffline(whom, forMs),
  "tab asleep": (cluster, { whom, how, forMs }) => cluster.pause(cluster.tab(whom), how, forMs),
  "tab too slow": (cluster, { whom }) => cluster.tab(whom).connection?.becomeSlow(),
  "tab left for a while": (cluster, { whom, forMs }) => cluster.leaveRoom(whom, forMs),
  "tab closed, another opened": (cluster, { whom }) => cluster.replaceTab(whom),
} as const satisfies Record<string, Strike>;

const FAULTS_MIN = 6;
const FAULTS_MORE = 20;
/** In most runs the faults come in storms, so that they meet. */
const STORMS_MAX = 4;
const STORM_MS = 1_500;
const TRIMS_MAX = 12;
const MS_MIN = 50;
/** Most are short, a few are long enough for every deadline to pass. */
const MS_MAX = [600, 3_000, 9_000];

export function drawFaults(prng: Prng, untilMs: number): Fault[] {
  const kinds = Object.keys(FAULTS) as FaultKind[];
  const storms = Array.from({ length: prng.below(STORMS_MAX) }, () => prng.below(untilMs));
  const drawTime = (): number => (storms.length === 0 ? prng.below(untilMs) : Math.min(untilMs - 1, storms[prng.below(storms.length)]! + prng.below(STORM_MS)));
  const draw = (kind: FaultKind): Fault => ({ kind, atMs: drawTime(), forMs: MS_MIN + prng.below(MS_MAX[prng.below(MS_MAX.length)]!), whom: prng.unit(), how: prng.unit() });
  const faults = Array.from({ length: FAULTS_MIN + prng.below(FAULTS_MORE) }, () => draw(kinds[prng.below(kinds.length)]!));
  // Trimming is no fault but every day's work; what follows from it shows only where it is frequent.
  const trims = prng.chance(0.5) ? Array.from({ length: prng.below(TRIMS_MAX) }, () => draw("log trimmed")) : [];
  return [...faults, ...trims].sort((a, b) => a.atMs - b.atMs);
}

export function strike(cluster: Cluster, fault: Fault): void {
  FAULTS[fault.kind](cluster, fault);
}

export function describeFault({ kind, atMs, forMs, whom, how }: Fault): string {
  return `${(atMs / 1_000).toFixed(3)} s: ${kind} (${forMs} ms, ${whom.toFixed(3)}, ${how.toFixed(3)})`;
}
