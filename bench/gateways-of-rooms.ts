/**
 * Which gateways the members of rooms are on, and what follows for NATS, computed with the model of the balancer. Members
 * arrive in random order, as in a working fleet, and every connection returns once, so that the figures do not depend on
 * the first minutes.
 */

import { Prng } from "../shared/collections/prng.ts";
import { socketUrl } from "../client/options.ts";
import { type Balancing, BalancerModel, type BalancerOptions } from "./balancer-model.ts";

const SEED = 1;

/** Of each room: its members on each gateway that has any. */
export type RoomSeats = readonly ReadonlyMap<number, number>[];

type RoutingFigures = {
  readonly gatewaysMean: number;
  readonly gatewaysP99: number;
  /** Gateways of the room of an average member: NATS sends each edit and each cursor to so many. */
  readonly copies: number;
  /** Deltas per tick of 50 ms to gateways if somebody moves in every room: one for each room and gateway. */
  readonly deltas: number;
  /** Messages per tick that carry them: one for each pair of a room server and a gateway. */
  readonly messages: number;
  /** Connections of the fullest gateway, as a multiple of the average of all gateways with any. */
  readonly busiest: number;
};

/** The routing key of the SDK. */
export function routingKeyOf(room: string): string {
  return new URL(socketUrl({ socket: "ws://gateway/", http: "" }, room, 0)).searchParams.get("route")!;
}

/** `arrivals`: the room of each member in turn. */
export function seatArrivals(
  rooms: readonly string[],
  arrivals: Iterable<number>,
  balancing: Balancing,
  options: BalancerOptions,
): RoomSeats {
  const balancer = new BalancerModel(options);
  const keys = rooms.map(routingKeyOf);
  const seats = rooms.map(() => new Map<number, number>());
  for (const room of arrivals) addSeat(seats[room]!, balancer.connect(balancing, keys[room]!));
  return seats;
}

export function seatRooms(sizes: readonly number[], balancing: Balancing, options: BalancerOptions): RoomSeats {
  const balancer = new BalancerModel(options);
  const keys = sizes.map((_, room) => routingKeyOf(`room-${room}`));
  const roomOf = memberOrder(sizes);
  const gatewayOf = Uint16Array.from(roomOf, (room) => balancer.connect(balancing, keys[room]!));
  for (const [connection, room] of roomOf.entries()) {
    balancer.disconnect(gatewayOf[connection]!);
    gatewayOf[connection] = balancer.connect(balancing, keys[room]!);
  }
  const seats = sizes.map(() => new Map<number, number>());
  for (const [connection, room] of roomOf.entries()) addSeat(seats[room]!, gatewayOf[connection]!);
  return seats;
}

function addSeat(seats: Map<number, number>, gateway: number): void {
  seats.set(gateway, (seats.get(gateway) ?? 0) + 1);
}

export function routingFigures(seats: RoomSeats, roomServers: number): RoutingFigures {
  const counts = seats.map(({ size }) => size).sort((a, b) => a - b);
  const members = seats.map((room) => sum([...room.values()]));
  const loads = new Map<number, number>();
  for (const room of seats) for (const [gateway, count] of room) loads.set(gateway, (loads.get(gateway) ?? 0) + count);
  const pairs = new Set(seats.flatMap((room, index) => [...room.keys()].map((gateway) => `${index % roomServers} ${gateway}`)));
  return {
    gatewaysMean: sum(counts) / counts.length,
    gatewaysP99: counts[Math.ceil(0.99 * counts.length) - 1]!,
    copies: sum(seats.map(({ size }, room) => size * members[room]!)) / sum(members),
    deltas: sum(counts),
    messages: pairs.size,
    busiest: (Math.max(...loads.values()) * loads.size) / sum(members),
  };
}

/** The sizes of rooms that are shown separately, by their largest. */
const CLASSES = [4, 50, 999, Infinity];

type ClassOfRooms = { readonly name: string; readonly gatewaysMean: number; readonly gatewaysP99: number };

/** Of each class of rooms that has any. */
export function classesOfRooms(seats: RoomSeats): readonly ClassOfRooms[] {
  const membersOf = (room: ReadonlyMap<number, number>): number => sum([...room.values()]);
  return CLASSES.flatMap((most, index) => {
    const least = (CLASSES[index - 1] ?? 0) + 1;
    const ofClass = seats.filter((room) => membersOf(room) >= least && membersOf(room) <= most);
    if (ofClass.length === 0) return [];
    const { gatewaysMean, gatewaysP99 } = routingFigures(ofClass, 1);
    return [{ name: most === Infinity ? `${least} members` : `${least} to ${most} members`, gatewaysMean, gatewaysP99 }];
  });
}

/** The room of each member in random order. */
export function memberOrder(sizes: readonly number[]): Uint32Array {
  const random = new Prng(SEED);
  const rooms = Uint32Array.from(sizes.flatMap((size, room) => Array.from({ length: size }, () => room)));
  for (let last = rooms.length - 1; last > 0; last--) {
    const other = random.below(last + 1);
    [rooms[last], rooms[other]] = [rooms[other]!, rooms[last]!];
  }
  return rooms;
}

const Z95 = 1.6449;

type RoomMix = { readonly rooms: number; readonly median: number; readonly p95: number; readonly largeRooms: number };

/** Log-normal sizes with this median and 95th percentile. The largest rooms have 1,000 members. */
export function sizesOf({ rooms, median, p95, largeRooms }: RoomMix): readonly number[] {
  const random = new Prng(SEED);
  const sigma = Math.log(p95 / median) / Z95;
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random.unit())) * Math.cos(2 * Math.PI * random.unit());
  const sizes = Array.from({ length: rooms }, () => Math.max(1, Math.floor(median * Math.exp(sigma * normal()))));
  sizes.sort((a, b) => a - b);
  return sizes.map((size, index) => (index < rooms - largeRooms ? Math.min(size, LARGE_ROOM) : LARGE_ROOM));
}

export const LARGE_ROOM = 1_000;

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
