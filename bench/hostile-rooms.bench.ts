/**
 * Ordinary rooms alone, and beside rooms whose edits are hostile to Yjs (`hostile-edits.ts`), while a backend writes to
 * further ordinary rooms and reads them over HTTP. By default the hostile rooms belong to another tenant. Limits and intervals have their defaults, except the rate of presence: a late load
 * process catches up. The attackers read their rooms as often as allowed, because a read makes the document service merge
 * at once: without reads it merges after 15 to 30 s. Between legs the hostile rooms are deleted, and the next leg waits
 * until nothing of them is merged.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { list, oneOf, positiveInteger } from "../shared/settings/settings.ts";
import { BackendRequests, type RequestFigures } from "./backend-requests.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import { HOSTILE_KINDS, type HostileKind } from "./hostile-edits.ts";
import type { HostileLoad, HostileSeat } from "./load/hostile-load.ts";
import { Worker } from "./load/worker.ts";
import {
  type BothCorooms,
  cpuCell,
  cpuFigures,
  ORDINARY_MEMBERS,
  ordinaryFigures,
  OrdinaryRooms,
  placesOf,
  ratioCell,
  startBoth,
  stopBoth,
  withRatios,
} from "./ordinary-rooms.ts";
import { type Figures, medianFigures } from "./report.ts";
import { cpuBetween, cpuByRole } from "./server-usage.ts";
import type { Coroom } from "./systems/coroom.ts";

type HostileRoomsOptions = {
  readonly rooms: number;
  readonly hostileRooms: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly kinds: readonly HostileKind[];
  readonly tenant: HostileTenant;
};
const HOSTILE_TENANTS = ["other", "same"] as const;
type HostileTenant = (typeof HOSTILE_TENANTS)[number];
/** `figures`: by leg, medians of the rounds. `failures`: HTTP requests that were not answered with 200, by leg. */
type HostileRoomsOutcome = { readonly figures: Readonly<Record<string, Figures>>; readonly failures: readonly string[] };

const ALONE = "alone";
const LATENCIES = ["edits p50, ms", "edits p99, ms", "writes p50, ms", "writes p99, ms", "reads p50, ms", "reads p99, ms"] as const;
/** The default limits of a connection, and of a user. */
const [EDITS_PER_SECOND, READS_PER_SECOND] = [10, 2];
const HOSTILE = "hostile-";
/** Tenant of the hostile rooms. Ordinary rooms belong to the default tenant. */
const TENANTS = { other: "attackers", same: "default" } as const satisfies Record<HostileTenant, string>;
const WITH_STATUS = " with status ";
/** A document service that merges nothing takes less than this part of a core. A merge takes a whole one if it is free. */
const CALM_CORES = 0.1;
const CALM_WINDOW_MS = 500;
const CALM_MS_MAX = 180_000;
const DELETE_MS_MAX = 60_000;

export async function measureHostileRooms(systems: BothCorooms, options: HostileRoomsOptions, print: Print): Promise<HostileRoomsOutcome> {
  const ordinary = new OrdinaryRooms();
  const attackers = new Worker<HostileLoad>("hostile-load");
  const ms = options.seconds * 1_000;
  const rounds: Record<string, Figures>[] = [];
  const failures: string[] = [];
  try {
    const backend = await BackendRequests.start(systems.same, "beside-hostile-http");
    await ordinary.open(systems.same, options.rooms, "beside-hostile");
    const parts = { system: systems.same, ordinary, backend, attackers };
    const measure = async (name: string, kind?: HostileKind): Promise<Figures> => {
      const figures = await leg(parts, name, kind, ms);
      const failed = statusesOf(figures).filter(([status]) => !status.endsWith(" 200"));
      if (failed.length > 0) failures.push(`${name}: ${failed.map(([status, count]) => `${count} ${status}`).join(", ")}`);
      return figures;
    };
    await Promise.all([ordinary.move(ms), backend.run(ms)]); // Warm-up: a new process runs slowly.
    for (let round = 0; round < options.rounds; round++) {
      await untilCalm(systems);
      const alone = await measure(ALONE);
      const legs: Record<string, Figures> = { [ALONE]: alone };
      print(lineOf(ALONE, alone));
      for (const kind of options.kinds) {
        for (const place of placesOf(round)) {
          await untilCalm(systems);
          const seats = await hostileSeats(systems[place], options, `${HOSTILE}${kind}-${round}`);
          await attackers.call("open", seats);
          const name = `${kind} ${place}`;
          legs[name] = withRatios(await measure(name, kind), alone, LATENCIES);
          print(lineOf(name, legs[name]));
          await attackers.call("close", undefined as never);
          for (const { room } of seats) await deleteRoom(systems[place], room, TENANTS[options.tenant]);
        }
      }
      rounds.push(legs);
    }
    await backend.judge();
    return { figures: medianFigures(rounds), failures };
  } finally {
    await Promise.all([ordinary.end(), attackers.end()]);
  }
}

