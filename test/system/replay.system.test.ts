/** Recorded editing sessions through two gateways, two room servers, JetStream and the document service. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { soakLength } from "../soak.ts";
import { SystemCluster } from "./cluster.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { Person } from "./person.ts";
import { replay } from "./replay.ts";
import { readTrace } from "./traces.ts";

const UNLIMITED = { EDIT_BURST: "1000000", EDITS_PER_SECOND: "1000000" };
const TEST_MS_MAX = soakLength(180_000, 900_000);
/** The beginnings of the two sessions. One author often waits for the other's edits, so the length counts in round trips. */
const KEYSTROKES = soakLength(6_000, Infinity);
const MERGED_EDITS = soakLength(5_000, Infinity);
const PAPER_EDITS = soakLength(30_000, Infinity);

const logOf = async (cluster: SystemCluster, room: string) =>
  checkLog(await readLog(cluster.natsUrl, cluster.environment, roomKey("default" as TenantId, room as RoomId)));

let keystrokes: SystemCluster;
let merging: SystemCluster;
beforeAll(async () => {
  [keystrokes, merging] = await Promise.all([
    SystemCluster.start({ gateways: 2, roomServers: 2, settings: UNLIMITED }),
    SystemCluster.start({ gateways: 2, roomServers: 2 }),
  ]);
});
afterAll(async () => {
  await Promise.all([keystrokes.stop(), merging.stop()]);
});

test(
  "[E2E1] two authors replay a session keystroke by keystroke: one order, every edit acknowledged, one text for all",
  { timeout: TEST_MS_MAX },
  async () => {
    const trace = readTrace("friendsforever", KEYSTROKES);
    const people = await Promise.all(
      keystrokes.gateways.map((gateway, index) => Person.enter(keystrokes, gateway, "friends", `author-${index}`, { merging: false })),
    );
    await replay(trace, people, () => ({ editsPerTurn: 100, pauseMs: 5, unsavedMax: 1_000 }));
    for (const person of people) await person.untilSaved(60_000);
    for (const person of people) await person.untilText(trace.endText);

    const late = await Person.enter(keystrokes, keystrokes.gateways[0]!, "friends", "late", { merging: true });
    await late.untilText(trace.endText);
    const edits = await logOf(keystrokes, "friends");
    expect(edits.length).toBe(trace.editsByAuthor.flat().length);
    expect(people.map(({ room }) => room.seq)).toEqual([edits.length, edits.length]);
    expect([...people, late].flatMap(({ disorders, errors }) => [...disorders, ...errors])).toEqual([]);
    for (const person of [...people, late]) person.leave();
  },
);

test(
  "[E2E2] within the default limits the SDK merges the waiting edits of the same session, and nothing is refused",
  { timeout: TEST_MS_MAX },
  async () => {
    const trace = readTrace("friendsforever", MERGED_EDITS);
    const people = await Promise.all(
      merging.gateways.map((gateway, index) => Person.enter(merging, gateway, "friends", `author-${index}`, { merging: true })),
    );
    await replay(trace, people, () => ({ editsPerTurn: 20, pauseMs: 10, unsavedMax: 100_000 }));
    for (const person of people) await person.untilSaved(60_000);
    for (const person of people) await person.untilText(trace.endText);

    const late = await Person.enter(merging, merging.gateways[1]!, "friends", "late", { merging: true });
    await late.untilText(trace.endText);
    const edits = await logOf(merging, "friends");
    expect(edits.length).toBeLessThan(trace.editsByAuthor.flat().length);
    expect([...people, late].flatMap(({ disorders, errors }) => [...disorders, ...errors])).toEqual([]);
    for (const person of [...people, late]) person.leave();
  },
);

test("[E2E3] the edits of a long paper reach two readers and a late reader completely", { timeout: TEST_MS_MAX }, async () => {
  const trace = readTrace("automerge-paper", PAPER_EDITS);
  const [near, far] = keystrokes.gateways;
  const writer = await Person.enter(keystrokes, near!, "paper", "writer", { merging: true });
  const readers = await Promise.all(
    [near!, far!].map((gateway, index) => Person.enter(keystrokes, gateway, "paper", `reader-${index}`, { merging: true })),
  );
  await replay(trace, [writer], () => ({ editsPerTurn: 1_000, pauseMs: 5, unsavedMax: 20_000 }));
  await writer.untilSaved(60_000);
  const late = await Person.enter(keystrokes, far!, "paper", "late", { merging: true });
  for (const person of [writer, ...readers, late]) await person.untilText(trace.endText, 60_000);
  await logOf(keystrokes, "paper");
  expect([writer, ...readers, late].flatMap(({ disorders, errors }) => [...disorders, ...errors])).toEqual([]);
  for (const person of [writer, ...readers, late]) person.leave();
});
