/**
 * Measured figures with which `coroom capacity` computes. Measure them again after a change of the hot paths, on a quiet
 * machine: `npm run bench -- unit-costs`, `npm run bench -- idle --system coroom`, `npm run bench -- durability`.
 */

/** Of one role. `network` has the same fields in bytes instead of microseconds, and megabytes instead of cores. */
export type RoleCosts = {
  /** Of a process without any traffic. */
  readonly idleCores: number;
  /** One edit, until the log has it and the room's gateways received it. */
  readonly editMicros: number;
  /** One edit to one more member. */
  readonly editDeliveryMicros: number;
  /** One cursor of a member, in a room in flat mode. */
  readonly cursorMicros: number;
  /** One cursor to one more member, in a room in flat mode. */
  readonly cursorDeliveryMicros: number;
  /** One member for one second, in a room in hierarchical mode in which somebody moves. */
  readonly largeRoomMemberMicros: number;
};

export type CapacityFigures = {
  readonly measuredOn: string;
  readonly machine: string;
  readonly costs: Readonly<Record<string, RoleCosts>>;
  /** Growth of a role's resident memory for each joined connection that is idle, in rooms of 8. */
  readonly bytesPerConnection: Readonly<Record<string, number>>;
  /** Appends that one partition's stream takes per second while p99 of an acknowledgement stays below 100 ms. */
  readonly appendsPerSecond: Readonly<Record<"oneCopy" | "oneCopySynced" | "threeCopies" | "threeCopiesSynced", number>>;
};

export const FIGURES: CapacityFigures = {
  measuredOn: "2026-11-26",
  machine: "2 cores of an AMD EPYC, Node 20.20, nats-server 2.15.1",
  costs: {
    "gateway": {
      idleCores: 0.00833,
      editMicros: 333,
      editDeliveryMicros: 0,
      cursorMicros: 52.1,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 221,
    },
    "room-server": {
      idleCores: 0.0117,
      editMicros: 239,
      editDeliveryMicros: 0,
      cursorMicros: 12,
      cursorDeliveryMicros: 0.766,
      largeRoomMemberMicros: 59.4,
    },
    "document-service": {
      idleCores: 0.0133,
      editMicros: 164,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "leaderboard": {
      idleCores: 0.015,
      editMicros: 144,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "placement": {
      idleCores: 0.015,
      editMicros: 0,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "redis-server": {
      idleCores: 0.0033,
      editMicros: 80.5,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "nats-server": {
      idleCores: 0.01,
      editMicros: 250,
      editDeliveryMicros: 0,
      cursorMicros: 4.49,
      cursorDeliveryMicros: 0.177,
      largeRoomMemberMicros: 32.7,
    },
    "network": {
      idleCores: 0,
      editMicros: 8.62,
      editDeliveryMicros: 43.4,
      cursorMicros: 17.7,
      cursorDeliveryMicros: 8.02,
      largeRoomMemberMicros: 3720,
    },
  },
  bytesPerConnection: {
    "gateway": 3_389,
    "room-server": 909,
    "nats-server": 655,
    "placement": 204,
    "document-service": 153,
  },
  appendsPerSecond: { oneCopy: 3_585, oneCopySynced: 451, threeCopies: 2_865, threeCopiesSynced: 2_161 },
};