type Parts = {
  readonly system: Coroom;
  readonly ordinary: OrdinaryRooms;
  readonly backend: BackendRequests;
  readonly attackers: Worker<HostileLoad>;
};

/** `kind` undefined: the attackers do nothing. */
async function leg(
  { system, ordinary, backend, attackers }: Parts,
  name: string,
  kind: HostileKind | undefined,
  ms: number,
): Promise<Figures> {
  const attack = { ms, editsPerSecond: EDITS_PER_SECOND, readsPerSecond: READS_PER_SECOND };
  const quarantinedBefore = quarantinesOf(system);
  const before = cpuByRole(system.processes);
  const [edits, { writes, reads }, attacked] = await Promise.all([
    ordinary.move(ms).catch((cause: unknown) => {
      throw new Error(`ordinary rooms lost an edit or a member in the leg "${name}": ${String(cause)}`, { cause });
    }),
    backend.run(ms),
    kind === undefined ? undefined : attackers.call("attack", { ...attack, kind }),
  ]);
  const cpu = cpuBetween(before, cpuByRole(system.processes));
  const quarantined = quarantinesOf(system);
  return {
    ...ordinaryFigures(edits),
    ...requestFigures("writes", writes),
    ...requestFigures("reads", reads),
    "hostile edits stored/s": ((attacked?.stored ?? 0) * 1000) / ms,
    "hostile rooms quarantined": quarantined.hostile - quarantinedBefore.hostile,
    "ordinary rooms quarantined": quarantined.ordinary - quarantinedBefore.ordinary,
    ...cpuFigures(cpu, edits.cpuSeconds + (attacked?.cpuSeconds ?? 0), ms),
  };
}

/** `requests`: "writes" or "reads". */
function requestFigures(requests: string, { latencies, statuses }: RequestFigures): Figures {
  return {
    [`${requests} p50, ms`]: latencies.percentile(50),
    [`${requests} p99, ms`]: latencies.percentile(99),
    ...Object.fromEntries(Object.entries(statuses).map(([status, count]) => [`${requests}${WITH_STATUS}${status}`, count])),
  };
}

/** Such as `["writes with status 200", 100]`. */
function statusesOf(figures: Figures): readonly [requests: string, count: number][] {
  return Object.entries(figures).filter(([figure]) => figure.includes(WITH_STATUS));
}

/** How often the document service has quarantined a room, as it logs. */
function quarantinesOf(system: Coroom): { readonly hostile: number; readonly ordinary: number } {
  const rooms = [...system.documentServiceLog().matchAll(/"room":"([^"]+)"[^\n]*a room is quarantined/g)].map(([, room]) => room!);
  const hostile = rooms.filter((room) => room.includes(HOSTILE)).length;
  return { hostile, ordinary: rooms.length - hostile };
}

async function hostileSeats(
  { gateways, token }: Coroom,
  { hostileRooms, tenant }: HostileRoomsOptions,
  name: string,
): Promise<HostileSeat[]> {
  return Promise.all(
    Array.from({ length: hostileRooms }, async (_, index) => ({
      gateway: gateways[index % gateways.length]!,
      room: `${name}-${index}`,
      token: await token(`attacker-${name}-${index}`, TENANTS[tenant]),
    })),
  );
}

