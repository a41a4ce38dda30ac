import { expect, test } from "vitest";

import type { Millis, RoomId, RoomKey, TenantId, UserId } from "../../shared/ids.ts";
import type { Identity } from "../sessions/identity.ts";
import {
  deletionRequest,
  documentRead,
  forwardedAnswer,
  historyRequest,
  isAnswerCurrent,
  isAuthorizedUrl,
  NO_DOCUMENT_SERVICE,
  roomListRequest,
} from "./document-requests.ts";
import type { WriteRefusal } from "../rooms/writes-host.ts";
import { CREATE, madeEdit, makingRequest, refuseContentType, writeAnswer, writerOf } from "./document-writes.ts";
import type { RouteRequest } from "./requests.ts";

const RIGHTS = { read: true, write: true, admin: false, award: false, boards: false };
const ann: Identity = {
  tenant: "acme" as TenantId,
  user: "ann" as UserId,
  name: "Ann",
  rooms: ["notes"],
  rights: RIGHTS,
  expiresAt: 1e9 as Millis,
};
const request = (query = "", headers: Record<string, string> = {}, room = "notes"): RouteRequest => ({
  path: "",
  parameters: [room],
  query: new URLSearchParams(query),
  header: (name) => headers[name] ?? "",
  address: undefined,
  body: new Uint8Array([1]),
  signal: new AbortController().signal,
});

test("[DRQ1] a read asks the service for the room's part, with the known parameters and headers only", () => {
  const headers = { "if-none-match": '"1-2"', "accept-encoding": "br, gzip;q=0.5" };
  expect(documentRead(request("type=text&token=secret", headers), ann, "snapshot")).toEqual({
    path: "/v1/rooms/notes/snapshot?type=text",
    tenant: "acme",
    headers: { "if-none-match": '"1-2"', "x-coroom-accept": "gzip" },
    room: "notes",
  });
});

test.each([
  ["gzip;q=0", false],
  ["gzip;q=0, *", false],
  ["*, gzip;q=0", false],
  ["br, *;q=0.1", true],
  ["*;q=0, gzip", true],
  ["br", false],
  ["", false],
])("[DRQ9] an answer to a client with Accept-Encoding: %s may be compressed with gzip: %s", (accepted, isGzip) => {
  const asked = documentRead(request("", { "accept-encoding": accepted }), ann, "text");
  expect("path" in asked && asked.headers).toEqual(isGzip ? { "x-coroom-accept": "gzip" } : {});
});

test("[DRQ2] only users who may write can keep versions, and not while they are restricted", () => {
  const keep = { place: "versions", needs: "write", method: "POST" } as const;
  expect(historyRequest(request(), ann, keep)).toMatchObject({ method: "POST", body: new Uint8Array([1]) });
  expect(historyRequest(request(), { ...ann, rights: { ...RIGHTS, write: false } }, keep)).toMatchObject({ status: 403 });
  expect(historyRequest(request(), { ...ann, restrictionIn: () => ({ level: "read-only", reason: "" }) }, keep)).toMatchObject({
    status: 403,
  });
});

test("[DRQ3] a room is deleted by administrators of the room and by operators, who name the tenant", () => {
  const admin = { ...ann, rights: { ...RIGHTS, admin: true } };
  expect(deletionRequest(request(), admin)).toMatchObject({ path: "/v1/rooms/notes", tenant: "acme", user: "ann" });
  expect(deletionRequest(request(), ann)).toMatchObject({ status: 403 });
  expect(deletionRequest(request("", {}, "other"), admin)).toMatchObject({ status: 403 });
  expect(deletionRequest(request("tenant=acme"), admin)).toMatchObject({ tenant: "acme" });
  expect(deletionRequest(request("tenant=globex"), admin)).toMatchObject({ status: 403 });
  expect(deletionRequest(request("tenant=globex"), undefined)).toMatchObject({ tenant: "globex", user: "" });
  expect(deletionRequest(request("tenant=no%20tenant"), undefined)).toMatchObject({ status: 404 });
});

test("[DRQ4] an answer is current while its epoch and seq are those of the room", () => {
  const answer = { status: 200, headers: { "x-coroom-seq": "7" } };
  expect(isAnswerCurrent(answer, { epoch: 1, seq: 7 }, { epoch: 1, seq: 7 })).toBe(true);
  expect(isAnswerCurrent(answer, { epoch: 1, seq: 7 }, { epoch: 1, seq: 8 })).toBe(false);
  expect(isAnswerCurrent(answer, { epoch: 1, seq: 7 }, { epoch: 2, seq: 7 })).toBe(false);
  expect(isAnswerCurrent(answer, { epoch: 1, seq: 6 }, { epoch: 1, seq: 6 })).toBe(false);
  expect(isAnswerCurrent(answer, undefined, undefined)).toBe(false);
});

