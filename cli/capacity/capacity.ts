/**
 * Computes how many processes of each role a load needs, from measured costs (`figures.ts`): pure arithmetic.
 *
 * With the routing key, the members of a room meet on one gateway (ADR 72). Without it, each further gateway of a room
 * receives all its edits and cursors, so more gateways cost more. Costs are linear in the events, so the invariant of a
 * plan is: a larger load never needs less.
 */

import type { CapacityFigures, StoredRoomCost } from "./figures.ts";

export type CapacityLoad = {
  readonly rooms: number;
  /** Participants of rooms: a log-normal distribution with this median and 95th percentile. */
  readonly medianParticipants: number;
  readonly p95Participants: number;
  /** Rooms of `LARGE_ROOM` participants, besides the others. */
  readonly largeRooms: number;
  /** Documents that exist, open ones included. */
  readonly storedRooms: number;
  readonly editsPerSecond: number;
  readonly cursorsPerSecond: number;
  readonly editBytes: number;
  /** The balancer hashes the routing key of the SDK. */
  readonly isRoutedByKey: boolean;
  readonly logReplicas: 1 | 3 | 5;
  readonly isSynced: boolean;
  /** The fleet still carries the load after the loss of one of these zones. */
  readonly zones: number;
};

/** The maximum values of settings that bound one process. */
export type ProcessLimits = {
  readonly connectionsPerGateway: number;
  readonly roomsPerRoomServer: number;
  readonly roomsPerDocumentService: number;
  readonly roomsPerLeaderboard: number;
  readonly flatParticipantsMax: number;
};

export type Bottleneck = "CPU" | "connections" | "rooms" | "one per zone";
export type RolePlan = {
  readonly role: string;
  readonly cores: number;
  readonly processes: number;
  /** What decides the number of processes. */
  readonly by: Bottleneck;
  readonly memoryBytes: number;
};
export type CapacityPlan = {
  readonly participants: number;
  readonly hierarchicalRooms: number;
  /** Gateways that receive an average edit. */
  readonly gatewaysOfEdit: number;
  readonly roles: readonly RolePlan[];
  readonly logPartitions: number;
  readonly bytesPerSecondToClients: number;
  readonly diskBytesPerDay: number;
  readonly stored: StoredPlan;
};
/** What the stores hold for all stored rooms. The plan of a role includes its memory. */
export type StoredPlan = {
  readonly redisMemoryBytes: number;
  /** Nodes of a Redis Cluster that hold it on common machines. */
  readonly redisNodes: number;
  readonly redisDiskBytes: number;
  /** Of each nats-server, because every copy of the log and its buckets is complete. */
  readonly natsMemoryBytes: number;
  readonly natsDiskBytes: number;
};

const LARGE_ROOM = 1_000;
/** One JavaScript thread. Above this part of a core its latency grows. */
const CORE_SHARE_MAX = 0.6;
/** Rooms of a room server: more of them take longer to fail over than users should notice. */
const ROOMS_PER_ROOM_SERVER = 5_000;
/** Resident memory of a process of Coroom that has no clients. */
const PROCESS_BYTES = 100 * 1024 * 1024;
/** Memory of a common machine, and the part of it that redis-server may hold: rewrites of its file need more for a while. */
export const REDIS_MACHINE_BYTES = 64e9;
export const REDIS_SHARE_MAX = 0.6;
/** Headers of a record in the log and its share of the index. */
const RECORD_OVERHEAD_BYTES = 150;
const SECONDS_PER_DAY = 86_400;
/** 95th percentile of the standard normal distribution. */
const Z95 = 1.6449;

/** Steps of the sum over the distribution of room sizes, from -4 to 4 standard deviations. */
const STEPS = 800;
const DEVIATIONS = 4;

/** Events per second of all rooms together, and members in rooms in hierarchical mode. */
type Events = Readonly<
  Record<"edits" | "editDeliveries" | "editCopies" | "cursors" | "cursorDeliveries" | "cursorCopies" | "largeRoomMembers", number>
