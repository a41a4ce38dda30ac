/**
 * Rooms with normal edits beside rooms with hostile edits, in a real system. Prints the duration of HTTP writes without
 * and with the hostile rooms: `npm run build && npx vitest run test/system/hostile-edits.system.test.ts`.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { conflictBomb, NESTING_FUSE, nestingBomb, slowUpdates } from "../../shared/testing/yjs-bombs.ts";
import { RoomConnection } from "../../client/index.ts";
import { askAgain } from "./ask-again.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

const ROOMS = 10;
const ROUNDS = 8;
/** Every edit of these rooms is within the limits. Yjs needs about a minute for all edits of one room. */
const SLOW_ROOMS = 4;
const SLOW_EDITS = 300;

let cluster: SystemCluster;
let token: string;

beforeAll(async () => {
  cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 1,
    settings: {
      EDIT_BURST: "100000",
      EDITS_PER_SECOND: "100000",
      DOCUMENT_WRITE_BURST: "100000",
      DOCUMENT_WRITES_PER_SECOND: "100000",
      SNAPSHOT_BURST: "100000",
      SNAPSHOT_AGE_MS_MAX: "1000",
      SNAPSHOT_INTERVAL_MS_MIN: "1000",
      MERGE_EDITS_MAX: "1000000",
      MERGE_BYTES_MAX: "100000000",
      REPLAY_WINDOW_MS: "1000",
      HISTORY_SEGMENT_MS_MIN: "1000",
    },
  });
  token = await cluster.token("*", "backend");
  await askAgain("a document service answers", () => ask("GET", "none/snapshot"));
});
afterAll(() => cluster?.stop());

async function ask(method: string, path: string, body?: Uint8Array): Promise<{ status: number; text: string; json: { error?: string } }> {
  const answer = await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/${path}`, {
    method,
    headers: { "authorization": `Bearer ${token}`, "content-type": "application/octet-stream" },
    ...(body === undefined ? {} : { body: Buffer.from(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, json: answer.headers.get("content-type") === "application/json" ? JSON.parse(text) : {} };
}

function typed(text: string): Uint8Array {
  const doc = new Y.Doc();
  doc.getText("notes").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
}

/** Writes to all other rooms, one after the other, and returns the statuses. Prints the percentiles of the durations. */
async function write(when: string): Promise<Record<number, number>> {
  const [statuses, times]: [Record<number, number>, number[]] = [{}, []];
  for (let round = 0; round < ROUNDS; round++) {
    for (let room = 0; room < ROOMS; room++) {
      const from = performance.now();
      const { status } = await ask("POST", `beside-${room}/edits`, typed("x"));
      times.push(performance.now() - from);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  }
  times.sort((a, b) => a - b);
  const at = (part: number): string => `${times[Math.floor(part * (times.length - 1))]!.toFixed(0)} ms`;
  console.log(`HTTP writes ${when}: ${JSON.stringify(statuses)}, p50 ${at(0.5)}, p99 ${at(0.99)}`);
  return statuses;
}

test("[HED1] HTTP writes of other rooms never fail beside rooms that cannot be merged, and those rooms' logs keep their edits", async () => {
  await write("before");
  const slow = slowUpdates(5_000, SLOW_EDITS);
  const attackers: RoomConnection[] = [];
  /** A client without a document, so it sends unchecked edits. */
  const attack = async (room: string, edits: readonly Uint8Array[]): Promise<void> => {
    const attacker = new RoomConnection({ url: cluster.gateways[0]!.url, room, token: await cluster.token(room, "attacker") });
    attackers.push(attacker);
    for (const edit of edits) attacker.send(edit);
    await eventually("the log has the edits", () => attacker.saved && attacker.seq > 0, 120_000);
  };
  const others = {
    "one-edit": [conflictBomb(6_000)],
    "nested": [nestingBomb(5_000), NESTING_FUSE],
    "no-update": [Uint8Array.of(255, 255)],
  };
  for (const [room, bomb] of Object.entries(others)) {
    expect((await ask("POST", `${room}/edits`, typed("kept"))).status).toBe(200);
    await attack(room, bomb);
  }
  for (let room = 0; room < SLOW_ROOMS; room++) await attack(`slow-${room}`, slow);

  const service = cluster.documentServices[0]!;
  const quarantined = (): number =>
    new Set([...service.printed().matchAll(/"room":"([^"]+slow-[^"]+)"[^\n]*quarantined/g)].map(([, room]) => room)).size;
  expect(await write("beside them")).toEqual({ 200: ROOMS * ROUNDS });
  await eventually("every slow room is in quarantine", () => quarantined() === SLOW_ROOMS, 120_000);
  expect(await write("beside quarantined rooms")).toEqual({ 200: ROOMS * ROUNDS });
  for (const room of Object.keys(others))
    expect([room, (await askAgain(room, () => ask("GET", `${room}/text`))).text]).toEqual([room, "kept"]);
  await eventually(
    "a slow room serves its last state, or reports that it has none",
    async () => {
      const { status, json } = await ask("GET", "slow-0/text"); // "loading" while the merges of other slow rooms run first.
      return status === 200 || json.error === "stalled";
    },
    120_000,
  );
  for (const attacker of attackers) attacker.destroy();
}, 400_000);
