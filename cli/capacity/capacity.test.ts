import { expect, test } from "vitest";

import { readSettings } from "../../shared/settings/settings.ts";
import { configMaps, manifestsOf, workloads } from "../../deploy/kubernetes/manifests.ts";
import { capacitySettings } from "../command-settings.ts";
import { capacityDocument, capacityText, DEFAULT_LIMITS } from "./capacity-command.ts";
import { type CapacityLoad, planCapacity, type RolePlan } from "./capacity.ts";
import { FIGURES } from "./figures.ts";

const FULL_SIZE: CapacityLoad = {
  rooms: 100_000,
  medianParticipants: 4,
  p95Participants: 30,
  largeRooms: 100,
  storedRooms: 1_001_000,
  editsPerSecond: 50_000,
  cursorsPerSecond: 5_000_000,
  editBytes: 60,
  isRoutedByKey: true,
  logReplicas: 3,
  isSynced: true,
  zones: 3,
};
const plan = (load: Partial<CapacityLoad> = {}) => planCapacity({ ...FULL_SIZE, ...load }, DEFAULT_LIMITS, FIGURES);
const processesOf = (roles: readonly RolePlan[], role: string): number => roles.find((one) => one.role === role)!.processes;

test("[CAP1] a larger load never needs less of anything", () => {
  const before = plan();
  for (const more of ["rooms", "largeRooms", "editsPerSecond", "cursorsPerSecond", "p95Participants"] as const) {
    const after = plan({ [more]: FULL_SIZE[more] * 2 });
    for (const [index, role] of after.roles.entries())
      expect(role.processes, `${role.role} with more ${more}`).toBeGreaterThanOrEqual(before.roles[index]!.processes);
    expect(after.logPartitions).toBeGreaterThanOrEqual(before.logPartitions);
  }
});

test("[CAP2] the rooms of the full size hold between 800,000 and a million participants", () => {
  const { participants, hierarchicalRooms } = plan();
  expect(participants).toBeGreaterThan(800_000);
  expect(participants).toBeLessThan(1_000_000);
  expect(hierarchicalRooms).toBeGreaterThan(FULL_SIZE.largeRooms);
});

test("[CAP3] what remains after the loss of a zone carries the load", () => {
  const [alone, spread] = [plan({ zones: 1 }).roles, plan({ zones: 3 }).roles];
  for (const { role, processes } of spread.filter(({ role: name }) => !name.endsWith("-server") || name === "room-server")) {
    expect(processes % 3).toBe(0);
    expect((processes * 2) / 3).toBeGreaterThanOrEqual(processesOf(alone, role));
  }
});

test("[CAP4] docs/CAPACITY.md matches the measured figures (npm run capacity-doc updates it)", async () => {
  await expect(capacityDocument()).toMatchFileSnapshot("../../docs/CAPACITY.md");
});

test("[CAP5] a process of the full size stays within the default limits, also when a zone is lost", () => {
  const { participants, roles } = plan();
  const rooms = FULL_SIZE.rooms + FULL_SIZE.largeRooms;
  const left = (role: string): number => (processesOf(roles, role) * 2) / 3;
  expect(participants / left("gateway")).toBeLessThanOrEqual(DEFAULT_LIMITS.connectionsPerGateway);
  expect(rooms / left("room-server")).toBeLessThanOrEqual(DEFAULT_LIMITS.roomsPerRoomServer);
  expect(rooms / left("document-service")).toBeLessThanOrEqual(DEFAULT_LIMITS.roomsPerDocumentService);
  expect(rooms / left("leaderboard")).toBeLessThanOrEqual(DEFAULT_LIMITS.roomsPerLeaderboard);
});

test("[CAP6] the Kubernetes files carry the small deployment of docs/CAPACITY.md with one replica less of each role", () => {
  const { roles, logPartitions } = plan({ rooms: 500, largeRooms: 0, editsPerSecond: 500, cursorsPerSecond: 10_000, zones: 1 });
  for (const role of ["gateway", "room-server", "document-service", "leaderboard", "placement"])
    expect(replicasOf(role) - 1, role).toBeGreaterThanOrEqual(processesOf(roles, role));
  const partitions = Object.values(configMaps).flatMap(({ COROOM_LOG_PARTITIONS }) => COROOM_LOG_PARTITIONS ?? []);
  expect(Number(partitions[0])).toBeGreaterThanOrEqual(logPartitions);
});