>;
type RoomClass = { readonly rooms: number; readonly participants: number };

export function planCapacity(load: CapacityLoad, limits: ProcessLimits, figures: CapacityFigures): CapacityPlan {
  const classes = roomClasses(load);
  const participants = sum(classes, ({ rooms, participants: each }) => rooms * each);
  let events = eventsOf(classes, participants, load, limits, 1);
  const rooms = load.rooms + load.largeRooms;
  const plan = (role: string, bounds: Partial<Record<Bottleneck, number>> = {}): RolePlan => {
    const { idleCores } = figures.costs[role]!;
    const work = coresOf(figures, role, events);
    const needed = { "one per zone": 1, "CPU": work / (CORE_SHARE_MAX - idleCores), ...bounds } satisfies Partial<
      Record<Bottleneck, number>
    >;
    const [by, count] = (Object.entries(needed) as [Bottleneck, number][]).reduce((most, one) => (one[1] > most[1] ? one : most));
    const processes = withSpareZone(Math.ceil(count), load.zones);
    const memoryBytes = participants * (figures.bytesPerConnection[role] ?? 0) + processes * PROCESS_BYTES;
    return { role, cores: work + processes * idleCores, processes, by, memoryBytes };
  };
  const planGateways = (): RolePlan => plan("gateway", { connections: participants / limits.connectionsPerGateway });
  let gateways = planGateways();
  // Copies grow with the gateways, but a room is on no more gateways than it has members, so this ends.
  for (let before = 0; !load.isRoutedByKey && gateways.processes > before; gateways = planGateways()) {
    before = gateways.processes;
    events = eventsOf(classes, participants, load, limits, before);
  }
  const stored = planStored(load, participants / rooms, figures);
  const redis = plan("redis-server");
  const nats = plan("nats-server");
  const natsCores = coresOnce(figures, "nats-server", events) * load.logReplicas + coresOfCopies(figures, "nats-server", events);
  return {
    participants,
    hierarchicalRooms: sum(classes, ({ rooms: count, participants: each }) => (each > limits.flatParticipantsMax ? count : 0)),
    gatewaysOfEdit: 1 + events.editCopies / events.edits,
    roles: [
      gateways,
      plan("room-server", { rooms: rooms / Math.min(limits.roomsPerRoomServer, ROOMS_PER_ROOM_SERVER) }),
      plan("document-service", { rooms: rooms / limits.roomsPerDocumentService }),
      plan("leaderboard", { rooms: rooms / limits.roomsPerLeaderboard }),
      plan("placement"),
      { ...redis, processes: 1, memoryBytes: redis.memoryBytes + stored.redisMemoryBytes },
      {
        ...nats,
        cores: natsCores,
        processes: load.logReplicas,
        memoryBytes: nats.memoryBytes + load.logReplicas * stored.natsMemoryBytes,
      },
    ],
    logPartitions: Math.ceil(load.editsPerSecond / figures.appendsPerSecond[appendsName(load)] / CORE_SHARE_MAX),
    bytesPerSecondToClients: 1e6 * coresOf(figures, "network", events),
    diskBytesPerDay: load.editsPerSecond * (load.editBytes + RECORD_OVERHEAD_BYTES) * SECONDS_PER_DAY * load.logReplicas,
    stored,
  };
}

/** `participants`: users who have edited an average room. Only open rooms have boards of the current hour, day and week. */
function planStored(load: CapacityLoad, participants: number, { storedRoom }: CapacityFigures): StoredPlan {
  const each = ({ room, participant }: StoredRoomCost): number => room + participants * participant;
  const openRooms = load.rooms + load.largeRooms;
  const redisMemoryBytes = load.storedRooms * each(storedRoom.redisMemory) + openRooms * each(storedRoom.redisMemoryOfShortWindows);
  return {
    redisMemoryBytes,
    redisNodes: Math.ceil(redisMemoryBytes / (REDIS_SHARE_MAX * REDIS_MACHINE_BYTES)),
    redisDiskBytes: load.storedRooms * each(storedRoom.redisDisk),
    natsMemoryBytes: load.storedRooms * each(storedRoom.natsMemory),
    natsDiskBytes: load.storedRooms * each(storedRoom.natsDisk) * load.logReplicas,
  };
}

