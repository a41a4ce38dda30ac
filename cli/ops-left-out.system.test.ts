/** Lists rooms whose snapshots lack edits, with checkpoints in a real nats-server. */

import { jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { subjectsOf } from "../shared/bus/subjects.ts";
import type { Epoch, RoomKey, Seq, UnixMillis } from "../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { kvCheckpoints } from "../document-service/io/kv-checkpoints.ts";
import { type RealNats, startRealNats } from "../test/contract/real-nats.ts";
import { opsLeftOutSettings } from "./command-settings.ts";
import { listLeftOut } from "./ops.ts";

let server: RealNats;
let nats: NatsConnection;
beforeAll(async () => {
  server = await startRealNats();
  nats = await connectNats({ servers: server.url, name: "test" });
});
afterAll(async () => {
  await closeNats(nats);
  await server.stop();
});

async function listed(environment: string): Promise<string[]> {
  const lines: string[] = [];
  await listLeftOut(readSettings(opsLeftOutSettings, { flags: { environment, natsUrl: server.url }, env: {} }), (line) => lines.push(line));
  return lines;
}

test("[LFT1] the list contains rooms whose snapshot lacks edits, and no deleted or complete rooms", async () => {
  expect(await listed("left")).toEqual(["0 of 0 rooms with a snapshot have edits that it does not contain"]);
  const checkpoints = await kvCheckpoints(jetstream(nats), subjectsOf("left").checkpointsBucket, 1);
  const whole = {
    epoch: 1 as Epoch,
    seq: 7 as Seq,
    streamSeq: 9,
    time: 0 as UnixMillis,
    clients: [],
    snapshot: { object: "acme.a/1-7-x", bytes: 10, sha256: "" },
  };
  await checkpoints.write("acme.whole" as RoomKey, whole, 0);
  await checkpoints.write("acme.poisoned" as RoomKey, { ...whole, leftOut: 2 }, 0);
  await checkpoints.write("acme.gone" as RoomKey, { deleted: true, time: 0 as UnixMillis }, 0);
  expect(await listed("left")).toEqual([
    "tenant=acme room=poisoned leftOut=2 seq=7 at=1970-01-01T00:00:00.000Z",
    "1 of 2 rooms with a snapshot have edits that it does not contain",
  ]);
});
