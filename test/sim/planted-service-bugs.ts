/** Bugs in the document service and the leaderboard that the simulator must find: see `planted-bugs.ts`. */

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import { LogEndLost } from "../../shared/bus/record.ts";
import { type ClientKey, type RoomKey, tenantOf, type UnixMillis } from "../../shared/ids.ts";
import { clientIdOf } from "../../gateway/io/client-ids.ts";
import type { Fault } from "./faults.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { restoringOf } from "./restoring-edits.ts";
import type { Size } from "./sizes.ts";

/** The service treats a snapshot as durable once it is written, and trims up to it without reading it back. */
const snapshotNotReadBack: PlantedBug = {
  name: "snapshot not read back",
  documentService: (ports) => {
    const written = new Map<string, Uint8Array>();
    return {
      ...ports,
      snapshots: {
        ...ports.snapshots,
        write: (name, bytes) => (written.set(name, bytes), ports.snapshots.write(name, bytes)),
        read: (name) => Promise.resolve(written.get(name)),
      },
    };
  },
  faults: ({ faultyMs }: Size): readonly Fault[] => [{ kind: "object store damages writes", atMs: 100, forMs: faultyMs, whom: 0, how: 0 }],
};

/** A full store's refusal is dropped, and the service takes what it wrote for what the store has. */
const refusalOfFullStore: PlantedBug = {
  name: "refusal of a full object store ignored",
  documentService: (ports) => {
    const written = new Map<string, Uint8Array>();
    return {
      ...ports,
      snapshots: {
        ...ports.snapshots,
        write: (name, bytes) => (written.set(name, bytes), ports.snapshots.write(name, bytes).catch(() => {})),
        read: async (name) => (await ports.snapshots.read(name)) ?? written.get(name),
      },
    };
  },
  faults: ({ faultyMs }: Size): readonly Fault[] => [
    { kind: "storage of an object store full", atMs: 100, forMs: faultyMs, whom: 0, how: 0 },
  ],
};

const PAUSED_MS = 1_500;

/** A batch is added to the boards without a check of the seq up to which they are counted. */
const appliedSeqUnchecked: PlantedBug = {
  name: "applied seq unchecked",
  leaderboard: (ports) => ({
    ...ports,
    boards: {
      ...ports.boards,
      apply: async (room, batch) => {
        const write = await ports.boards.apply(room, batch);
        return write.kind === "stale"
          ? ports.boards.apply(room, {
              ...batch,
              after: { ...batch.after, ...write.counted, time: write.counted.time ?? batch.after.time },
            })
          : write;
      },
    },
  }),
  /** The counting leaderboard is paused with a batch in memory for longer than its lease; another one counts meanwhile. */
  faults: ({ faultyMs }: Size): readonly Fault[] =>
    [0.1, 0.9].slice(0, faultyMs > 2 * PAUSED_MS ? 2 : 1).map((whom, index): Fault => ({
      kind: "leaderboard paused",
      atMs: Math.floor((0.36 + 0.42 * index) * faultyMs),
      forMs: PAUSED_MS,
      whom,
      how: 0.1,
    })),
};

/** A log reader compares stream sequences alone. If a log that lost its end reuses a number, the reader skips the new record. */
const lostEndUnnoticed: PlantedBug = {
  name: "lost end of the log unnoticed",
  documentService: (ports) => ({
    ...ports,
    log: {
      ...ports.log,
      follow: async function* (partition, { after }, signal) {
        try {
          yield* ports.log.follow(partition, { after }, signal);
        } catch (error) {
          throw error instanceof LogEndLost ? new Error("the log cannot be read") : error;
        }
      },
    },
  }),
  faults: ({ faultyMs }: Size): readonly Fault[] => [
    { kind: "log loses its end", atMs: Math.floor(0.6 * faultyMs), forMs: 100, whom: 0, how: 0.6 },
  ],
};

const NO_FAULTS = (): readonly Fault[] => [];

/** The entry of a history names versions only, so trimmed edits can no longer be read. */
const segmentsForgotten: PlantedBug = {
  name: "history forgets its segments",
  documentService: (ports) => ({
    ...ports,
    histories: {
      ...ports.histories,
      write: (room, history, revision) => ports.histories.write(room, { ...history, segments: [] }, revision),
    },
  }),
  faults: NO_FAULTS,
};

/** The history treats its objects as durable when it has sent them. */
const historyUnwritten: PlantedBug = {
  name: "history not written",
  documentService: (ports) => {
    const sent = new Map<string, Uint8Array>();
    return {
      ...ports,
      history: {
        ...ports.history,
        write: (name, bytes) => Promise.resolve(void sent.set(name, bytes)),
        read: (name) => Promise.resolve(sent.get(name)),
      },
    };
  },
  faults: NO_FAULTS,
};

const roomDeleted = ({ faultyMs }: Size): readonly Fault[] => [
  { kind: "room deleted", atMs: Math.floor(0.7 * faultyMs), forMs: 0, whom: 0, how: 0 },
];

