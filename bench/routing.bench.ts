/**
 * On how many gateways the members of a room are, and what that costs NATS, with the routing key and without. First with
 * HAProxy, `deploy/balancer/haproxy.cfg` and real gateways, and then for the full size, computed with the model of the
 * balancer. The run fails if an edit does not reach a member, or if HAProxy and the model disagree about any connection
 * with a key.
 */

import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { BALANCE_FACTOR, type Balancing } from "./balancer-model.ts";
import { defineExperiment, positiveIntegers, type Print } from "./experiment.ts";
import { classesOfRooms, type RoomSeats, routingFigures, seatRooms, sizesOf } from "./gateways-of-rooms.ts";
import type { NatsTraffic } from "./nats-traffic.ts";
import { type Figures, medianFigures } from "./report.ts";
import { measureRoutedRounds, OBSERVER, type RoutedLeg } from "./routing-measures.ts";

const BALANCINGS: readonly Balancing[] = ["by key", "by load"];
/** Rooms of each size on real gateways: 450 members. */
const REAL_ROOMS = [
  [60, 4],
  [10, 15],
  [1, 60],
].flatMap(([rooms, members]) => Array.from({ length: rooms! }, () => members!));
/** Of each member. */
const [EDITS_PER_SECOND, CURSORS_PER_SECOND] = [0.2, 2];
const TICKS_PER_SECOND = 20;

export const RECORDS = "records to gateways for an edit";
const ANNOUNCEMENTS = "announcements to gateways for an edit";
const PRESENCE = "presence messages/s to gateways";

type Count = keyof NatsTraffic[string];

/** What was counted. Messages of edits: those on other connections than presence, without what NATS carries for no edit. */
export function countedFigures({ seats, editsPerSecond, quiet, busy, cpu }: RoutedLeg): Figures {
  const total = ({ traffic }: RoutedLeg["busy"], name: Count, isCounted: (group: string) => boolean): number =>
    Object.entries(traffic).reduce((sum, [group, counts]) => sum + (group !== OBSERVER && isCounted(group) ? counts[name] : 0), 0);
  const eachEdit = (name: Count): number => {
    const isOfEdits = (group: string): boolean => !group.endsWith(" presence");
    return (total(busy, name, isOfEdits) - total(quiet, name, isOfEdits)) / editsPerSecond;
  };
  const toGateways = ({ traffic }: RoutedLeg["busy"]): number => traffic["gateway"]!.fromNats;
  const withoutRooms = toGateways(quiet) - toAllGateways(quiet, seats, "records") - toAllGateways(quiet, seats, "announcements");
  const announcements = toAllGateways(busy, seats, "announcements");
  return {
    ...gatewayFigures(seats),
    "edits/s": editsPerSecond,
    [RECORDS]: (toGateways(busy) - withoutRooms - announcements) / editsPerSecond,
    [ANNOUNCEMENTS]: announcements / editsPerSecond,
    "records for an edit": busy.sent.reduce((sum, { records }) => sum + records, 0) / editsPerSecond,
    "messages to NATS for an edit": eachEdit("toNats"),
    "messages from NATS for an edit": eachEdit("fromNats"),
    "bytes from NATS for an edit": eachEdit("bytesFromNats"),
    [PRESENCE]: busy.traffic["gateway presence"]!.fromNats,
    "presence KB/s to gateways": busy.traffic["gateway presence"]!.bytesFromNats / 1e3,
    "all messages/s to NATS": total(busy, "toNats", () => true),
    "all messages/s from NATS": total(busy, "fromNats", () => true),
    "all KB/s to NATS": total(busy, "bytesToNats", () => true) / 1e3,
    "all KB/s from NATS": total(busy, "bytesFromNats", () => true) / 1e3,
    "all messages/s from NATS, nobody acts": total(quiet, "fromNats", () => true),
    "all KB/s from NATS, nobody acts": total(quiet, "bytesFromNats", () => true) / 1e3,
    ...Object.fromEntries(Object.entries(cpu).map(([role, cores]) => [`cores: ${role}`, cores])),
  };
}

/** What the model predicts, under the same names. */
export function predictedFigures({ predicted, busy, editsPerSecond }: RoutedLeg): Figures {
  const { copies, messages } = routingFigures(predicted, 1);
  return {
    ...gatewayFigures(predicted),
    [RECORDS]: copies,
    [ANNOUNCEMENTS]: toAllGateways(busy, predicted, "announcements") / editsPerSecond,
    [PRESENCE]: messages * TICKS_PER_SECOND,
  };
}

function toAllGateways({ sent }: RoutedLeg["busy"], seats: RoomSeats, name: "records" | "announcements"): number {
  return sent.reduce((sum, ofRoom, room) => sum + ofRoom[name] * seats[room]!.size, 0);
}

