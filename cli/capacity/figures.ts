/**
 * Measured figures with which `coroom capacity` computes. Measure them again after a change of the hot paths, on a quiet
 * machine: `npm run bench -- unit-costs`, `npm run bench -- idle --system coroom`, `npm run bench -- durability`, and
 * `npm run bench -- stored-rooms` with one participant and with four.
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

/** Bytes of a room that nobody has open: of any room, and of each user who has edited it. */
export type StoredRoomCost = { readonly room: number; readonly participant: number };
/** Without the document itself. */
type StoredRoomCosts = {
  /** Resident memory for names, marks, and the boards of month, year and all time. */
  readonly redisMemory: StoredRoomCost;
  /** The same for the boards of hour, day and week, which expire within 14 days. */
  readonly redisMemoryOfShortWindows: StoredRoomCost;
  readonly redisDisk: StoredRoomCost;
  readonly natsMemory: StoredRoomCost;
  readonly natsDisk: StoredRoomCost;
};

export type CapacityFigures = {
  readonly measuredOn: string;
  readonly machine: string;
  readonly costs: Readonly<Record<string, RoleCosts>>;
  /** Of each further gateway that has members of the room: one edit, and one cursor. Roles without such a cost are missing. */
  readonly copies: Readonly<Record<string, { readonly editMicros: number; readonly cursorMicros: number }>>;
  /** Growth of a role's resident memory for each joined connection that is idle, in rooms of 8. */
  readonly bytesPerConnection: Readonly<Record<string, number>>;
  readonly storedRoom: StoredRoomCosts;
  /** Acknowledged appends per second of one partition while 50 writers each wait for their last one. Latency is not bounded. */
  readonly appendsPerSecond: Readonly<Record<"oneCopy" | "oneCopySynced" | "threeCopies" | "threeCopiesSynced", number>>;
};

export const FIGURES: CapacityFigures = {
  measuredOn: "2026-11-26",
  machine: "2 shared cores of an AMD EPYC, Node 20.20, nats-server 2.15.1",
  // No role but gateway and room server receives cursors: what the bench shows for the others is work left from edits.
  costs: {
    "gateway": {
      idleCores: 0.0138,
      editMicros: 90.9,
      editDeliveryMicros: 1.84,
      cursorMicros: 28.1,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 181,
    },
    "room-server": {
      idleCores: 0.0138,
      editMicros: 54.4,
      editDeliveryMicros: 0,
      cursorMicros: 5.86,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 16.4,
    },
    "document-service": {
      idleCores: 0.0313,
      editMicros: 21.1,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "leaderboard": {
      idleCores: 0.0187,
      editMicros: 12.5,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "placement": {
      idleCores: 0.0125,
      editMicros: 0,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "redis-server": {
      idleCores: 0.00125,
      editMicros: 15.4,
      editDeliveryMicros: 0,
      cursorMicros: 0,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 0,
    },
    "nats-server": {
      idleCores: 0.01,
      editMicros: 61.7,
      editDeliveryMicros: 0,
      cursorMicros: 2.66,
      cursorDeliveryMicros: 0,
      largeRoomMemberMicros: 13.4,
    },
    "network": {
      idleCores: 0,
      editMicros: 25.1,
      editDeliveryMicros: 39.7,
      cursorMicros: 10.5,
      cursorDeliveryMicros: 7.97,
      largeRoomMemberMicros: 7780,
    },
  },
  // `unit-costs --gateways 2` minus `unit-costs`, means of rooms of 4 and 20. One run each on 2026-11-28, on a busy machine:
  // the order of magnitude. Large rooms gave more for a cursor, 3 to 7 in `fan-out` and 32 in `unit-costs`.
  copies: {
    "gateway": { editMicros: 16, cursorMicros: 5.5 },
    "nats-server": { editMicros: 4, cursorMicros: 0.7 },
  },
  bytesPerConnection: {
    "gateway": 3_389,
    "room-server": 909,
    "nats-server": 655,
    "placement": 204,
    "document-service": 153,
  },
  // `stored-rooms --rooms 10000` with one participant and with four on 2026-11-28. Ids of 36 characters for rooms, 20 for
  // users. 456 bytes of the lists of windows to archive count for the short windows. The memory of nats-server is its
  // growth from 23 MB without rooms, because the slope depended on Go's garbage (500 to 9,100 bytes): 11,100 bytes while
  // it runs, 7,200 after a restart, 5,500 live, with one participant and with four.
  storedRoom: {
    redisMemory: { room: 4_440, participant: 427 },
    redisMemoryOfShortWindows: { room: 3_150, participant: 336 },
    redisDisk: { room: 4_260, participant: 222 },
    natsMemory: { room: 11_100, participant: 0 },
    natsDisk: { room: 5_830, participant: 612 },
  },
  appendsPerSecond: { oneCopy: 3_585, oneCopySynced: 451, threeCopies: 2_865, threeCopiesSynced: 2_161 },
};