test("[DRQ5] only known headers of a service's answer reach the client, and a URL that changes its path is refused", () => {
  const given = { "etag": "e", "x-coroom-internal": "secret", "x-coroom-encoding": "gzip", "content-length": "12" };
  expect(forwardedAnswer(200, given)).toEqual({
    status: 200,
    headers: { "etag": "e", "content-encoding": "gzip" },
    hasBody: true,
    bodyBytes: 12,
  });
  expect(forwardedAnswer(304, given)).toMatchObject({ hasBody: false });
  const path = "/v1/rooms/%2E%2E/document?type=text";
  expect(isAuthorizedUrl(new URL(path, "http://documents"), path)).toBe(false);
  expect(isAuthorizedUrl(new URL("/v1/rooms/a/document?type=text", "http://documents"), "/v1/rooms/a/document?type=text")).toBe(true);
});

test("[DRQ6] a write needs the right to write, a Yjs update, and an edit within the limit", () => {
  expect(writerOf(request(), ann)).toMatchObject({ roomId: "notes", room: "acme.notes" });
  expect(writerOf(request(), { ...ann, rights: { ...RIGHTS, write: false } })).toMatchObject({ status: 403 });
  expect(writerOf(request("", { "idempotency-key": "x".repeat(256) }), ann)).toMatchObject({ status: 400 });
  expect(refuseContentType(request("", { "content-type": "text/plain" }))).toMatchObject({ status: 415 });
  expect(refuseContentType(request("", { "content-type": "Application/Octet-Stream; v=1" }))).toBeUndefined();
  expect(madeEdit(new Uint8Array(5), 4)).toMatchObject({ status: 413 });
});

test("[DRQ10] characters that HTTP does not allow in a header are replaced before it is passed on", () => {
  const headers = { "if-none-match": '"€"', "content-type": "text/plain; a=\u{1f600}é" };
  const read = documentRead(request("", headers), ann, "text");
  expect("path" in read && read.headers).toEqual({ "if-none-match": '"?"' });
  const writer = { identity: ann, roomId: "notes" as RoomId, room: "acme.notes" as RoomKey };
  expect(makingRequest(writer, CREATE, request("", headers)).headers).toEqual({ "content-type": "text/plain; a=??é" });
});

test("[DRQ7] a refused write carries a retry time, unless the write can never succeed", () => {
  const refused = (reason: WriteRefusal) => writeAnswer({ kind: "refused", reason, retryAfterMs: 1_500 }, 200);
  expect(refused("log-stalled")).toMatchObject({ status: 503, headers: { "retry-after": "2" } });
  expect(refused("key-waiting")).toMatchObject({ status: 503, headers: { "retry-after": "2" } });
  expect(refused("tenant-rate")).toMatchObject({ status: 429, headers: { "retry-after": "2" } });
  const never: WriteRefusal[] = ["not-first", "deleted", "read-only", "too-large", "key-reused"];
  expect(never.map((reason) => refused(reason).status)).toEqual([409, 410, 403, 413, 422]);
  for (const reason of never) expect(refused(reason).headers, reason).not.toHaveProperty("retry-after");
  expect(writeAnswer({ kind: "unanswered" }, 200).status).toBe(504);
  expect(NO_DOCUMENT_SERVICE).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  expect(NO_DOCUMENT_SERVICE.body, "without NATS a gateway knows no document service").toContain("check the NATS servers");
});

test("[DRQ8] a list of rooms is for operators, who name the tenant, and for administrators of all rooms", () => {
  const admin = { ...ann, rooms: ["*"], rights: { ...RIGHTS, admin: true } };
  expect(roomListRequest(request("limit=5&after=a%26b&token=secret"), admin)).toEqual({
    path: "/v1/rooms?limit=5&after=a%26b",
    tenant: "acme",
    user: "ann",
  });
  expect(roomListRequest(request(), { ...admin, rooms: ["notes"] })).toMatchObject({ status: 403 });
  expect(roomListRequest(request("tenant=globex"), admin)).toMatchObject({ status: 403 });
  expect(roomListRequest(request("tenant=globex"), undefined)).toEqual({ path: "/v1/rooms", tenant: "globex", user: "" });
});
