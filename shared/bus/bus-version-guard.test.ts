/**
 * No form on the bus or in stores changes without a decision about its version. The forms are the schemas of all JSON
 * messages and entries, one sample of each binary message and record, and the subjects.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";

import { encodeSegment } from "../../document-service/history/segments.ts";
import { hexOf } from "../../test/wire/vectors.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq, ServerId, TenantId, UnixMillis, UserId } from "../ids.ts";
import { type Counter, NACK_REASONS, RESYNC_REASONS, ROOM_MODES, SAVING_STATES, type TentativeEdit } from "../wire/frames.ts";
import { BUS_VERSION, BUS_VERSION_OLDEST } from "./bus-version.ts";
import { COUNT_KINDS, encodeCountsReport } from "./counts-report.ts";
import { encodeFromOwner, encodeOwnerReply, encodeToOwner, type SubmittedEdit } from "./envelope.ts";
import { encodePresenceDown, encodePresenceUp } from "./presence-batches.ts";
import { encodePresenceFromServer, encodePresenceToOwner } from "./presence-messages.ts";
import { encodeEditsRecord, encodeEpochRecord, Tag } from "./record.ts";
import { subjectsOf } from "./subjects.ts";

/** One entry per version that has this guard, the newest last. The entry of a released version never changes. */
const FORMS_BY_VERSION: Readonly<Record<number, string>> = {
  2: "a41f4cdcacebb69b98872b21800e674a",
};

const ADVICE = `A form on the bus or in stores has changed: a schema, a binary message or record, or a subject. Which is it?
  - The previous release reads it all the same, for example a new optional field or a message that it ignores, and this
    version is not released yet: put the new hash into FORMS_BY_VERSION.
  - The same, and this version is released: raise BUS_VERSION in bus-version.ts, and add a line to FORMS_BY_VERSION and
    a row to the table in docs/operations/upgrade.md.
  - This release reads a new form and writes the former one: raise BUS_VERSION in the same way. A later release writes the
    new form, and raises BUS_VERSION_OLDEST to the version that reads it.
  - This release writes a form that the previous one cannot read: use two releases, as in the case before.`;

const files = readdirSync("shared/bus").filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
/** Files of schemas outside of this folder: entries in KV and objects. */
const STORED = [
  "shared/io/kv-leases.ts",
  "document-service/history/history.ts",
  "leaderboard/boards/checkpoint.ts",
  "leaderboard/io/kv-checkpoints.ts",
  "leaderboard/io/kv-archive.ts",
];

const id = { client: "client-1" as ClientId, user: "ada" as UserId, gateway: "gw-1" as GatewayId, room: "acme.notes" as RoomKey };
const numbers = { epoch: 7 as Epoch, seq: 300 as Seq, counter: 5 as Counter, time: 1_700_000_000_000 as UnixMillis };
const payload = Uint8Array.of(1, 2, 3);
const client = { client: id.client, counter: numbers.counter };
const edit: SubmittedEdit = {
  author: { user: id.user, client: id.client },
  counter: numbers.counter,
  ackedThrough: 4 as Counter,
  parentSeq: 299 as Seq,
  payload,
};
const record = { id: "rs-1.9", time: numbers.time };

test("[BUSV6] messages, records and stored entries change only with a decision about the bus version", async () => {
  expect(FORMS_BY_VERSION[BUS_VERSION], ADVICE).toBe(hashOf([await schemas(), samples(), subjects()]));
  expect(Math.max(...Object.keys(FORMS_BY_VERSION).map(Number)), "the newest line is this version's").toBe(BUS_VERSION);
});

test("[BUSV7] the guide for upgrades names this bus version and the oldest one that works with it", () => {
  const rows = [...readFileSync("docs/operations/upgrade.md", "utf8").matchAll(/^\| (\d+) \| (\d+) \| .+ \|$/gm)];
  expect(BUS_VERSION_OLDEST).toBeLessThanOrEqual(BUS_VERSION);
  expect(rows.map(([, version, oldest]) => [Number(version), Number(oldest)]).at(-1)).toEqual([BUS_VERSION, BUS_VERSION_OLDEST]);
});

function hashOf(forms: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(forms)))
    .digest("hex")
    .slice(0, 32);
}

/** Every schema that one of the files exports, as JSON Schema. Transformed values are described as they are sent. */
async function schemas(): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const file of [...files.map((name) => `shared/bus/${name}`), ...STORED]) {
    const exported = Object.entries((await import(/* @vite-ignore */ `../../${file}`)) as Record<string, unknown>);
    for (const [name, schema] of exported)
      if (schema instanceof z.ZodType) found[`${file} ${name}`] = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  }
  for (const file of STORED)
    expect(
      Object.keys(found).some((name) => name.startsWith(file)),
      `${file} exports its schema`,
    ).toBe(true);
  return found;
}

/** The bytes of one message of each kind, and of a segment of the history. Every tag needs one. */
function samples(): string[] {
  const messages = [
    ...ofEdits(),
    ...ofPresence(),
    encodeCountsReport({ source: "gw-1", counts: [{ kind: "ip", key: "10.0.0.1", count: 3 }] }, 1e6),
  ];
  expect(new Set(messages.map(([tag]) => tag)), "a sample for each tag").toEqual(new Set(Object.values(Tag)));
  const segment = encodeSegment(id.room, [{ room: id.room, streamSeq: 8, time: numbers.time, bytes: payload }]);
  return [...messages, segment].map(hexOf);
}

