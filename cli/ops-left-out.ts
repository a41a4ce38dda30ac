/** Which rooms have edits that are in no snapshot: their logs are never trimmed, and somebody should look at what they hold. It needs NATS only. */

import { jetstream } from "@nats-io/jetstream";

import { CheckpointEntry, isDeleted } from "../shared/bus/checkpoint.ts";
import { decodeJson } from "../shared/bus/json-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { Values } from "../shared/config.ts";
import { parseRoomKey, roomOf, tenantOf } from "../shared/ids.ts";
import { kvBucket } from "../shared/io/copies.ts";
import { closeNats } from "../shared/io/nats.ts";
import { connectOperator } from "./ops.ts";
import type { opsLeftOutSettings } from "./ops-settings.ts";

/** Says a line for each such room, and how many there are of how many. */
export async function listLeftOut(config: Values<typeof opsLeftOutSettings>, say: (line: string) => void): Promise<void> {
  const nats = await connectOperator(config);
  try {
    const bucket = await kvBucket(jetstream(nats), subjectsOf(config.environment).checkpointsBucket, { replicas: config.logReplicas });
    let [rooms, found] = [0, 0];
    for await (const key of await bucket.keys()) {
      const [room, entry] = [parseRoomKey(key), await bucket.get(key)];
      const checkpoint = entry === null || entry.operation !== "PUT" ? undefined : decodeJson(CheckpointEntry, entry.value);
      if (room === undefined || checkpoint === undefined || isDeleted(checkpoint)) continue;
      rooms += 1;
      if (checkpoint.leftOut === undefined || checkpoint.leftOut === 0) continue;
      found += 1;
      say(
        `tenant=${tenantOf(room)} room=${roomOf(room)} leftOut=${checkpoint.leftOut} seq=${checkpoint.seq} at=${new Date(checkpoint.time).toISOString()}`,
      );
    }
    say(`${found} of ${rooms} rooms with a snapshot have edits that are left out of it`);
  } finally {
    await closeNats(nats);
  }
}