/** Also ends the room's merges, at the latest when the running merge ends. */
async function deleteRoom({ gateways: [gateway], operatorSecret }: Coroom, room: string, tenant: string): Promise<void> {
  let status = 0;
  const isDeleted = async (): Promise<boolean> => {
    const headers = { authorization: `Bearer ${operatorSecret}` };
    ({ status } = await fetch(`${gateway!.replace("ws:", "http:")}/v1/rooms/${room}?tenant=${tenant}`, { method: "DELETE", headers }));
    return status < 300;
  };
  for (const deadline = performance.now() + DELETE_MS_MAX; !(await isDeleted()); await sleep(CALM_WINDOW_MS))
    if (performance.now() > deadline) throw new Error(`${room} was not deleted after the leg: status ${status}`);
}

/** Resolves once no document service merges, so that no leg contains work of the one before. */
async function untilCalm(systems: BothCorooms): Promise<void> {
  const services = Object.values(systems).flatMap(({ processes }) => processes.filter(({ role }) => role === "document-service"));
  const cpuSeconds = (): number => cpuByRole(services)["document-service"]!;
  for (const deadline = performance.now() + CALM_MS_MAX; performance.now() < deadline;) {
    const before = cpuSeconds();
    await sleep(CALM_WINDOW_MS);
    if (cpuSeconds() - before < (CALM_CORES * CALM_WINDOW_MS) / 1000) return;
  }
  throw new Error(`the document services still merge ${CALM_MS_MAX} ms after the hostile rooms were deleted`);
}

const COLUMNS = [
  "leg",
  ...LATENCIES,
  "HTTP requests by status",
  "hostile edits stored/s",
  "quarantined: hostile, ordinary",
  "CPU of servers by role, loads",
];
const HEAD = `| ${COLUMNS.join(" | ")} |\n|${"---|".repeat(COLUMNS.length)}`;

/** Each latency with its ratio to the leg alone, and the CPU. */
function lineOf(name: string, figures: Figures): string {
  const cells = [
    name,
    ...LATENCIES.map((figure) => ratioCell(figures, figure)),
    statusesOf(figures)
      .map(([status, count]) => `${count} ${status}`)
      .join(", "),
    figures["hostile edits stored/s"]!.toFixed(0),
    `${figures["hostile rooms quarantined"]}, ${figures["ordinary rooms quarantined"]}`,
    cpuCell(figures),
  ];
  return `| ${cells.join(" | ")} |`;
}

export const hostileRooms = defineExperiment({
  name: "hostile-rooms",
  summary: "ordinary rooms and HTTP requests alone and beside rooms with edits that are hostile to Yjs, by kind; ten minutes",
  settings: {
    rooms: { parse: positiveInteger, fallback: 50, meaning: `ordinary rooms of ${ORDINARY_MEMBERS}` },
    hostileRooms: { parse: positiveInteger, fallback: 4, meaning: "hostile rooms, each with one attacker" },
    seconds: { parse: positiveInteger, fallback: 10, meaning: "seconds of each leg" },
    rounds: { parse: positiveInteger, fallback: 3, meaning: "rounds, each with all legs" },
    kinds: {
      parse: (raw) => list(raw).map(oneOf(...HOSTILE_KINDS)),
      fallback: HOSTILE_KINDS,
      meaning: `what the attackers send: any of ${HOSTILE_KINDS.join(", ")}`,
    },
    tenant: {
      parse: oneOf(...HOSTILE_TENANTS),
      fallback: "other",
      meaning: "tenant of the hostile rooms: other than the ordinary rooms' or the same",
    },
  },
  run: async (options, print) => {
    print(HEAD);
    const systems = await startBoth({ hasDefaultLimits: true });
    const { figures, failures } = await measureHostileRooms(systems, options, print).finally(() => stopBoth(systems));
    print(`\nmedians of ${options.rounds} rounds\n\n${HEAD}`);
    for (const [name, ofLeg] of Object.entries(figures)) print(lineOf(name, ofLeg));
    if (failures.length > 0) throw new Error(`HTTP requests of ordinary rooms failed: ${failures.join("; ")}`);
    print(
      "every ordinary edit reached all members of its room, and every HTTP request was answered with 200 and every write is in its document",
    );
  },
});
