import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type ClientId, type Epoch, type RoomId, type RoomKey, roomKey, type Seq, type TenantId, tenantOf } from "../../shared/ids.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { FirstContentAnswer } from "../ports.ts";
import { FirstContents, type FirstContentsOptions, type FirstContentsPorts } from "./first-content-host.ts";
import type { WriteOutcome, WriteRefusal } from "./writes-host.ts";
import type { Log } from "../../shared/process/log.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";

const CONTENT: FirstContentAnswer = { kind: "content", edit: Uint8Array.of(1, 2), counter: 2 ** 32 };
const COMMITTED: WriteOutcome = { kind: "committed", epoch: 1 as Epoch, seq: 1 as Seq };
const keyOf = (name: string, tenant = "acme"): RoomKey => roomKey(tenant as TenantId, name as RoomId);
const OPTIONS: FirstContentsOptions = {
  firstContentsMax: 10,
  firstContentRequestsMax: 3,
  firstContentRequestsPerApplicationMax: 2,
  firstContentEditsMax: 2,
};
const NOTES = keyOf("notes");
const EDITED = keyOf("edited");

function contents(
  {
    answer = CONTENT,
    answerOf = () => answer,
    outcome = COMMITTED,
    isFull = false,
  }: {
    answer?: FirstContentAnswer;
    answerOf?: (tenant: TenantId) => FirstContentAnswer;
    outcome?: WriteOutcome;
    isFull?: boolean;
  } = {},
  options: Partial<FirstContentsOptions> = {},
  log: Log = SILENT_LOG,
) {
  const clock = new FakeClock();
  const metrics = gatewayMetrics(new Registry());
  const asked: RoomKey[] = [];
  const written: Parameters<FirstContentsPorts["writes"]["write"]>[] = [];
  const release: (() => void)[] = [];
  const ports: FirstContentsPorts = {
    applicationContents: {
      applicationOf: (tenant) => (tenant.startsWith("shared-") ? "all-tenants" : tenant),
      hasEdits: (room) => Promise.resolve(room === EDITED),
      requestContent: (room) => {
        asked.push(room);
        return new Promise((resolve) => release.push(() => resolve(answerOf(tenantOf(room)))));
      },
    },
    writes: { write: (...write) => (written.push(write), Promise.resolve(outcome)) },
    clientIdOf: (tenant, user, key) => `${tenant}-${user}-${key}` as ClientId,
    isFull: () => isFull,
  };
  const host = new FirstContents(ports, { ...OPTIONS, ...options }, { clock, log, metrics });
  return { host, clock, metrics, asked, written, release };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const refusedFor = (reason: WriteRefusal): WriteOutcome => ({ kind: "refused", reason, retryAfterMs: 0 });

test("[FCG9] content is written once as the room's first edit, under one name at all gateways", async () => {
  const { host, asked, written, release } = contents();
  const both = [host.load(NOTES), host.load(NOTES)];
  release[0]!();
  expect(await Promise.all(both)).toEqual(["content", "content"]);
  expect([asked, written.length]).toEqual([[NOTES], 1]);
  const [room, edit] = written[0]!;
  expect([room, edit]).toMatchObject([
    NOTES,
    { author: { user: "application", client: "acme-application-first-content" }, counter: 2 ** 32, mustBeFirst: true },
  ]);
});

test("[FCG10] a room whose first edit is another one, or that is deleted, needs no content; no other refusal opens it", async () => {
  const outcomeOf = (outcome: WriteOutcome) => {
    const { host, release } = contents({ outcome });
    const loaded = host.load(NOTES);
    release[0]!();
    return loaded;
  };
  for (const reason of ["not-first", "key-reused", "deleted"] as const) expect(await outcomeOf(refusedFor(reason))).toBe("content");
  for (const reason of ["log-stalled", "tenant-rate", "tenant-rooms", "too-many-writes", "too-large"] as const)
    expect(await outcomeOf(refusedFor(reason))).toBe("failed");
  expect(await outcomeOf({ kind: "unanswered" })).toBe("failed");
});

test("[FCG11] a failure answers every load of the room for two seconds, and then the application is asked again", async () => {
  const { host, clock, asked, release } = contents({ answer: { kind: "failed" } });
  const first = host.load(NOTES);
  release[0]!();
  expect([await first, await host.load(NOTES), asked.length]).toEqual(["failed", "failed", 1]);
  await clock.advance(1_999);
  expect(await host.load(NOTES)).toBe("failed");
  await clock.advance(1);
  void host.load(NOTES);
  expect(asked).toHaveLength(2);
});

test("[FCG12] a room that may not store more is not asked for, and its members do not enter", async () => {
  const { host, asked } = contents({ isFull: true });
  expect([await host.load(NOTES), asked]).toEqual(["failed", []]);
});

test("[FCG7] beyond the limit of rooms at once for one application a load fails immediately, and is counted", async () => {
  const { host, clock, asked, release, metrics } = contents({ answer: { kind: "failed" } }, { firstContentsMax: 2 });
  const first = host.load(keyOf("a"));
  void host.load(keyOf("b"));
  expect(await host.load(keyOf("c"))).toBe("failed");
  void host.load(keyOf("d", "other"));
  expect(asked, "rooms of another application are not refused").toEqual([keyOf("a"), keyOf("b"), keyOf("d", "other")]);
  release[0]!();
  expect([await first, await host.load(keyOf("c"))], "a failure counts for two seconds").toEqual(["failed", "failed"]);
  await clock.advance(2_000);
  void host.load(keyOf("c"));
  expect(asked.at(-1)).toBe(keyOf("c"));
  expect((await metrics.limitsReached.get()).values).toMatchObject([{ labels: { limit: "first-contents" }, value: 2 }]);
});

test("[FCG8] beyond the limits of requests at once, in total and for one application, a load waits for its turn", async () => {
  const { host, asked, release } = contents();
  const rooms = [keyOf("a"), keyOf("b"), keyOf("c"), keyOf("d", "other"), keyOf("e", "third")];
  const loads = rooms.map((room) => host.load(room));
  const [a, b, c, d, e] = rooms;
  expect(asked, "acme has two").toEqual([a, b, d]);
  release[2]!();
  await loads[3];
  expect(asked, "three in total").toEqual([a, b, d, e]);
  release[0]!();
  await loads[0];
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toEqual([a, b, d, e, c]);
  for (const one of release) one();
  expect(new Set(await Promise.all(loads))).toEqual(new Set(["content"]));
});

test("[FCG13] a load that has waited ten seconds for its turn fails without a request, and is counted", async () => {
  const { host, clock, asked, release, metrics } = contents();
  const loads = ["a", "b", "c"].map((name) => host.load(keyOf(name)));
  await clock.advance(10_000);
  release[0]!();
  expect(await loads[2]).toBe("failed");
  expect(asked).toEqual([keyOf("a"), keyOf("b")]);
  expect((await metrics.limitsReached.get()).values).toMatchObject([{ labels: { limit: "first-contents" }, value: 1 }]);
});

test("[FCG14] an edit of a room with edits does not wait for the application, even if all requests to it are in use", async () => {
  const { host, asked } = contents();
  for (const name of ["a", "b", "c"]) void host.load(keyOf(name));
  expect(await host.loadUnlessEdited(EDITED)).toBe("content");
  expect(asked).toEqual([keyOf("a"), keyOf("b")]);
  expect(await Promise.race([host.loadUnlessEdited(keyOf("empty")), new Promise((resolve) => setImmediate(() => resolve("waits")))])).toBe(
    "waits",
  );
});

test("[FCG17] beyond the limit of edits that wait for an application one is refused immediately, and is counted", async () => {
  const { host, asked, release, metrics } = contents();
  const waiting = [host.loadUnlessEdited(NOTES), host.loadUnlessEdited(NOTES)];
  await settled();
  expect(await host.loadUnlessEdited(NOTES)).toBe("failed");
  expect(await host.loadUnlessEdited(EDITED), "a room with edits needs no application").toBe("content");
  void host.loadUnlessEdited(keyOf("notes", "other"));
  await settled();
  expect(asked, "edits for another application are not refused").toEqual([NOTES, keyOf("notes", "other")]);
  release[0]!();
  await Promise.all(waiting);
  void host.loadUnlessEdited(keyOf("later"));
  await settled();
  expect(asked.at(-1)).toBe(keyOf("later"));
  expect((await metrics.limitsReached.get()).values).toMatchObject([{ labels: { limit: "first-contents" }, value: 1 }]);
});

test("[FCG18] content that could not be written is logged with its reason, because no other log has it", async () => {
  const warned: object[] = [];
  const failing = async (given: Parameters<typeof contents>[0]) => {
    const { host, release } = contents(given, {}, { ...SILENT_LOG, warn: (facts) => void warned.push(facts) });
    const loaded = host.load(NOTES);
    release[0]?.();
    expect(await loaded).toBe("failed");
  };
  await failing({ outcome: refusedFor("tenant-rate") });
  await failing({ outcome: { kind: "unanswered" } });
  await failing({ isFull: true });
  expect(warned).toMatchObject([
    { room: NOTES, why: "tenant-rate" },
    { room: NOTES, why: "unanswered" },
    { room: NOTES, why: "stored-bytes" },
  ]);
});

test("[FCG22] a tenant uses at most three quarters of its application's limits, so that its rooms leave turns to other tenants", async () => {
  const { host, asked, metrics } = contents(
    {},
    { firstContentsMax: 8, firstContentRequestsMax: 9, firstContentRequestsPerApplicationMax: 4 },
  );
  const one = (name: string) => keyOf(name, "shared-one");
  const loads = ["a", "b", "c", "d", "e", "f", "g"].map((name) => host.load(one(name)));
  expect([asked, await loads[6]]).toEqual([["a", "b", "c"].map(one), "failed"]);
  const other = keyOf("a", "shared-two");
  void host.load(other);
  expect(asked.at(-1)).toBe(other);
  expect((await metrics.limitsReached.get()).values).toMatchObject([{ labels: { limit: "first-contents" }, value: 1 }]);

  const edits = contents({}, { firstContentEditsMax: 4 });
  for (let count = 0; count < 3; count++) void edits.host.loadUnlessEdited(one("a"));
  await settled();
  expect(await edits.host.loadUnlessEdited(one("a"))).toBe("failed");
  void edits.host.loadUnlessEdited(other);
  await settled();
  expect(edits.asked).toEqual([one("a"), other]);
});

test("[FCG23] applications whose last request failed use at most half of all requests", async () => {
  const answers = { hung: { kind: "failed" } as FirstContentAnswer };
  const { host, clock, asked, release } = contents(
    { answerOf: (tenant) => answers[tenant as "hung"] ?? CONTENT },
    {
      firstContentRequestsMax: 4,
      firstContentRequestsPerApplicationMax: 4,
    },
  );
  const load = (tenant: string, names: readonly string[]): void => names.forEach((name) => void host.load(keyOf(name, tenant)));
  load("hung", ["a"]);
  release.shift()!();
  await settled();
  load("hung", ["b", "c", "d"]);
  expect(asked.slice(1), "d waits").toEqual([keyOf("b", "hung"), keyOf("c", "hung")]);
  load("other", ["e", "f", "g"]);
  expect(asked.slice(3), "g waits for e or f").toEqual([keyOf("e", "other"), keyOf("f", "other")]);
  answers.hung = CONTENT;
  release.shift()!();
  await settled();
  await clock.advance(2_000);
  expect(asked.slice(5)).toEqual([keyOf("g", "other")]);
});