/** Rooms by size. The sum over the normal density replaces its inverse, which has no closed form. */
function roomClasses({ rooms, medianParticipants, p95Participants, largeRooms }: CapacityLoad): readonly RoomClass[] {
  const sigma = Math.log(p95Participants / medianParticipants) / Z95;
  const steps = Array.from({ length: STEPS }, (_, index) => DEVIATIONS * ((2 * (index + 0.5)) / STEPS - 1));
  const density = steps.map((z) => Math.exp(-(z ** 2) / 2));
  const total = sum(density, (weight) => weight);
  const ordinary = steps.map((z, index) => ({
    rooms: (rooms * density[index]!) / total,
    participants: Math.min(LARGE_ROOM, Math.max(1, medianParticipants * Math.exp(sigma * z))),
  }));
  return [...ordinary, { rooms: largeRooms, participants: LARGE_ROOM }];
}

/**
 * Every participant edits and moves equally often, whatever the size of the room. `gateways`: over which the members of
 * each room are spread at random.
 */
function eventsOf(
  classes: readonly RoomClass[],
  participants: number,
  load: CapacityLoad,
  { flatParticipantsMax }: ProcessLimits,
  gateways: number,
): Events {
  const [editsEach, cursorsEach] = [load.editsPerSecond / participants, load.cursorsPerSecond / participants];
  const pairs = (of: readonly RoomClass[]): number => sum(of, ({ rooms, participants: each }) => rooms * each * (each - 1));
  const flat = classes.filter(({ participants: each }) => each <= flatParticipantsMax);
  const inHierarchical = sum(classes, ({ rooms, participants: each }) => (each > flatParticipantsMax ? rooms * each : 0));
  const gatewaysOf = (members: number): number => gateways * (1 - (1 - 1 / gateways) ** members);
  const copies = sum(classes, ({ rooms, participants: each }) => rooms * each * (gatewaysOf(each) - 1));
  return {
    edits: load.editsPerSecond,
    editCopies: editsEach * copies,
    cursorCopies: cursorsEach * copies,
    editDeliveries: editsEach * pairs(classes),
    cursors: load.cursorsPerSecond,
    cursorDeliveries: cursorsEach * pairs(flat),
    largeRoomMembers: inHierarchical,
  };
}

function coresOf(figures: CapacityFigures, role: string, events: Events): number {
  return coresOnce(figures, role, events) + coresOfCopies(figures, role, events);
}

/** As if each room were on one gateway. */
function coresOnce({ costs: ofRoles }: CapacityFigures, role: string, events: Events): number {
  const costs = ofRoles[role]!;
  const micros =
    costs.editMicros * events.edits +
    costs.editDeliveryMicros * events.editDeliveries +
    costs.cursorMicros * events.cursors +
    costs.cursorDeliveryMicros * events.cursorDeliveries +
    costs.largeRoomMemberMicros * events.largeRoomMembers;
  return micros / 1e6;
}

/** For the further gateways of rooms. */
function coresOfCopies({ copies }: CapacityFigures, role: string, events: Events): number {
  const { editMicros, cursorMicros } = copies[role] ?? { editMicros: 0, cursorMicros: 0 };
  return (editMicros * events.editCopies + cursorMicros * events.cursorCopies) / 1e6;
}

/** At least one for each zone, and what remains without one zone suffices. */
function withSpareZone(processes: number, zones: number): number {
  return zones === 1 ? processes : zones * Math.ceil(processes / (zones - 1));
}

function appendsName({ logReplicas, isSynced }: CapacityLoad): keyof CapacityFigures["appendsPerSecond"] {
  if (logReplicas === 1) return isSynced ? "oneCopySynced" : "oneCopy";
  return isSynced ? "threeCopiesSynced" : "threeCopies";
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
