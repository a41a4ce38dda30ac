/** Messages and log records on NATS: binary ones by their tag, JSON ones by their schema. */

import fc from "fast-check";
import type { z } from "zod";

import { assert } from "../../shared/assert.ts";
import { Activity } from "../../shared/bus/activity.ts";
import { AdminCommand, AdminReply, Sanction } from "../../shared/bus/admin-messages.ts";
import { BoardUpdate, BoardWatch, DisplayNames } from "../../shared/bus/board-messages.ts";
import { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { decodeCountsReport, encodeCountsReport } from "../../shared/bus/counts-report.ts";
import {
  decodeFromOwner,
  decodeOwnerReply,
  decodeToOwner,
  encodeFromOwner,
  encodeOwnerReply,
  encodeToOwner,
} from "../../shared/bus/envelope.ts";
import { GatewayReport, RoomListReply, RoomListRequest, RoomReport } from "../../shared/bus/fleet-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { OperationsEvent } from "../../shared/bus/operations-events.ts";
import {
  ClaimReply,
  ClaimRequest,
  GatewayHeartbeat,
  LocateReply,
  LocateRequest,
  PlannedRoom,
  RoomEntry,
  ServerCommand,
  ServerHeartbeat,
  ServiceHeartbeat,
} from "../../shared/bus/placement-messages.ts";
import { decodePresenceDown, decodePresenceUp, encodePresenceDown, encodePresenceUp } from "../../shared/bus/presence-batches.ts";
import {
  decodePresenceFromServer,
  decodePresenceToOwner,
  encodePresenceFromServer,
  encodePresenceToOwner,
} from "../../shared/bus/presence-messages.ts";
import {
  decodeRecord,
  encodeDeletedRecord,
  encodeEditsRecord,
  encodeEpochRecord,
  type LogRecord,
  recordIdOf,
  runsOf,
} from "../../shared/bus/record.ts";
import { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import { type ClientId, type Epoch, type GatewayId, parseRoomKey, type RoomKey, roomOf, tenantOf, type UserId } from "../../shared/ids.ts";
import { encodeDelta } from "../../shared/wire/presence.ts";
import * as arbitrary from "../wire/arbitraries.ts";
import { amongOthers, assertEqual, heldSize } from "./held.ts";

const SEED = 1;
const SEEDS_OF_EACH = 10;
/** A record has each user once. A decoded record also has the user in each of its edits. */
const HELD_PER_BYTE = 2;

type Binary = { readonly decode: (bytes: Uint8Array) => unknown; readonly encode: (message: never) => Uint8Array };

const BINARY: readonly Binary[] = [
  { decode: decodeToOwner, encode: encodeToOwner },
  { decode: (bytes) => ownersOnly(decodeFromOwner(bytes)), encode: encodeFromOwner },
  { decode: decodeOwnerReply, encode: encodeOwnerReply },
  { decode: decodePresenceToOwner, encode: encodePresenceToOwner },
  { decode: decodePresenceFromServer, encode: encodePresenceFromServer },
  { decode: decodePresenceUp, encode: encodePresenceUp },
  { decode: decodePresenceDown, encode: encodePresenceDown },
  { decode: decodeCountsReport, encode: (report) => encodeCountsReport(report, Number.POSITIVE_INFINITY) },
  { decode: decodeRecord, encode: encodeRecord },
];

/** A zod type without its output type, so that each schema has this type. */
const JSON_MESSAGES: readonly z.ZodType[] = [
  Activity,
  AdminCommand,
  AdminReply,
  BoardUpdate,
  BoardWatch,
  CheckpointEntry,
  ClaimReply,
  ClaimRequest,
  DisplayNames,
  GatewayHeartbeat,
  GatewayReport,
  LocateReply,
  LocateRequest,
  OperationsEvent,
  PlannedRoom,
  RoomEntry,
  RoomListReply,
  RoomListRequest,
  RoomReport,
  Sanction,
  ServerCommand,
  ServerHeartbeat,
  ServiceHeartbeat,
  WebhookEvent,
];

export function seeds(): Uint8Array[] {
  const sample = <Value>(values: fc.Arbitrary<Value>): Value[] => fc.sample(values, { seed: SEED, numRuns: SEEDS_OF_EACH });
  const { epoch, seq, seqOrStart, counter, date, clientId, userId, gatewayId, payload, position, tentativeEdit } = arbitrary;
  const author = fc.record({ user: userId, client: clientId });
  const edit = fc
    .record({ author, numbering: arbitrary.numbering, parentSeq: seqOrStart, payload })
    .map(({ numbering, ...rest }) => ({ ...rest, ...numbering }));
  const records = fc.record({ id: fc.string({ maxLength: 40 }), time: date, edits: arbitrary.committedEdits, user: userId });
  return [
    ...sample(fc.record({ gateway: gatewayId, edits: fc.array(edit, { maxLength: 4 }) })).map((message) =>
      encodeToOwner({ kind: "edits", ...message }),
    ),
    ...sample(fc.record({ gateway: gatewayId, request: counter, after: position, through: seqOrStart })).map((message) =>
      encodeToOwner({ kind: "catch-up-request", ...message }),
    ),
    ...sample(fc.record({ gateway: gatewayId, edit: tentativeEdit })).map((message) => encodeToOwner({ kind: "resubmit", ...message })),
    ...sample(tentativeEdit).map((message) => encodeFromOwner({ kind: "tentative", edit: message })),
    ...sample(fc.record({ epoch, head: seqOrStart })).map((message) => encodeFromOwner({ kind: "beacon", ...message })),
    ...sample(fc.record({ epoch, client: clientId, counter, seq, exact: fc.boolean() })).map((message) =>
      encodeOwnerReply({ kind: "acked", ...message }),
    ),
    ...sample(fc.record({ request: counter, epoch, head: seqOrStart, parts: fc.array(payload, { maxLength: 3 }) })).map(
      ({ parts, ...message }) => encodeOwnerReply({ kind: "catch-up", ...message, answer: { kind: "edits", parts } }),
    ),
    ...sample(records).map(({ user, ...record }) =>
      encodeEditsRecord({ ...record, users: new Map(record.edits.edits.map(({ client }) => [client, user] as const)) }),
    ),
    ...sample(fc.record({ id: fc.string({ maxLength: 40 }), time: date, epoch, head: seqOrStart, before: epoch })).map(encodeEpochRecord),
    ...sample(fc.record({ id: fc.string({ maxLength: 40 }), time: date })).map(encodeDeletedRecord),
    ...sample(clientId).flatMap(presenceSeeds),
    ...JSON_SEEDS.map(encodeJson),
  ];
}

function presenceSeeds(client: ClientId): Uint8Array[] {
  const [epoch, gateway] = [3 as Epoch, "gateway" as GatewayId];
  const member = { client, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false };
  const fields = [{ name: "cursor", value: Uint8Array.of(1, 2) }];
  const status = { mode: "flat", participants: 2, presencePerSecond: 30, shed: 0 } as const;
  const delta = encodeDelta({ snapshot: true, present: [{ ...member, number: 1 }], gone: [2], states: [{ number: 1, fields }] });
  const entered = { kind: "members", gateway, epoch, version: 1, snapshot: true, entered: [member], exited: [client] } as const;
  const entries = [{ room: "acme.notes" as RoomKey, message: encodePresenceToOwner({ kind: "sync", gateway }) }];
  return [
    encodePresenceUp({ gateway, sentAtMs: 1_000, entries }),
    encodePresenceDown({ timing: { tickMs: 50, slots: 5, sendAtMs: 20 }, entries }),
    encodePresenceToOwner(entered),
    encodePresenceToOwner({ ...entered, partOf: { part: 1, parts: 2 } }),
    encodePresenceToOwner({ kind: "states", gateway, number: 1, fresh: true, states: [{ client, fields }] }),
    encodePresenceToOwner({ kind: "sync", gateway }),
    encodePresenceFromServer({ kind: "delta", epoch, number: 1, delta }),
    encodePresenceFromServer({ kind: "head", epoch, number: 1, status }),
    encodePresenceFromServer({ kind: "acked", epoch, version: 1, number: 1 }),
    encodePresenceFromServer({ kind: "snapshot", epoch, number: 1, status, delta }),
    encodeCountsReport({ source: "gateway", counts: [{ kind: "room", key: "acme.notes", count: 3 }] }, 1_000),
  ];
}

export function fuzz(input: Uint8Array): boolean {
  const bytes = amongOthers(input);
  const accepted = BINARY.filter(({ decode, encode }) => {
    const message = decode(bytes);
    if (message === undefined) return false;
    assert(heldSize(message, bytes) <= HELD_PER_BYTE * bytes.byteLength, "a message holds no more than its bytes");
    assertEqual(withoutViews(decode(encode(message as never))), withoutViews(message), "a message decodes to what was encoded");
    return true;
  });
  checkRecord(bytes);
  const schemas = bytes[0] === "{".charCodeAt(0) || bytes[0] === "[".charCodeAt(0) ? JSON_MESSAGES : [];
  const read = schemas.filter((schema) => {
    const message = decodeJson(schema, bytes);
    if (message === undefined) return false;
    assertEqual(decodeJson(schema, encodeJson(message)), message, "a JSON message decodes to what was encoded");
    for (const text of textsIn(message)) checkRoomKey(text);
    return true;
  });
  return accepted.length + read.length > 0;
}

/** Checks that the fast readers of a record agree with the complete decoder. */
function checkRecord(bytes: Uint8Array): void {
  const record = decodeRecord(bytes);
  const runs = runsOf(bytes);
  if (record === undefined) return;
  assertEqual(recordIdOf(bytes), record.id, "the id of a record is read alone");
  if (record.kind !== "edits") return;
  assert(runs !== undefined, "the writers of a record are read alone");
  assertEqual(
    runs.runs.flatMap(({ client, counter, count }) => Array.from({ length: count }, (_, index) => `${client} ${counter + index}`)),
    record.edits.edits.map(({ client, counter }) => `${client} ${counter}`),
    "the writers of a record are those of its edits",
  );
}

function checkRoomKey(text: string): void {
  const key = parseRoomKey(text);
  if (key !== undefined) assert(tenantOf(key).length > 0 && roomOf(key).length > 0, "a room key names a tenant and a room");
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** An owner publishes only its announcements; the log publishes its records. */
function ownersOnly(message: ReturnType<typeof decodeFromOwner>): unknown {
  return message?.kind === "epoch" || message?.kind === "edits" ? undefined : message;
}

function encodeRecord(record: LogRecord): Uint8Array {
  if (record.kind === "edits") return encodeEditsRecord(record);
  return record.kind === "epoch" ? encodeEpochRecord(record) : encodeDeletedRecord(record);
}

/** A record repeats its edits as bytes, whose table of clients has no fixed order. */
function withoutViews(message: unknown): unknown {
  return typeof message === "object" && message !== null && "editsBytes" in message ? { ...message, editsBytes: undefined } : message;
}

const JSON_SEEDS: readonly object[] = [
  { kind: "deeds", deeds: [{ user: "ann" as UserId, kind: "comment", times: 2 }] },
  { kind: "kick", tenant: "acme", user: "ann", room: "acme.notes=2f1" },
  { kicked: 1, members: [{ user: "ann", name: "Ann", connection: "c", write: true }] },
  { room: "acme.notes", role: "writer", window: "day", isNew: true },
  { kind: "behind", room: "acme.notes", role: "writer", window: "day" },
  [{ room: "acme.notes", user: "ann", name: "Ann" }],
  { deleted: true, time: 1, wiping: true },
  { kind: "owned", server: "s", epoch: 1 },
  { room: "acme.notes", suspect: "s", end: { id: "s.1", streamSeq: 1, epoch: 1, head: 1 }, above: 1 },
  { gateway: "g" },
  { kind: "room_claimed", room: "acme.notes", epoch: 1, at: 1, by: "s" },
  { owner: "s", replica: "t", reason: "r", generation: 1, at: 1 },
  { rooms: [], matching: 0 },
  { search: "n", limit: 50, after: { participants: 3, room: "acme.notes=c3=a9" } },
  {
    target: { kind: "user", tenant: "acme", user: "ann" },
    room: "acme.notes",
    level: "banned",
    until: 1,
    madeAt: 1,
    lifted: false,
    reason: "",
  },
  { kind: "hand-over", room: "acme.notes", to: "s", generation: 0 },
  { server: "s", rooms: 1, draining: false, time: 1, labels: { host: "", zone: "", pool: "" }, load: { used: 0.5, hot: [] } },
  { service: "d", url: "http://127.0.0.1:1", time: 1 },
  { type: "document.changed", tenant: "acme", room: "notes", at: 1, epoch: 1, seq: 1, edits: 1 },
];
