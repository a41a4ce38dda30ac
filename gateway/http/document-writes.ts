/**
 * Edits over HTTP: authorizes them, requests the edit that the document service makes of the body, and turns each
 * outcome into an answer.
 */

import type { Counter } from "../../shared/wire/frames.ts";
import { type ClientId, roomKey, type RoomId, type RoomKey, type Seq } from "../../shared/ids.ts";
import type { WriteOutcome, WriteRefusal } from "../rooms/writes-host.ts";
import type { Identity } from "../sessions/identity.ts";
import { errorAnswer, type HttpAnswer, jsonAnswer, retryAfter } from "./answers.ts";
import { admittedRoom, refuseRestricted } from "./authorize.ts";
import { roomPath, type ServiceRequest } from "./document-requests.ts";
import { refuseKey, type WriteScope } from "./idempotency.ts";
import { forwardedHeader, queryWith, type RouteRequest } from "./requests.ts";

/** For each kind of write: the route of the document service that makes the edit, its parameters, and the status of success. */
export type WritePlan = {
  readonly scope: WriteScope;
  readonly place: string;
  readonly parameters: readonly string[];
  readonly mustBeFirst: boolean;
  readonly status: number;
};
/** `why`: names the limit, and what to do. */
export function storageFull(why: string): HttpAnswer {
  return errorAnswer(507, "storage-full", `nothing was written: ${why}`);
}

export const EDIT: WritePlan = { scope: "edit", place: "edit", parameters: ["type"], mustBeFirst: false, status: 200 };
export const CREATE: WritePlan = { scope: "create", place: "edit", parameters: ["type"], mustBeFirst: true, status: 201 };
export const RESTORE: WritePlan = { scope: "restore", place: "revert", parameters: ["seq", "time"], mustBeFirst: false, status: 200 };

const BINARY = "application/octet-stream";
const NOT_BINARY = errorAnswer(415, "bad-content-type", `an edit is a Yjs update: send it as ${BINARY}`);
const NOT_WRITING = errorAnswer(
  403,
  "not-allowed",
  "the token does not give the right to write: request a token whose claim `rights` contains `write`",
);
export const TOO_MANY_WRITES = errorAnswer(
  429,
  "rate-limited",
  "too many edits over HTTP: send several changes as one update, or connect as a client",
  retryAfter(1),
);
const UNCONFIRMED = errorAnswer(
  504,
  "unconfirmed",
  "the log has not confirmed the edit in time and may still do so: send the same request with the same Idempotency-Key to find out",
);
const REFUSALS: Readonly<Record<WriteRefusal, { status: number; error: string; message: string }>> = {
  "not-first": {
    status: 409,
    error: "document-exists",
    message: "the room already has edits, so nothing was written: read the document, or send edits",
  },
  "key-reused": {
    status: 422,
    error: "key-reused",
    message:
      "another request was sent with this Idempotency-Key, so nothing was written: repeat a request unchanged, or use a new key for another one",
  },
  "too-large": { status: 413, error: "too-large", message: "the record is too large for the room server: split the edit" },
  "tenant-rate": {
    status: 429,
    error: "rate-limited",
    message: "the user or the tenant is at its limit of edits per second: send this edit again later",
  },
  "tenant-rooms": {
    status: 429,
    error: "rate-limited",
    message: "the tenant is at its limit of open rooms: try again once others are closed",
  },
  "too-many-writes": { status: 503, error: "busy", message: "too many edits wait for the log at this gateway: try again" },
  "key-waiting": { status: 503, error: "busy", message: "another request with this Idempotency-Key waits for the log: try again" },
  "write-backpressure": { status: 503, error: "busy", message: "too many edits of the room wait for the log: try again" },
  "log-stalled": { status: 503, error: "log-stalled", message: "the log does not answer, so nothing was written: try again" },
  "gap": { status: 503, error: "busy", message: "the room's owner has changed: try again" },
  "forged": { status: 503, error: "busy", message: "the room's owner has changed: try again" },
  "deleted": { status: 410, error: "deleted", message: "the room is deleted permanently: use a new room id" },
  "read-only": { status: 403, error: "not-allowed", message: "the user may only read in this room for a time" },
};

type DocumentWriter = { readonly identity: Identity; readonly roomId: RoomId; readonly room: RoomKey };

export function writerOf(request: RouteRequest, identity: Identity): DocumentWriter | HttpAnswer {
  const roomId = admittedRoom(request, identity);
  if (typeof roomId !== "string") return roomId;
  if (!identity.rights.write) return NOT_WRITING;
  const refusal = refuseRestricted(identity, roomId, "the user may not write in this room for a time") ?? refuseKey(request);
  return refusal ?? { identity, roomId, room: roomKey(identity.tenant, roomId) };
}

export function refuseContentType({ header }: Pick<RouteRequest, "header">): HttpAnswer | undefined {
  return header("content-type").split(";")[0]!.trim().toLowerCase() === BINARY ? undefined : NOT_BINARY;
}

/** The request for the document service to make one edit of the body. */
export function makingRequest(
  { identity, roomId }: DocumentWriter,
  { place, parameters }: WritePlan,
  request: RouteRequest,
): ServiceRequest {
  return {
    path: `${roomPath(roomId)}/${place}${queryWith(request.query, parameters)}`,
    tenant: identity.tenant,
    method: "POST",
    headers: { "content-type": forwardedHeader(request, "content-type") },
    body: request.body,
  };
}

/** The result of the document service: an edit to write, or the answer to the client. */
export function madeEdit(made: Uint8Array, editBytesMax: number): Uint8Array | HttpAnswer {
  return made.byteLength <= editBytesMax
    ? made
    : errorAnswer(
        413,
        "too-large",
        `as an edit the body has ${made.byteLength} bytes, and the limit is ${editBytesMax}: write the first part, then the rest as edits`,
      );
}

/** A client id that exists for this one write. The edit is its first and only one. */
export function editOf(
  { identity }: DocumentWriter,
  { client, counter }: { readonly client: ClientId; readonly counter: Counter },
  payload: Uint8Array,
  { mustBeFirst }: WritePlan,
) {
  return {
    author: { user: identity.user, client },
    counter,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    payload,
    ...(mustBeFirst ? { mustBeFirst: true as const } : {}),
  };
}

export function writeAnswer(outcome: WriteOutcome, status: number): HttpAnswer {
  switch (outcome.kind) {
    case "committed":
      return jsonAnswer(
        status,
        { epoch: outcome.epoch, seq: outcome.seq },
        { "x-coroom-epoch": String(outcome.epoch), "x-coroom-seq": String(outcome.seq) },
      );
    case "refused": {
      const { status: refused, error, message } = REFUSALS[outcome.reason];
      const mayBeRepeated = refused === 429 || refused === 503; // A room server gives a time with each refusal.
      const retry = mayBeRepeated && outcome.retryAfterMs > 0 ? retryAfter(Math.ceil(outcome.retryAfterMs / 1000)) : {};
      return errorAnswer(refused, error, message, retry);
    }
    case "unanswered":
      return UNCONFIRMED;
  }
}
