/** The text of `coroom capacity` and of docs/CAPACITY.md. */

import {
  type Bottleneck,
  type CapacityLoad,
  type CapacityPlan,
  REDIS_MACHINE_BYTES,
  REDIS_SHARE_MAX,
  type RolePlan,
  type StoredPlan,
} from "./capacity.ts";
import type { CapacityFigures, StoredRoomCost } from "./figures.ts";

const DECIDED_BY: Readonly<Record<Bottleneck, string>> = {
  "CPU": "CPU",
  "connections": "connections (COROOM_CONNECTIONS_MAX)",
  "rooms": "rooms per process",
  "one per zone": "one for each zone",
};

export function capacityReport(plan: CapacityPlan, load: CapacityLoad): string {
  return [
    `${count(load.rooms + load.largeRooms)} rooms with ${count(plan.participants)} participants, ${count(plan.hierarchicalRooms)} of them in hierarchical mode; ${count(load.editsPerSecond)} edits and ${count(load.cursorsPerSecond)} cursors per second.`,
    "",
    "| role | cores in use | processes | decided by | memory |",
    "|---|---|---|---|---|",
    ...plan.roles.map(
      ({ role, cores, processes, by, memoryBytes }) =>
        `| ${role} | ${cores.toFixed(1)} | ${count(processes)} | ${DECIDED_BY[by]} | ${gigabytes(memoryBytes)} |`,
    ),
    "",
    `- COROOM_LOG_PARTITIONS: ${count(plan.logPartitions)}, ${load.logReplicas === 1 ? "one copy" : `${load.logReplicas} copies`}${load.isSynced ? ", synced before each acknowledgement" : ""}. Each partition needs a stream leader; spread them over the nats-servers.`,
    ...(load.isRoutedByKey
      ? []
      : [`- Without the routing key, an edit or cursor reaches ${plan.gatewaysOfEdit.toFixed(1)} gateways on average.`]),
    `- To clients: ${(plan.bytesPerSecondToClients / 1e6).toFixed(0)} MB/s, without the headers of TCP and TLS.`,
    `- Written to the log: ${gigabytes(plan.diskBytesPerDay)} a day, of which trimming removes what snapshots cover.`,
    ...storedReport(plan.stored, load),
    `- Bottleneck: ${bottleneckOf(plan.roles)}`,
  ].join("\n");
}

export function figuresReport(figures: CapacityFigures): string {
  const { measuredOn, machine, costs, copies, bytesPerConnection, storedRoom, appendsPerSecond } = figures;
  const bytes = ({ room, participant }: StoredRoomCost): string => `${count(room)} and ${count(participant)}`;
  const micros = (value: number): string => (value === 0 ? "" : value < 10 ? value.toPrecision(2) : String(Math.round(value)));
  return [
    `Measured on ${measuredOn} (${machine}). In microseconds of CPU; \`network\` in bytes.`,
    "",
    "| role | edit | its delivery to one more member | cursor | its delivery to one more member | a second of a member in hierarchical mode | bytes for each connection |",
    "|---|---|---|---|---|---|---|",
    ...Object.entries(costs).map(
      ([role, cost]) =>
        `| ${role} | ${micros(cost.editMicros)} | ${micros(cost.editDeliveryMicros)} | ${micros(cost.cursorMicros)} | ${micros(cost.cursorDeliveryMicros)} | ${micros(cost.largeRoomMemberMicros)} | ${bytesPerConnection[role] ?? ""} |`,
    ),
    "",
    `Each further gateway that has members of the room: ${Object.entries(copies)
      .map(
        ([role, { editMicros, cursorMicros }]) =>
          `${micros(editMicros)} for an edit and ${micros(cursorMicros)} for a cursor in the ${role}`,
      )
      .join(", ")}.`,
    "",
    `Bytes of a stored room, and of each user who has edited it, without the document: redis-server's memory ${bytes(storedRoom.redisMemory)}, and ${bytes(storedRoom.redisMemoryOfShortWindows)} for the boards of hour, day and week, which expire within 14 days; its file ${bytes(storedRoom.redisDisk)}; memory of each nats-server ${bytes(storedRoom.natsMemory)}, its files ${bytes(storedRoom.natsDisk)}.`,
    "",
    `Appends per second of one partition, while 50 writers each wait for their last one: ${appendsPerSecond.oneCopy} with one copy (${appendsPerSecond.oneCopySynced} synced), ${appendsPerSecond.threeCopies} with three copies (${appendsPerSecond.threeCopiesSynced} synced).`,
  ].join("\n");
}

function storedReport(stored: StoredPlan, { storedRooms, logReplicas }: CapacityLoad): readonly string[] {
  const { redisMemoryBytes, redisNodes, redisDiskBytes, natsMemoryBytes, natsDiskBytes } = stored;
  return [
    `- Stored rooms: ${count(storedRooms)}, for which redis-server holds ${gigabytes(redisMemoryBytes)} of memory and each nats-server ${gigabytes(natsMemoryBytes)}, both included above. On disks: NATS ${gigabytes(natsDiskBytes)}${logReplicas === 1 ? "" : ` in ${logReplicas} copies`} and the documents themselves, Redis ${gigabytes(redisDiskBytes)} to ${gigabytes(2 * redisDiskBytes)}.`,
    ...(redisNodes > 1
      ? [
          `- **Redis needs more than ${REDIS_SHARE_MAX * 100}% of a machine with ${gigabytes(REDIS_MACHINE_BYTES)}.** Use a Redis Cluster with at least ${count(redisNodes)} nodes and several tenants, because all boards of a tenant are on one node, or count fewer windows (COROOM_BOARD_WINDOWS).`,
        ]
      : []),
  ];
}

function bottleneckOf(roles: readonly RolePlan[]): string {
  const { role, cores } = roles.reduce((most, one) => (one.cores > most.cores ? one : most));
  return `CPU of the role ${role}, ${cores.toFixed(1)} cores. Add processes of it first when the load grows.`;
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function gigabytes(bytes: number): string {
  if (bytes < 1e8) return `${count(bytes / 1e6)} MB`;
  return bytes < 1e10 ? `${(bytes / 1e9).toFixed(1)} GB` : `${count(bytes / 1e9)} GB`;
}