function ofEdits(): Uint8Array[] {
  const { epoch, seq } = numbers;
  const tentative: TentativeEdit = { ...edit, ...client, epoch, user: id.user, mac: Uint8Array.of(9, 9) };
  const committed = { epoch, firstSeq: seq, edits: [{ ...client, parentSeq: edit.parentSeq, payload }] };
  return [
    encodeEpochRecord({ ...record, epoch, head: seq }),
    encodeEpochRecord({ ...record, epoch, head: seq, before: 6 as Epoch }),
    encodeEditsRecord({ ...record, edits: committed, users: new Map([[id.client, id.user]]) }),
    encodeFromOwner({ ...record, kind: "deleted" }),
    encodeFromOwner({ kind: "beacon", epoch, head: seq }),
    encodeFromOwner({ kind: "tentative", edit: tentative }),
    encodeFromOwner({ kind: "saving", epoch, state: "saving" }),
    encodeToOwner({ kind: "edits", gateway: id.gateway, edits: [edit] }),
    encodeToOwner({ kind: "catch-up-request", gateway: id.gateway, request: 2, after: { epoch, seq }, through: 301 as Seq }),
    encodeToOwner({ kind: "resubmit", gateway: id.gateway, edit: tentative }),
    encodeToOwner({ kind: "first-edit", gateway: id.gateway, edit }),
    encodeToOwner({ kind: "check-ownership" }),
    encodeOwnerReply({ kind: "catch-up", request: 2, epoch, head: seq, answer: { kind: "edits", parts: [payload] } }),
    encodeOwnerReply({ kind: "catch-up", request: 2, epoch, head: seq, answer: { kind: "resync", reason: "too-old" } }),
    encodeOwnerReply({ kind: "acked", epoch, ...client, seq, exact: true }),
    encodeOwnerReply({ kind: "refused", epoch, ...client, reason: "gap", expected: 4 as Counter, retryAfterMs: 50 }),
    encodeOwnerReply({ kind: "not-first", epoch, ...client }),
    encodeOwnerReply({ kind: "key-reused", epoch, ...client }),
  ];
}

function ofPresence(): Uint8Array[] {
  const { epoch } = numbers;
  const { gateway, client: who, user, room } = id;
  const member = { client: who, user, name: "Ada", canWrite: true, spectator: false };
  const members = { kind: "members", gateway, epoch, version: 3, snapshot: true, entered: [member], exited: [who] } as const;
  const status = { mode: "flat", participants: 3, presencePerSecond: 20, shed: 1 } as const;
  const entries = [{ room, message: payload }];
  return [
    encodePresenceToOwner(members),
    encodePresenceToOwner({ ...members, partOf: { part: 1, parts: 2 } }),
    encodePresenceToOwner({
      kind: "states",
      gateway,
      number: 4,
      fresh: true,
      states: [{ client: who, fields: [{ name: "name", value: payload }] }],
    }),
    encodePresenceToOwner({ kind: "sync", gateway }),
    encodePresenceFromServer({ kind: "delta", epoch, number: 5, delta: payload }),
    encodePresenceFromServer({ kind: "head", epoch, number: 5, status }),
    encodePresenceFromServer({ kind: "acked", epoch, version: 3, number: 5 }),
    encodePresenceFromServer({ kind: "missed", epoch }),
    encodePresenceFromServer({ kind: "snapshot", epoch, number: 5, status, delta: payload }),
    encodePresenceFromServer({ kind: "not-owner" }),
    encodePresenceUp({ gateway, sentAtMs: 1_000, entries }),
    encodePresenceDown({ timing: { tickMs: 50, slots: 5, sendAtMs: 20 }, entries }),
  ];
}

/** Names of subjects, streams and buckets, and the numbers of names in binary messages. */
function subjects(): unknown {
  const { gateway, room } = id;
  const all = subjectsOf("env");
  const server = "rs-1" as ServerId;
  const built = {
    toOwner: all.toOwner(room),
    editsOut: all.editsOut(room),
    toGateway: all.toGateway(gateway, room),
    allToGateway: all.allToGateway(gateway),
    presenceToServer: all.presenceToServer(server),
    presenceToGateway: all.presenceToGateway(gateway, server),
    allPresenceToGateway: all.allPresenceToGateway(gateway),
    noPresenceOwner: all.noPresenceOwner(gateway, room),
    allNoPresenceOwner: all.allNoPresenceOwner(gateway),
    log: all.log(3, room),
    logOfPartition: all.logOfPartition(3),
    logOfTenant: all.logOfTenant(3, "acme" as TenantId),
    activity: all.activity(3, room),
    activityOfPartition: all.activityOfPartition(3),
    appended: all.appended(server, "token"),
    allAppended: all.allAppended(server),
    claim: all.claim(server),
    order: all.order(server),
    boards: all.boards(room),
    operations: all.operations("kind"),
    webhook: all.webhook("acme" as TenantId),
    logStream: all.logStream(3),
    activityStream: all.activityStream(3),
    boardArchiveBucket: all.boardArchiveBucket("hour"),
  } satisfies { [Name in keyof typeof all as (typeof all)[Name] extends string ? never : Name]: string };
  return [{ ...all, ...built }, Tag, COUNT_KINDS, NACK_REASONS, RESYNC_REASONS, ROOM_MODES, SAVING_STATES];
}

/** The order of declarations is not part of a form. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(sorted);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, entry]) => [name, sorted(entry)]),
  );
}
