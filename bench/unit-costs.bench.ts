/**
 * The CPU that each role uses for one edit, for its delivery to one member, and for one cursor: the figures with which
 * `coroom capacity` computes. Each role has a process of its own.
 *
 * Two loads with the same edits in rooms of 4 and of 20 give two equations for each role, because only the deliveries
 * differ. The same holds for cursors. The usage of an idle system is subtracted first.
 */

import { positiveInteger } from "../shared/settings/settings.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import type { RoleCosts } from "../cli/capacity/figures.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import type { PeersLoad, PeersMotion } from "./load/peers-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./peers.bench.ts";
import { cpuBetween, cpuByRole, type CpuByRole } from "./server-usage.ts";
import { startCoroom } from "./systems/coroom.ts";
import type { WholeSystem } from "./systems/whole.ts";

type Shape = { readonly rooms: number; readonly members: number; readonly editsPerSecond: number; readonly cursorsPerSecond: number };
/** What a load did in a second: events that members sent, and their receipts by other members. */
type Rates = { readonly sent: number; readonly received: number };
/** CPU seconds by role, and the megabytes that all members receive as a further row. */
type Driven = Rates & { readonly perSecond: CpuByRole };

const SMALL_ROOM = 4;
const MEDIUM_ROOM = 20;
const LARGE_ROOM = 400;
const MEMBERS = LARGE_ROOM;
/** High enough that processes are as busy as in the plans: events then share system calls, messages and appends. */
const EDITS_PER_SECOND = 6;
const CURSORS_PER_SECOND = 20;
const CURSORS_PER_SECOND_IN_LARGE_ROOM = 2;
const WARM_MS = 3_000;
const NETWORK = "network";

type UnitCostOptions = {
  readonly gateways: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
};

export const unitCosts = defineExperiment({
  name: "unit-costs",
  summary: "CPU of each role for one edit, one delivery and one cursor, for `coroom capacity`; three minutes",
  settings: {
    gateways: {
      parse: positiveInteger,
      fallback: 1,
      meaning: "gateways over which the members of each room are spread; the difference between 2 and 1 is the cost of one more gateway",
    },
    rounds: { parse: positiveInteger, fallback: 2, meaning: "rounds; the figures are computed from their means" },
    seconds: { parse: positiveInteger, fallback: 10, meaning: "seconds that each load is measured" },
    warmUpSeconds: { parse: positiveInteger, fallback: 20, meaning: "seconds that the system is driven first" },
  },
  run: async (options, print) => {
    for (const [role, costs] of Object.entries(await measureUnitCosts(options, print)))
      print(
        `${role.padEnd(18)} ${JSON.stringify(costs, (_, value) => (typeof value === "number" ? Number(value.toPrecision(3)) : value))}`,
      );
  },
});

async function measureUnitCosts(
  { gateways, rounds, seconds, warmUpSeconds }: UnitCostOptions,
  print: Print,
): Promise<Readonly<Record<string, RoleCosts>>> {
  const coroom = await startCoroom({ gateways, leaderboards: 1 });
  const system: WholeSystem = { ...coroom, dialect: "coroom" };
  const load = new Worker<PeersLoad>("peers-load");
  let turn = 0;
  const drive = async (shape: Shape, ms = seconds * 1_000): Promise<Driven> => {
    const scenario = { ...shape, name: "unit-costs", title: "", writers: shape.members, load: { kind: "steady", ...shape } } as const;
    const seats = (await seatsOf(system, scenario, ++turn)).map((ofRoom) =>
      ofRoom.map((seat, member) => ({ ...seat, gateway: coroom.gateways[member % gateways]! })),
    );
    await load.call("open", { name: system.dialect, seats });
    const motion: PeersMotion = { ...shape, writers: shape.members, ms, seed: turn };
    await load.call("drive", { ...motion, ms: WARM_MS });
    const before = cpuByRole(system.processes);
    const { edits, cursors, editsSent, bytesReceived } = await load.call("drive", motion);
    const used = { ...cpuBetween(before, cpuByRole(system.processes)), [NETWORK]: bytesReceived / 1e6 };
    const perSecond = Object.fromEntries(Object.entries(used).map(([role, amount]) => [role, (amount * 1_000) / ms]));
    await load.call("close", undefined as never);
    const isEditing = shape.editsPerSecond > 0;
    return {
      perSecond,
      sent: isEditing ? (editsSent * 1_000) / ms : shape.rooms * shape.members * shape.cursorsPerSecond,
      received: (Latencies.fromPairs(isEditing ? edits : cursors).total * 1_000) / ms,
    };
  };
  try {
    await drive(roomsOf(SMALL_ROOM, EDITS_PER_SECOND, CURSORS_PER_SECOND), warmUpSeconds * 1_000);
    const all: Record<keyof typeof SHAPES, Driven[]> = { idle: [], edits4: [], edits20: [], cursors4: [], cursors20: [], cursorsInOne: [] };
    for (let round = 1; round <= rounds; round++) {
      for (const name of Object.keys(SHAPES) as (keyof typeof SHAPES)[]) {
        const driven = await drive(SHAPES[name]);
        all[name].push(driven);
        print(`  ${round} ${name.padEnd(10)} sent ${driven.sent.toFixed(0)}/s, received ${driven.received.toFixed(0)}/s`);
      }
    }
    const means = Object.fromEntries(Object.entries(all).map(([name, ofRounds]) => [name, meanOf(ofRounds)])) as Record<
      keyof typeof SHAPES,
      Driven
    >;
    return costsByRole(means);
  } finally {
    await load.end();
    await system.stop();
  }
}