function gatewayFigures(seats: RoomSeats): Figures {
  const { gatewaysMean, gatewaysP99 } = routingFigures(seats, 1);
  const classes = [{ name: "any size", gatewaysMean, gatewaysP99 }, ...classesOfRooms(seats)];
  return Object.fromEntries(
    classes.flatMap(({ name, gatewaysMean: mean, gatewaysP99: p99 }) => [
      [`gateways of rooms, ${name}, mean`, mean],
      [`gateways of rooms, ${name}, p99`, p99],
    ]),
  );
}

/** Members who are not where the model seats them. */
export function membersElsewhere(seats: RoomSeats, predicted: RoomSeats): number {
  const inRoom = (room: ReadonlyMap<number, number>, other: ReadonlyMap<number, number>): number =>
    [...room].reduce((sum, [gateway, members]) => sum + Math.max(0, members - (other.get(gateway) ?? 0)), 0);
  return seats.reduce((sum, room, index) => sum + inRoom(room, predicted[index]!), 0);
}

async function measureReal(gateways: number, seconds: number, roundCount: number, print: Print): Promise<void> {
  const motion = { editsPerSecond: EDITS_PER_SECOND, cursorsPerSecond: CURSORS_PER_SECOND, seconds };
  const rounds = await measureRoutedRounds({ gateways, sizes: REAL_ROOMS, ...motion, small: false }, roundCount);
  const figures = medianFigures(
    rounds.map((legs) =>
      Object.fromEntries(
        BALANCINGS.flatMap((balancing) => [
          [balancing, countedFigures(legs[balancing])],
          [`${balancing}, model`, predictedFigures(legs[balancing])],
        ]),
      ),
    ),
  );
  const columns = Object.keys(figures);
  print(`| | ${columns.join(" | ")} |\n|---|${columns.map(() => "---|").join("")}`);
  for (const name of Object.keys(figures[BALANCINGS[0]!]!))
    print(`| ${name} | ${columns.map((column) => cell(figures[column]![name])).join(" | ")} |`);
  const misled = rounds.reduce((sum, { "by key": { seats, predicted } }) => sum + membersElsewhere(seats, predicted), 0);
  if (misled > 0) throw new Error(`the model of the balancer is wrong for ${misled} connections`);
}

function cell(figure: number | undefined): string {
  if (figure === undefined) return "";
  return Number.isInteger(figure) ? String(figure) : figure >= 100 ? figure.toFixed(0) : figure.toPrecision(3);
}

export const routing = defineExperiment({
  name: "routing",
  summary:
    "gateways that the members of a room use, and NATS messages, with the routing key and without, on real gateways and computed; six minutes",
  settings: {
    realGateways: { parse: wholeNumber, fallback: 8, meaning: "gateways behind HAProxy; 0: only the computation" },
    seconds: { parse: positiveInteger, fallback: 20, meaning: "seconds of load that are counted in each leg" },
    rounds: { parse: positiveInteger, fallback: 3, meaning: "rounds with a leg by key and one by load; the table has their medians" },
    gateways: { parse: positiveIntegers, fallback: [8, 30] as readonly number[], meaning: "gateways of the computed full size" },
    rooms: { parse: positiveInteger, fallback: 100_000, meaning: "rooms of the computed full size, the largest 0.1% of 1,000" },
    roomServers: { parse: positiveInteger, fallback: 96, meaning: "room servers of the computed full size" },
  },
  run: async ({ realGateways, seconds, rounds, gateways, rooms, roomServers }, print) => {
    if (realGateways > 0) {
      const members = REAL_ROOMS.reduce((sum, size) => sum + size, 0);
      print(`\n${realGateways} gateways behind HAProxy, ${REAL_ROOMS.length} rooms with ${members} members, counted and by the model`);
      await measureReal(realGateways, seconds, rounds, print);
    }
    const sizes = sizesOf({ rooms, median: 3, p95: 30, largeRooms: Math.ceil(rooms / 1_000) });
    const connections = sizes.reduce((sum, size) => sum + size, 0);
    for (const count of gateways) {
      print(`\ncomputed: ${rooms} rooms with ${connections} connections on ${count} gateways, owned by ${roomServers} room servers`);
      for (const balancing of BALANCINGS) {
        const seats = seatRooms(sizes, balancing, { gateways: count, balanceFactor: BALANCE_FACTOR });
        for (const { name, gatewaysMean, gatewaysP99 } of classesOfRooms(seats))
          print(`  ${balancing.padEnd(8)} ${name.padEnd(18)} ${gatewaysMean.toFixed(2).padStart(6)} ${String(gatewaysP99).padStart(4)}`);
        const { copies, deltas, messages, busiest } = routingFigures(seats, roomServers);
        print(
          `  ${balancing.padEnd(8)} copies of an edit ${copies.toFixed(1)}, deltas per tick ${deltas} in ${messages} messages; the fullest gateway has ${busiest.toFixed(2)} of the average`,
        );
      }
    }
  },
});
