/** Faults of NATS, the log, the buckets and the snapshots. */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { NO_EPOCHS, withRecords } from "../../shared/bus/epoch-history.ts";
import { encodeToOwner } from "../../shared/bus/envelope.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { ClientId, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { Prng } from "../../shared/collections/prng.ts";
import type { Strike } from "./strike.ts";
import { pick } from "./pick.ts";
import { always, claimAtRandom, moveAtRandom, never, restartNats } from "./process-faults.ts";
import { deleteRoomThroughService } from "./service-faults.ts";
import type { LogCondition } from "./sim-jetstream.ts";
import { breakConnection, replace } from "./tab-faults.ts";

/** Much less than the two minutes of a real server, so that a loss does not remove the complete run. */
const UNSYNCED_MS_MAX = 1_500;
const LOG_SLOW_MS_MAX = 4_000;
const LAG_MS_MAX = 3_000;
/** Share of the fault's time until a new leader is elected. */
const LEADER_SHARE = 0.25;
/** The shortest election timeout of nats-server. A run has time for about one election. */
const ELECTION_MS = 4_000;
/** A leader announces itself to the other nodes each second. */
const BOTH_ANSWER_MS = 1_500;
const DELETE_AGAIN_MS = 200;
const WIPE_MS = 100;
const TELL_OWNER_MS = 300;

/**
 * The only node loses power before it has synced: it loses the writes that it acknowledged since the last sync, and
 * restarts. Skipped if a room is deleted, because the loss would restore the room (docs/DURABILITY.md).
 */
export const loseEndOfLog: Strike = (cluster, fault) => {
  const { judge, log, scheduler, trace } = cluster.world;
  if ([...judge.rooms.values()].some(({ isDeleted }) => isDeleted)) return never;
  restartNats(cluster, fault);
  const last = log.loseSince(scheduler.now - fault.how ** 2 * UNSYNCED_MS_MAX);
  const edits = judge.receiveEndLost(last);
  trace.note(`the log ends at ${last}: ${edits} edits are lost`);
  return edits > 0 ? always : never;
};

/** Some processes are connected to a node that is cut off from the others. No connection breaks, so no process is informed. */
export const cutNodes: Strike = (cluster, { how, forMs }) => {
  const { nats } = cluster.world;
  const sides = new Prng(Math.floor(how * 2 ** 32));
  const apart = cluster.connections().filter(() => sides.chance(0.4));
  const before = nats.missedEver;
  for (const connection of apart) connection.moveTo(1);
  let met = false;
  cluster.later(forMs, () => {
    met = nats.missedEver > before;
    for (const connection of apart) connection.moveTo(0);
  });
  return () => met;
};

/**
 * Some nodes are cut off, with the leaders of some streams. An old leader accepts no writes and continues to answer
 * reads. The other nodes elect new leaders after a time. When all nodes are connected again, both leaders answer for a
 * moment (docs/adr/0036-reads-may-be-stale.md). Meanwhile rooms are claimed and trimmed, and clients reconnect over
 * other gateways.
 */
export const leaveOldLeader: Strike = (cluster, fault) => {
  const { how, forMs } = fault;
  const { log } = cluster.world;
  const prng = new Prng(Math.floor(how * 2 ** 32));
  if (!log.leaveOldLeader(prng)) return never;
  const apart = cluster.connections().filter(() => prng.chance(0.4));
  const before = log.staleEver;
  const among = () => ({ ...fault, whom: prng.unit(), how: prng.unit() });
  for (const connection of apart) connection.moveTo(1);
  cluster.later(ELECTION_MS, () => {
    log.moveOldLeader("apart");
    claimAtRandom(cluster, among());
  });
  cluster.later(ELECTION_MS + forMs / 2, () => {
    checkpointAndTrim(cluster, among());
    for (const _ of cluster.tabs) breakConnection(cluster, among());
  });
  cluster.later(ELECTION_MS + forMs, () => {
    for (const connection of apart) connection.moveTo(0);
    log.moveOldLeader("together");
    claimAtRandom(cluster, among());
  });
  let met = false;
  cluster.later(ELECTION_MS + forMs + BOTH_ANSWER_MS, () => {
    met = log.staleEver > before;
    log.endOldLeader();
  });
  return () => met;
};

export function setCondition(mood: Exclude<LogCondition, "well">): Strike {
  return (cluster, { forMs }) => {
    const { log } = cluster.world;
    const before = log.met[mood];
    log.mood = mood;
    let met = false;
    cluster.later(mood === "changing-leader" ? LEADER_SHARE * forMs : forMs, () => {
      met = log.met[mood] > before;
      log.mood = "well";
    });
    return () => met;
  };
}

