/** Faults of document services, leaderboards and their stores. */

import { Prng } from "../../shared/collections/prng.ts";
import type { Cluster, Ending, OnConnection, Whom } from "./cluster.ts";
import { always, cutOff, never, pause, restartNats, stall } from "./process-faults.ts";
import { START_MS } from "./scheduler.ts";
import type { Strike } from "./strike.ts";

type Chosen = (cluster: Cluster, fault: Whom) => OnConnection | undefined;

/** Longest time since the last sync of a store whose machine loses power, as for the log. */
const UNSYNCED_MS_MAX = 1_500;
const DAMAGE_BYTES = 3;

const documentService: Chosen = (cluster, fault) => cluster.documentService(fault);
const leaderboard: Chosen = (cluster, fault) => cluster.leaderboard(fault);

/** Does nothing if no such process runs. */
function ofEach(chosen: Chosen, strikeOn: (found: (cluster: Cluster, fault: Whom) => OnConnection) => Strike): Strike {
  const strike = strikeOn((cluster, fault) => chosen(cluster, fault)!);
  return (cluster, fault) => (chosen(cluster, fault) === undefined ? never : strike(cluster, fault));
}

export const pauseDocumentService = ofEach(documentService, pause);
export const pauseLeaderboard = ofEach(leaderboard, pause);
export const cutOffDocumentService = ofEach(documentService, cutOff);
export const cutOffLeaderboard = ofEach(leaderboard, cutOff);
export const stallDocumentService = ofEach(documentService, (found) => stall(found, "both"));
export const stallLeaderboard = ofEach(leaderboard, (found) => stall(found, "both"));

export function endDocumentService(ending: Ending): Strike {
  return (cluster, fault) => {
    const service = cluster.documentService(fault);
    const isServing = service?.host.isServing === true;
    return service !== undefined && cluster.endDocumentService(service, ending, fault.forMs) && isServing ? always : never;
  };
}

export function endLeaderboard(ending: Ending): Strike {
  return (cluster, fault) => {
    const found = cluster.leaderboard(fault);
    return found !== undefined && cluster.endLeaderboard(found, ending, fault.forMs) ? always : never;
  };
}

export const takeObjectsAway: Strike = (cluster, { how, forMs }) => {
  const { stores } = cluster.world;
  if (stores === undefined) return never;
  const store = [stores.snapshots, stores.archive, stores.boards][Math.floor(how * 3)]!;
  const before = store.unansweredEver;
  store.isThere = false;
  let met = false;
  cluster.later(forMs, () => {
    met = store.unansweredEver > before;
    store.isThere = true;
  });
  return () => met;
};

/** The store reports a completed write, but has stored other bytes. */
export const damageObjects: Strike = (cluster, { how, forMs }) => {
  const { stores } = cluster.world;
  if (stores === undefined) return never;
  const store = how < 0.7 ? stores.snapshots : stores.archive;
  const before = store.damagedEver;
  store.damage = (bytes) => bytes.slice(0, Math.max(0, bytes.byteLength - DAMAGE_BYTES));
  let met = false;
  cluster.later(forMs, () => {
    met = store.damagedEver > before;
    store.damage = undefined;
  });
  return () => met;
};

/** Disk or limit: the store refuses to write. */
export const fillObjects: Strike = (cluster, { how, forMs }) => {
  const { stores } = cluster.world;
  if (stores === undefined) return never;
  const store = [stores.snapshots, stores.archive, stores.boards][Math.floor(how * 3)]!;
  const before = store.refusedEver;
  store.isFull = true;
  let met = false;
  cluster.later(forMs, () => {
    met = store.refusedEver > before;
    store.isFull = false;
  });
  return () => met;
};

export const takeRedisAway: Strike = (cluster, { forMs }) => {
  const { stores } = cluster.world;
  if (stores === undefined) return never;
  const { redis } = stores;
  const before = redis.unansweredEver;
  redis.isThere = false;
  let met = false;
  cluster.later(forMs, () => {
    met = redis.unansweredEver > before;
    redis.isThere = true;
  });
  return () => met;
};

/** Redis restarts with the data that it last wrote to disk, or with no data. Checkpoints and the log restore the rest. */
export const loseEndOfRedis: Strike = (cluster, { how }) => {
  const { redis } = cluster.world.stores ?? {};
  return redis?.lose(how < 0.7 ? "end" : "everything") === true ? always : never;
};

/** The buckets of leases and of rooms' owners lose their ends, each from a different time. The log and the checkpoints are complete. */
export const loseEndsOfLeases: Strike = (cluster, { how }) => {
  const { stores, log, scheduler } = cluster.world;
  if (stores === undefined) return never;
  const prng = new Prng(Math.floor(how * 2 ** 32));
  for (const bucket of [stores.documentLeases, stores.boardLeases, log.entries, log.plans, log.leases])
    if (prng.chance(0.6)) bucket.loseSince(Math.max(START_MS, scheduler.now - prng.unit() ** 2 * UNSYNCED_MS_MAX));
  return always;
};

/**
 * The log and the stores lose their ends, each group from a different time: the stores of document services, the stores
 * of leaderboards, and their leases. A log is never newer than the checkpoints that trims relied on, and a lease never
 * newer than its checkpoints. For other cases there is `coroom restore` (docs/operations/backup.md).
 */
export const loseEndsApart: Strike = (cluster, fault) => {
  const { stores, log, judge, scheduler, trace } = cluster.world;
  if (stores === undefined || [...judge.rooms.values()].some(({ isDeleted }) => isDeleted)) return never;
  const prng = new Prng(Math.floor(fault.how * 2 ** 32));
  const drawAge = (): number => prng.unit() ** 2 * UNSYNCED_MS_MAX;
  const instant = (age: number): number => Math.max(START_MS, scheduler.now - age);
  const [ofDocuments, ofBoards] = [drawAge(), drawAge()];
  restartNats(cluster, fault);
  const edits = judge.receiveEndLost(log.loseSince(instant(Math.max(ofDocuments, ofBoards, drawAge()))));
  for (const store of [stores.checkpoints, stores.histories, stores.snapshots, stores.archive]) store.loseSince(instant(ofDocuments));
  for (const store of [stores.boardCheckpoints, stores.boards]) store.loseSince(instant(ofBoards));
  stores.documentLeases.loseSince(instant(Math.max(ofDocuments, drawAge())));
  stores.boardLeases.loseSince(instant(Math.max(ofBoards, drawAge())));
  if (prng.chance(0.3)) stores.redis.lose("end");
  trace.note(`log and stores lose their ends apart: ${edits} edits are lost from the log`);
  return edits > 0 ? always : never;
};

/** Deletes a room through its document service, and repeats the request until no data of the room is left. */
export const deleteRoomThroughService: Strike = (cluster, fault) => {
  const { judge, trace, scheduler } = cluster.world;
  const keys = [...judge.rooms.keys()];
  const key = keys[Math.floor(fault.whom * keys.length)];
  if (key === undefined) return never;
  let isWiped = false;
  const ask = (): void => {
    if (isWiped) return;
    const service = cluster.documentServiceOf(key);
    service?.process.run(
      () =>
        void service.host.delete(key).then((outcome) => {
          trace.note(`the deletion is answered: ${outcome}`, key);
          isWiped ||= outcome === "wiped" || outcome === "wiping";
        }),
    );
    scheduler.after(1_000, ask);
  };
  ask();
  return always;
};
