/**
 * `coroom restore`: brings rooms back from what is left after the log, the snapshots or all of NATS was lost or rolled
 * back. To be run while no document service and no room server runs; docs/OPERATIONS.md says when, and what comes of it.
 */

import { createHash, randomUUID } from "node:crypto";

import { jetstream } from "@nats-io/jetstream";

import { documentServiceSettings } from "../document-service/config.ts";
import { documentThreads } from "../document-service/io/document-threads.ts";
import { jetstreamLog } from "../document-service/io/jetstream-log.ts";
import { kvCheckpoints } from "../document-service/io/kv-checkpoints.ts";
import { isDeleted } from "../shared/bus/checkpoint.ts";
import { kvHistories } from "../document-service/io/kv-histories.ts";
import { moveNumberingOn, numberingOf } from "../document-service/io/log-numbering.ts";
import { openStores } from "../document-service/io/object-stores.ts";
import { restoreRoom, type RoomObjects } from "../document-service/past/restore-host.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { Settings, Values } from "../shared/config.ts";
import { parseRoomKey, type RoomKey, type UnixMillis } from "../shared/ids.ts";
import { closeNats } from "../shared/io/nats.ts";
import { kvBucket } from "../shared/io/copies.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { connectOperator, whereSettings } from "./ops.ts";
import { startSettings } from "./settings.ts";

const { snapshotsStore, snapshotsFolder, s3Url, s3Region, s3Bucket, s3AccessKeyId, s3SecretAccessKey, mergeMsMax, mergeThreads, readsWaitingMax } = documentServiceSettings;

export const restoreSettings = {
  ...whereSettings,
  logPartitions: startSettings.logPartitions,
  logReplicas: startSettings.logReplicas,
  snapshotsStore,
  snapshotsFolder,
  s3Url,
  s3Region,
  s3Bucket,
  s3AccessKeyId,
  s3SecretAccessKey,
  mergeMsMax,
  mergeThreads,
  readsWaitingMax,
} as const satisfies Settings;

const ANSWER_MS_MAX = 10_000;

export async function restore(config: Values<typeof restoreSettings>, say: (line: string) => void): Promise<void> {
  const nats = await connectOperator(config);
  const threads = documentThreads(config, systemClock);
  try {
    const subjects = subjectsOf(config.environment);
    await ensureLogStreams(nats, subjects, { partitions: config.logPartitions, replicas: config.logReplicas });
    const streams = jetstream(nats, { timeout: ANSWER_MS_MAX });
    const ports = {
      log: await jetstreamLog(nats, subjects, { partitions: config.logPartitions, readMs: 1, answerMsMax: ANSWER_MS_MAX }),
      checkpoints: await kvCheckpoints(streams, subjects.checkpointsBucket, config.logReplicas),
      histories: await kvHistories(streams, subjects.historyBucket, config.logReplicas),
      ...(await openStores(streams, subjects, config)),
      merging: threads,
      digest: (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex"),
    };
    const objects = byRoom(await ports.snapshots.list(), await ports.history.list());
    const checkpoints = await kvBucket(streams, subjects.checkpointsBucket, { replicas: config.logReplicas });
    for await (const key of await checkpoints.keys()) {
      const room = parseRoomKey(key);
      if (room !== undefined && !objects.has(room)) objects.set(room, { snapshots: [], history: [] });
    }

    let [run, named, rebuilt, missing] = [randomUUID(), 0, 0, 0];
    const spokenOf = new Map<RoomKey, number>();
    for (const [room, of] of objects) {
      const restored = await restoreRoom(room, of, ports, { newName: () => `${run}-${++named}`, wallNow: () => Date.now() as UnixMillis });
      if (restored.kind === "superseded") say(`${room}: somebody wrote its checkpoint meanwhile; stop the document services and run this again`);
      if (restored.kind === "rebuilt") {
        rebuilt += 1;
        missing += restored.missing;
        say(`${room}: made anew up to seq ${restored.seq}${restored.missing > 0 ? `; ${restored.missing} edits are nowhere to be had` : ""}`);
      }
      const [{ checkpoint }, { history }] = [await ports.checkpoints.read(room), await ports.histories.read(room)];
      spokenOf.set(room, Math.max(isDeleted(checkpoint) ? 0 : (checkpoint?.streamSeq ?? 0), history.through));
    }
    for (const numbering of await numberingOf(nats, subjects, config.logPartitions, spokenOf)) {
      if (numbering.last >= numbering.needed) continue;
      say(`part ${numbering.partition} of the log ends at ${numbering.last} and is spoken of up to ${numbering.needed}: it goes on behind that`);
      await moveNumberingOn(nats, subjects, numbering);
    }
    say(`${objects.size} rooms looked at, ${rebuilt} made anew, ${missing} edits missing`);
  } finally {
    await threads.stop();
    await closeNats(nats);
  }
}

function byRoom(snapshots: readonly string[], history: readonly string[]): Map<RoomKey, RoomObjects> {
  const rooms = new Map<RoomKey, RoomObjects>();
  const add = (name: string, place: keyof RoomObjects): void => {
    const room = parseRoomKey(name.slice(0, name.indexOf("/")));
    if (room === undefined) return;
    const known = rooms.get(room) ?? { snapshots: [], history: [] };
    rooms.set(room, { ...known, [place]: [...known[place], name] });
  };
  for (const name of snapshots) add(name, "snapshots");
  for (const name of history) add(name, "history");
  return rooms;
}
