/**
 * The previous release and this one run together while clients write: each role is replaced by this release, and then
 * by the previous one again. The judge reads the log as the NATS user `operator`, as chaos on containers does.
 */

import { afterAll, beforeAll, expect, test } from "vitest";

import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { askAgain } from "./ask-again.ts";
import { SystemCluster, type Process } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { insertion, Person } from "./person.ts";
import { buildPreviousRelease, hasPreviousRelease, type PreviousRelease } from "./previous-release.ts";
import { TRACE_TEXT } from "./traces.ts";

const EVERY_MS = 250;
const ROOM = "upgraded";
const KEY = roomKey("default" as TenantId, ROOM as RoomId);
/** Long limits: on a slow machine no server counts as dead. Each checkpoint covers edits of the other release. */
const SETTINGS = {
  HEARTBEAT_MS: "1000",
  SERVER_SILENCE_MS_MAX: "5000",
  OWNER_SILENCE_MS_MAX: "5000",
  SNAPSHOT_EDITS_MAX: "10",
  SNAPSHOT_INTERVAL_MS_MIN: "500",
  HISTORY_SEGMENT_MS_MIN: "3600000",
};

const isSkipped = !(await hasPreviousRelease());
let previous: PreviousRelease | undefined;
let cluster: SystemCluster | undefined;
beforeAll(async () => {
  if (isSkipped) return;
  previous = await buildPreviousRelease();
  cluster = await SystemCluster.start({
    gateways: 2,
    roomServers: 2,
    leaderboards: 1,
    documentServices: 2,
    placements: 2,
    release: previous.folder,
    settings: SETTINGS,
  });
}, 600_000);
afterAll(async () => {
  try {
    await cluster?.stop();
  } finally {
    previous?.remove();
  }
});

/** Reads the document at `minSeq`: a document service merges its snapshot with the edits after it. */
async function textOverHttp({ gateways, token }: SystemCluster, at: number, minSeq: number): Promise<string> {
  const authorization = `Bearer ${await token(ROOM, "reader")}`;
  const url = `${gateways[at]!.httpUrl}/v1/rooms/${ROOM}/document?type=${TRACE_TEXT}:text&minSeq=${minSeq}`;
  const { status, json } = await askAgain("the document", async () => {
    const response = await fetch(url, { headers: { authorization } });
    return { status: response.status, json: (await response.json()) as { error?: string; types?: Record<string, { value: unknown }> } };
  });
  expect([status, json.error]).toEqual([200, undefined]);
  return String(json.types?.[TRACE_TEXT]?.value);
}

test.skipIf(isSkipped)(
  "[UPG1] each role is replaced by the next release and back while clients write, and no edit is lost",
  async () => {
    const { gateways, roomServers, placements, documentServices, leaderboards } = cluster!;
    const people = await Promise.all(
      gateways.map((gateway, index) => Person.enter(cluster!, gateway, ROOM, ["ada", "bob"][index]!, { merging: false })),
    );
    const words: string[] = [];
    const write = (): void => {
      for (const person of people) {
        words.push(`w${words.length}.`);
        person.type(insertion(words.at(-1)!));
      }
    };
    const typing = setInterval(write, EVERY_MS);
    const replaceAll = async (processes: readonly Process[], release: string): Promise<void> => {
      for (const process of processes) {
        await process.replaceBy(release);
        write();
        const typed = words.length; // Typing continues, so nobody has everything saved.
        for (const { name, room } of people) await eventually(`${name} received ${typed} edits`, () => room.seq >= typed);
      }
    };
    const agree = async (): Promise<void> => {
      const [ada, bob] = people;
      for (const person of people) await person.untilSaved();
      // An author's last edit may reach the other one after its ACK.
      for (const { name, room } of people) await eventually(`${name} received all edits`, () => room.seq >= words.length);
      await bob!.untilText(ada!.text);
      for (const [index, gateway] of gateways.entries()) {
        const late = await Person.enter(cluster!, gateway, ROOM, `late-${index}`, { merging: false });
        await late.untilText(ada!.text);
        late.leave();
        expect(await textOverHttp(cluster!, index, words.length)).toBe(ada!.text);
      }
      for (const { disorders, errors } of people) expect([...disorders, ...errors]).toEqual([]);
      for (const word of words) expect(ada!.text).toContain(word);
      const edits = checkLog(await readLog(cluster!.natsUrlAs("operator"), cluster!.environment, KEY));
      expect(edits.length).toBe(words.length);
    };

    const roles = [...placements, ...documentServices, ...roomServers, ...leaderboards, ...gateways.map(({ process }) => process)];
    try {
      await replaceAll(roles, ".");
    } finally {
      clearInterval(typing);
    }
    await agree();
    const typingAgain = setInterval(write, EVERY_MS);
    try {
      await replaceAll(roles.toReversed(), previous!.folder);
    } finally {
      clearInterval(typingAgain);
    }
    await agree();
    for (const person of people) person.leave();
  },
  600_000,
);