/** A deletion is reported as complete, and the room's last snapshot is still in the object store. */
const deletedSnapshotKept: PlantedBug = {
  name: "snapshot of a deleted room kept",
  documentService: (ports) => ({ ...ports, snapshots: { ...ports.snapshots, remove: () => Promise.resolve() } }),
  faults: roomDeleted,
};

const deletedBoardKept: PlantedBug = {
  name: "board of a deleted room kept",
  leaderboard: (ports) => ({ ...ports, boards: { ...ports.boards, remove: () => Promise.resolve() } }),
  faults: roomDeleted,
};

/** After a loss of Redis, the board of the deleted room would return from its checkpoint. */
const deletedCheckpointKept: PlantedBug = {
  name: "checkpoint of a deleted room's boards kept",
  leaderboard: (ports) => ({ ...ports, checkpoints: { ...ports.checkpoints, remove: () => Promise.resolve([]) } }),
  faults: roomDeleted,
};

/** A new owner does not learn from the checkpoint which keys of HTTP writes are used, so it writes repeats again. */
const keysForgotten: PlantedBug = {
  name: "keys of HTTP writes not read from the checkpoint",
  roomServer: (ports) => ({
    ...ports,
    checkpoints: {
      newest: async (room) => {
        const newest = await ports.checkpoints.newest(room);
        if (newest === undefined || newest === "deleted") return newest;
        return { ...newest, clients: newest.clients.filter(({ counter }) => counter < ONLY_EDIT_COUNTER_MIN) };
      },
    },
  }),
  faults: ({ faultyMs }: Size): readonly Fault[] => [
    ...[0.1, 0.5, 0.9].map((whom): Fault => ({ kind: "edit with a key repeated over HTTP", atMs: 300 + whom, forMs: 0, whom, how: 0 })),
    ...[0.1, 0.5, 0.9].map((whom): Fault => ({ kind: "room server killed", atMs: Math.floor(0.8 * faultyMs), forMs: 300, whom, how: 0 })),
  ],
};

const useHistory = (kind: "history read over HTTP" | "earlier state restored", { faultyMs }: Size): readonly Fault[] =>
  [0.3, 0.5, 0.6, 0.8].map((share): Fault => ({ kind, atMs: Math.floor(share * faultyMs), forMs: 0, whom: share, how: 0 }));

/** An earlier state lacks its newest edit. */
const earlierStateCut: PlantedBug = {
  name: "earlier state without its last edit",
  documentService: (ports) => ({
    ...ports,
    reverting: {
      ...ports.reverting,
      mergeHistory: (state, edits, room, signal) => ports.reverting.mergeHistory(state, edits.slice(0, -1), room, signal),
    },
  }),
  faults: (size) => useHistory("history read over HTTP", size),
};

/** A restore is made of the document as it was at the first restore, so later edits stay. */
const restoreOfOldDocument: PlantedBug = {
  name: "restore made of an old document",
  documentService: (ports) => {
    const first = new Map<RoomKey, Uint8Array>();
    return {
      ...ports,
      reverting: {
        ...ports.reverting,
        revert: (current, earlier, room) => {
          if (!first.has(room)) first.set(room, current);
          return ports.reverting.revert(first.get(room)!, earlier, room);
        },
      },
    };
  },
  faults: (size) => useHistory("earlier state restored", size),
};

/** A gateway names the edit of a restore by its content, which differs when the request is repeated. */
const restoreNamedByContent: PlantedBug = {
  name: "restore with a key named by its content",
  gatewayRooms: (rooms) => ({
    ...rooms,
    sendToOwner: (room, message, epoch) => {
      const edits = message.kind === "edits" ? message.edits : [];
      const renamed = edits.map((edit) =>
        restoringOf(edit.payload) === undefined
          ? edit
          : {
              ...edit,
              author: { ...edit.author, client: clientIdOf(tenantOf(room), edit.author.user, String(edit.payload) as ClientKey) },
            },
      );
      rooms.sendToOwner(room, message.kind === "edits" ? { ...message, edits: renamed } : message, epoch);
    },
  }),
  faults: (size) => useHistory("earlier state restored", size),
};

/** A service whose date is years ahead removes the history of its rooms. */
const datesTrusted: PlantedBug = {
  name: "history dropped by a date that is ahead",
  documentService: (ports) => ({
    ...ports,
    histories: { ...ports.histories, storeDate: () => Number.MAX_SAFE_INTEGER as UnixMillis },
  }),
  faults: (size) => [
    ...useHistory("history read over HTTP", size),
    ...Array.from({ length: 12 }, (_, index): Fault => ({
      kind: "date set back or ahead",
      atMs: 500,
      forMs: 0,
      whom: index / 12,
      how: 0.901,
    })),
  ],
};

/** Bugs that show only where document services and leaderboards run. */
export const PLANTED_SERVICE_BUGS: readonly PlantedBug[] = [
  snapshotNotReadBack,
  refusalOfFullStore,
  appliedSeqUnchecked,
  lostEndUnnoticed,
  segmentsForgotten,
  historyUnwritten,
  deletedSnapshotKept,
  deletedBoardKept,
  deletedCheckpointKept,
  keysForgotten,
  earlierStateCut,
  restoreOfOldDocument,
  restoreNamedByContent,
  datesTrusted,
];
