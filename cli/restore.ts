/**
 * `coroom restore`: restores rooms after the log, the snapshots or all of NATS was lost or rolled back. It refuses to run
 * beside running processes. docs/operations/backup.md describes when to use it and its result.
 */

import { createHash, randomUUID } from "node:crypto";
import { jetstream } from "@nats-io/jetstream";

import { isDeleted } from "../shared/bus/checkpoint.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey, type UnixMillis } from "../shared/ids.ts";
import { kvBucket } from "../shared/io/jetstream-stores.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import type { NatsConnection } from "../shared/io/nats.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { SettingError, type Values } from "../shared/settings/settings.ts";
import { rethrowMistake } from "../shared/time/pause.ts";
import { restoreRoom } from "../document-service/history/restore-host.ts";
import type { RoomObjects } from "../document-service/history/restored-history.ts";
import { documentThreads } from "../document-service/io/document-threads.ts";
import { jetstreamLog } from "../document-service/io/jetstream-log.ts";
import { kvCheckpoints, kvHistories } from "../document-service/io/kv-checkpoints.ts";
import { advanceNumbering, numberingOf } from "../document-service/io/log-numbering.ts";
import { openStores } from "../document-service/io/object-stores.ts";
import type { Checkpoints, Histories } from "../document-service/ports.ts";
import type { restoreSettings } from "./command-settings.ts";
import type { PrintLine } from "./command.ts";
import { withOperator } from "./ops.ts";
import { refuseRunningProcesses } from "./running-processes.ts";

const ANSWER_MS_MAX = 10_000;

type RestoreConfig = Values<typeof restoreSettings>;

/** Throws a StartError that names running processes. Otherwise see `restoreRooms`. */
export function restore(config: RestoreConfig, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    await refuseRunningProcesses(nats, subjectsOf(config.environment), "restore");
    await restoreRooms(nats, config, print);
  });
}

/** Names each room that cannot be restored and continues with the others. Throws at the end when such rooms exist. */
export async function restoreRooms(nats: NatsConnection, config: RestoreConfig, print: PrintLine): Promise<void> {
  const threads = documentThreads(config, { clock: systemClock, log: { info: () => {}, warn: (_, sentence) => print(sentence) } });
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
    const objects = byRoom([...(await ports.snapshots.list()).keys()], [...(await ports.history.list()).keys()]);
    for (const bucket of [subjects.checkpointsBucket, subjects.historyBucket]) {
      const entries = await kvBucket(streams, bucket, { replicas: config.logReplicas });
      for await (const key of await entries.keys()) {
        const room = parseRoomKey(key);
        if (room !== undefined && !objects.has(room)) objects.set(room, { snapshots: [], history: [] });
      }
    }

    const run = randomUUID();
    let [named, rebuilt, missing] = [0, 0, 0];
    const referredTo = new Map<RoomKey, number>();
    const unrestored: RoomKey[] = [];
    for (const [room, of] of objects) {
      try {
        const restored = await restoreRoom(room, of, ports, {
          newName: () => `${run}-${++named}`,
          wallNow: () => Date.now() as UnixMillis,
        });
        if (restored.kind === "superseded") {
          unrestored.push(room);
          print(
            `${room}: another process wrote its checkpoint or history during the restore. Stop the document services and run this command again`,
          );
        }
        if (restored.kind === "rebuilt") {
          rebuilt += 1;
          missing += restored.missing;
          print(
            `${room}: rebuilt up to seq ${restored.seq}${restored.missing > 0 ? `; ${restored.missing} edits cannot be recovered` : ""}`,
          );
        }
      } catch (cause) {
        rethrowMistake(cause);
        unrestored.push(room);
        print(`${room}: not restored: ${reasonOf(cause)}`);
      }
      referredTo.set(room, await highestReference(room, ports));
    }
    for (const numbering of await numberingOf(nats, subjects, config.logPartitions, referredTo)) {
      if (numbering.last < numbering.needed)
        print(
          `partition ${numbering.partition} of the log ends at ${numbering.last}, but checkpoints refer to ${numbering.needed}: new records start after ${numbering.needed}`,
        );
      await advanceNumbering(nats, subjects, numbering);
    }
    print(
      `${objects.size} rooms checked, ${rebuilt} rebuilt, ${missing} edits missing. Rooms that have no checkpoint, no snapshot and no history were not checked: only the log can have their edits`,
    );
    if (unrestored.length > 0)
      throw new SettingError(
        `${unrestored.length} rooms were not restored: ${unrestored.join(", ")}. The lines above give the reasons. Fix them and run this command again before you start the system`,
      );
  } finally {
    await threads.stop();
  }
}

/**
 * Returns the highest stream sequence that the room's checkpoint or history refers to. Unreadable entries count as 0;
 * their room is in the list of rooms that were not restored.
 */
async function highestReference(
  room: RoomKey,
  { checkpoints, histories }: { readonly checkpoints: Checkpoints; readonly histories: Histories },
): Promise<number> {
  const [checkpoint, history] = await Promise.allSettled([checkpoints.read(room), histories.read(room)]);
  const covered =
    checkpoint.status === "fulfilled" && !isDeleted(checkpoint.value.checkpoint) ? checkpoint.value.checkpoint?.streamSeq : undefined;
  return Math.max(covered ?? 0, history.status === "fulfilled" ? history.value.history.through : 0);
}

/** The message with its causes. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonOf(error.cause)}`;
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