export const slowLog: Strike = (cluster, { how, forMs }) => {
  const { log } = cluster.world;
  const before = log.met.slow;
  log.slowMs = 20 + how * LOG_SLOW_MS_MAX;
  let met = false;
  cluster.later(forMs, () => {
    met = log.met.slow > before;
    log.slowMs = 0;
  });
  return () => met;
};

/** Reads and watches return old entries, and meanwhile a room changes its owner. */
export const lagEntries: Strike = (cluster, fault) => {
  const { how, forMs } = fault;
  const { entries } = cluster.world.log;
  const before = entries.lateEver;
  entries.lagMs = how * LAG_MS_MAX;
  moveAtRandom(cluster, fault);
  let met = false;
  cluster.later(forMs, () => {
    met = entries.lateEver > before;
    entries.lagMs = 0;
  });
  return () => met;
};

export const takeEntriesAway: Strike = (cluster, { forMs }) => {
  const { entries } = cluster.world.log;
  const before = entries.unansweredEver;
  entries.goAway();
  let met = false;
  cluster.later(forMs, () => {
    met = entries.unansweredEver > before;
    entries.comeBack();
  });
  return () => met;
};

/** Snapshots are unavailable at the same time as a trim of the log and a new tab, which needs a snapshot. */
export const takeSnapshotsAway: Strike = (cluster, fault) => {
  const { forMs } = fault;
  const { internet } = cluster;
  const before = internet.snapshotsRefused;
  internet.snapshotsAreThere = false;
  checkpointAndTrim(cluster, fault);
  replace(cluster, fault);
  let met = false;
  cluster.later(forMs, () => {
    met = internet.snapshotsRefused > before;
    internet.snapshotsAreThere = true;
  });
  return () => met;
};

/**
 * Deletes a room permanently. It appends the deletion record as soon as the log accepts it, and then removes the room's
 * data. Until no server has the room, it asks the owner to check the log, as the document service does.
 */
export const deleteRoom: Strike = (cluster, fault) => {
  if (cluster.world.stores !== undefined) return deleteRoomThroughService(cluster, fault);
  const { whom } = fault;
  const { judge, log, nats, scheduler, subjects, trace } = cluster.world;
  const key = pick(
    [...judge.rooms.keys()].filter((room) => !judge.room(room).isDeleted),
    whom,
  );
  if (key === undefined) return never;
  const tellOwner = (): void => {
    if (!cluster.roomServers.some(({ process, host }) => process.state !== "dead" && host.has(key))) return;
    nats.publish({ subject: subjects.toOwner(key), data: encodeToOwner({ kind: "check-ownership" }) });
    scheduler.after(TELL_OWNER_MS, tellOwner);
  };
  const remove = (): void => {
    if (!log.delete(key)) return cluster.later(DELETE_AGAIN_MS, remove);
    judge.receiveDeleted(key);
    trace.note("the room is deleted", key);
    scheduler.after(WIPE_MS, () => {
      log.wipe(key);
      tellOwner();
    });
  };
  remove();
  return always;
};

/** Makes a durable snapshot that covers all but some of the newest records, and trims the log up to it. */
export const checkpointAndTrim: Strike = (cluster, { whom, how }) => {
  const { judge, log, scheduler, trace } = cluster.world;
  if (log.checkpointEntries !== undefined) return never; // The document services trim the log.
  const key = pick([...judge.rooms.keys()], whom);
  if (key === undefined) return never;
  const [{ records, isDeleted }, before] = [judge.room(key), log.checkpoint(key)];
  if (isDeleted || before === "deleted") return never;
  const covered = records.slice(0, Math.max(1, records.length - Math.floor(how * 4)));
  const last = covered.at(-1);
  if (last === undefined || headOf(last.record) === 0 || last.streamSeq <= (before?.streamSeq ?? 0)) return never;
  const clients = new Map<ClientId, Checkpoint["clients"][number]>();
  for (const { record } of covered) {
    if (record.kind === "epoch") continue;
    record.edits.edits.forEach(({ client, counter }, index) =>
      clients.set(client, { client, user: "u" as UserId, counter, seq: (record.edits.firstSeq + index) as Seq, lastSeen: record.time }),
    );
  }
  const checkpoint: Checkpoint = {
    epoch: epochOf(last.record),
    seq: headOf(last.record),
    streamSeq: last.streamSeq,
    time: scheduler.now as UnixMillis,
    epochs: withRecords(
      NO_EPOCHS,
      covered.map(({ record }) => record),
    ),
    clients: [...clients.values()],
    snapshot: { object: "o", bytes: 1, sha256: "s" },
  };
  log.checkpointAndTrim(key, checkpoint);
  trace.note(`the log is trimmed behind seq ${checkpoint.seq}`, key);
  return always;
};