test("[CAP7] a distribution that cannot be is refused by the names of the flags", () => {
  const config = readSettings(capacitySettings, { flags: { medianParticipants: "30", p95Participants: "4" }, env: {} });
  expect(() => capacityText(config)).toThrow("--p95-participants must not be less than --median-participants");
});

test("[CAP8] without the routing key, an edit reaches more gateways, and gateways and NATS need more", () => {
  const small = { rooms: 500, largeRooms: 2, editsPerSecond: 500, cursorsPerSecond: 10_000, zones: 1 } as const;
  const [routed, spread] = [plan(small), plan({ ...small, isRoutedByKey: false })];
  expect(routed.gatewaysOfEdit).toBe(1);
  const gateways = processesOf(spread.roles, "gateway");
  expect(spread.gatewaysOfEdit).toBeGreaterThan(1.5);
  expect(spread.gatewaysOfEdit).toBeLessThanOrEqual(gateways);
  for (const [index, { role, cores }] of spread.roles.entries())
    if (role === "gateway" || role === "nats-server") expect(cores, role).toBeGreaterThan(routed.roles[index]!.cores);
    else expect(cores, role).toBe(routed.roles[index]!.cores);
});

test("[CAP9] without the routing key, the members of the full size still need a finite number of gateways", () => {
  const { roles, participants, gatewaysOfEdit } = plan({ isRoutedByKey: false });
  expect(processesOf(roles, "gateway")).toBeGreaterThan(2 * processesOf(plan().roles, "gateway"));
  expect(processesOf(roles, "gateway")).toBeLessThan(participants);
  expect(gatewaysOfEdit).toBeGreaterThan(10);
});

test("[CAP10] more stored rooms need memory and disk of redis-server and nats-server, and nothing of the other roles", () => {
  const [before, after] = [plan(), plan({ storedRooms: 2 * FULL_SIZE.storedRooms })];
  for (const [index, { role, memoryBytes, ...more }] of after.roles.entries()) {
    const { memoryBytes: memoryBefore, ...others } = before.roles[index]!;
    expect({ role, ...more }).toEqual(others);
    if (role === "redis-server" || role === "nats-server") expect(memoryBytes, role).toBeGreaterThan(1.5 * memoryBefore);
    else expect(memoryBytes, role).toBe(memoryBefore);
  }
  expect(after.stored.natsDiskBytes).toBe(2 * before.stored.natsDiskBytes);
  expect(plan({ logReplicas: 1 }).stored.natsDiskBytes).toBeCloseTo(before.stored.natsDiskBytes / 3, 0);
});

test("[CAP11] a plan warns when a single Redis needs more than 60% of a common machine, and counts the nodes", () => {
  const textOf = (flags: Record<string, string>) => capacityText(readSettings(capacitySettings, { flags, env: {} }));
  expect(textOf({ rooms: "1000", largeRooms: "0", storedRooms: "1000000" })).not.toContain("Redis Cluster");
  expect(textOf({ rooms: "1000", largeRooms: "0", storedRooms: "10000000" })).toMatch(/Redis Cluster with at least [2-9] nodes/);
  expect(textOf({ rooms: "1000", largeRooms: "0" })).toContain("Stored rooms: 10,000,");
  expect(() => textOf({ rooms: "1000", largeRooms: "1", storedRooms: "1000" })).toThrow("--stored-rooms must not be less than --rooms");
});

function replicasOf(role: string): number {
  const scaled = manifestsOf("HorizontalPodAutoscaler").find(({ spec }) => spec.scaleTargetRef.name === role);
  return scaled?.spec.minReplicas ?? workloads.find(({ metadata }) => metadata.name === role)!.spec.replicas!;
}