const SHAPES = {
  idle: roomsOf(SMALL_ROOM, 0, 0),
  edits4: roomsOf(SMALL_ROOM, EDITS_PER_SECOND, 0),
  edits20: roomsOf(MEDIUM_ROOM, EDITS_PER_SECOND, 0),
  cursors4: roomsOf(SMALL_ROOM, 0, CURSORS_PER_SECOND),
  cursors20: roomsOf(MEDIUM_ROOM, 0, CURSORS_PER_SECOND),
  cursorsInOne: roomsOf(LARGE_ROOM, 0, CURSORS_PER_SECOND_IN_LARGE_ROOM),
} as const satisfies Record<string, Shape>;

function roomsOf(members: number, editsPerSecond: number, cursorsPerSecond: number): Shape {
  return { rooms: MEMBERS / members, members, editsPerSecond, cursorsPerSecond };
}

function costsByRole(driven: Readonly<Record<keyof typeof SHAPES, Driven>>): Readonly<Record<string, RoleCosts>> {
  const { idle, edits4, edits20, cursors4, cursors20, cursorsInOne } = driven;
  return Object.fromEntries(
    Object.keys(idle.perSecond).map((role) => {
      const micros = ({ perSecond }: Driven): number => 1e6 * Math.max(0, perSecond[role]! - idle.perSecond[role]!);
      const edit = solve({ ...edits4, micros: micros(edits4) }, { ...edits20, micros: micros(edits20) });
      const cursor = solve({ ...cursors4, micros: micros(cursors4) }, { ...cursors20, micros: micros(cursors20) });
      return [
        role,
        {
          idleCores: idle.perSecond[role]!,
          editMicros: edit.each,
          editDeliveryMicros: edit.delivery,
          cursorMicros: cursor.each,
          cursorDeliveryMicros: cursor.delivery,
          largeRoomMemberMicros: Math.max(0, micros(cursorsInOne) - cursor.each * cursorsInOne.sent) / MEMBERS,
        },
      ];
    }),
  );
}

type Equation = Rates & { readonly micros: number };

/**
 * Solves `each * sent + delivery * received = micros` for two loads. Where noise makes one of both negative, that one is 0 and
 * the other explains everything.
 */
export function solve(a: Equation, b: Equation): { readonly each: number; readonly delivery: number } {
  const determinant = a.sent * b.received - b.sent * a.received;
  const each = (a.micros * b.received - b.micros * a.received) / determinant;
  const delivery = (a.sent * b.micros - b.sent * a.micros) / determinant;
  if (delivery < 0) return { each: (a.micros + b.micros) / (a.sent + b.sent), delivery: 0 };
  if (each < 0) return { each: 0, delivery: (a.micros + b.micros) / (a.received + b.received) };
  return { each, delivery };
}

function meanOf(driven: readonly Driven[]): Driven {
  const mean = (value: (one: Driven) => number): number => driven.reduce((sum, one) => sum + value(one), 0) / driven.length;
  return {
    sent: mean(({ sent }) => sent),
    received: mean(({ received }) => received),
    perSecond: Object.fromEntries(Object.keys(driven[0]!.perSecond).map((role) => [role, mean(({ perSecond }) => perSecond[role]!)])),
  };
}
