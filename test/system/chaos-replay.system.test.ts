/**
 * Replays the recorded session while each kind of process is killed with SIGKILL and restarted several times, at
 * moments from the seed. Then the test checks the log and the documents themselves, not the statements of the
 * processes.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { soakLength } from "../soak.ts";
import { SystemCluster } from "./cluster.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { ownerOf } from "./owner.ts";
import { Person } from "./person.ts";
import { replay } from "./replay.ts";
import { readTrace } from "./traces.ts";

const SEED = Number(process.env["COROOM_TEST_SEED"] ?? 20261121);
const KILLS_OF_EACH = soakLength(2, 20);
/** Enough to last beyond the last kill. */
const EDITS = soakLength(10_000, Infinity);
const UNLIMITED = { EDIT_BURST: "1000000", EDITS_PER_SECOND: "1000000", RESEND_BURST: "1000000", RESENDS_PER_SECOND: "1000000" };
const ROOM = "friends";
const KEY = roomKey("default" as TenantId, ROOM as RoomId);

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 2, settings: UNLIMITED });
});
afterAll(() => cluster?.stop());

const kill = {
  "the owner of the room": async () => {
    const owner = await ownerOf(cluster, KEY);
    await owner.kill();
    await owner.restart();
  },
  "the writer's gateway": async () => {
    await cluster.gateways[0]!.process.kill();
    await cluster.gateways[0]!.process.restart();
  },
  "the document service": async () => {
    await cluster.documentService.kill();
    await cluster.documentService.restart();
  },
  "nats-server": async () => {
    cluster.nats.kill("SIGKILL");
    await cluster.nats.exited;
    await cluster.nats.restart();
  },
} as const;

test(
  `[CHA1] no kill of any process loses an acknowledged edit, reuses a seq or lets documents diverge (seed ${SEED})`,
  { timeout: soakLength(600_000, 3_600_000) },
  async () => {
    const trace = readTrace("friendsforever", EDITS);
    const people = await Promise.all(
      cluster.gateways.map((gateway, index) => Person.enter(cluster, gateway, ROOM, `author-${index}`, { merging: false })),
    );

    const prng = new Prng(SEED);
    const order = Object.keys(kill).flatMap((victim) =>
      Array.from({ length: KILLS_OF_EACH }, () => ({ victim: victim as keyof typeof kill, dice: prng.unit() })),
    );
    order.sort((a, b) => a.dice - b.dice);
    let killing = true;
    let typing = true;
    const typed = replay(trace, people, () => ({ editsPerTurn: killing ? 1 : 100, pauseMs: killing ? 20 : 10, unsavedMax: 300 })).then(
      () => (typing = false),
    );
    for (const { victim } of order) {
      await sleep(200 + prng.below(800));
      expect(typing, "somebody still types when a process is killed").toBe(true);
      await kill[victim]();
    }
    killing = false;
    await typed;

    for (const person of people) await person.untilSaved(60_000);
    for (const person of people) await person.untilText(trace.endText, 60_000);
    const late = await Person.enter(cluster, cluster.gateways[1]!, ROOM, "late", { merging: true });
    await late.untilText(trace.endText, 60_000);

    const edits = checkLog(await readLog(cluster.natsUrl, cluster.environment, KEY));
    expect(edits.length).toBe(trace.editsByAuthor.flat().length);
    expect(people.flatMap(({ disorders, errors }) => [...disorders, ...errors])).toEqual([]);
    for (const person of [...people, late]) person.leave();
  },
);
