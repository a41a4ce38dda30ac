/**
 * What an application has to know. A refusal ends the trying: only the application can do something about it.
 * A problem is told while the client goes on. `kind` is to decide by, `message` is for people who develop.
 */

import type { Seq } from "../../shared/ids.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { JoinRefusal } from "../../shared/wire/frames.ts";

export type Refusal =
  /** The server closed the connection with a code that means "never again like this"; see the close codes. */
  | { readonly kind: "connection-refused"; readonly code: number; readonly message: string }
  /** The token is a text and has expired: give a function that fetches a new one. */
  | { readonly kind: "token-expired"; readonly message: string }
  /** `deleted`: for good. What was kept of the room on this device is removed; take what the application holds of it away too. */
  | { readonly kind: "room-refused"; readonly reason: JoinRefusal | "rights-revoked"; readonly message: string };

export type Problem =
  /** This edit stays out of the room, and is not saved. What comes after it goes on. */
  | { readonly kind: "edit-too-large"; readonly payload: Uint8Array; readonly bytesMax: number; readonly message: string }
  /** Edits were made in a room that may only be read: they are kept here, unsaved. */
  | { readonly kind: "read-only"; readonly message: string }
  /** So much waits to be sent that no more is taken. */
  | { readonly kind: "outbox-full"; readonly payload: Uint8Array; readonly message: string }
  /** More was set to be shown of this client than the server takes: nothing of that call was taken. */
  | { readonly kind: "presence-too-large"; readonly bytesMax: number; readonly message: string }
  /** Nothing is kept on this device, now or at all: it goes on as without a store. */
  | { readonly kind: "storage-failed"; readonly message: string; readonly cause: unknown }
  | { readonly kind: "token-failed"; readonly message: string; readonly cause: unknown }
  /** The server is reached and does not let this client into the room, for now. It is asked again; told once for each reason. */
  | { readonly kind: "room-unavailable"; readonly reason: JoinRefusal; readonly retryInMs: number; readonly message: string }
  | { readonly kind: "snapshot-unavailable"; readonly message: string }
  /** A committed edit of somebody could not be applied to the document; it was left out. */
  | { readonly kind: "edit-unreadable"; readonly seq: Seq; readonly message: string; readonly cause: unknown };

/** As the WebSocket standard numbers it. */
const POLICY_VIOLATION = 1008;

/** `said`: what the server's ERROR frame said, if one came. */
export function connectionRefused(code: number, said: string | undefined): Refusal {
  const meaning = said ?? Object.values(CLOSE).find((close) => close.code === code)?.meaning ?? "the server closed the connection for good";
  return { kind: "connection-refused", code, message: `${meaning} (close code ${code})` };
}

export function socketForbidden(): Refusal {
  return {
    kind: "connection-refused",
    code: POLICY_VIOLATION,
    message: "a page over https may open no ws: socket: give `url` as wss: or https:",
  };
}

export function tokenExpired(): Refusal {
  return {
    kind: "token-expired",
    message: "the token has expired: give `token` as a function that fetches a new one, or connect again with another",
  };
}

export function rightsRevoked(): Refusal {
  return { kind: "room-refused", reason: "rights-revoked", message: "the right to this room was taken away" };
}

export function roomDeleted(): Refusal {
  return {
    kind: "room-refused",
    reason: "deleted",
    message: "the room was deleted for good, and with it what was kept of it on this device",
  };
}

/** `said`: by the server. */
export function roomUnavailable(reason: JoinRefusal, said: string, retryInMs: number): Problem {
  return { kind: "room-unavailable", reason, retryInMs, message: `the room cannot be joined now, it is tried again: ${said}` };
}

export function snapshotUnavailable(why: string): Problem {
  return { kind: "snapshot-unavailable", message: `the room's snapshot cannot be had now, it is tried again: ${why}` };
}

export function readOnly(): Problem {
  return { kind: "read-only", message: "edits were made with a token that only allows reading: they are kept here and not saved" };
}

export function tooLarge(payload: Uint8Array, bytesMax: number): Problem {
  return {
    kind: "edit-too-large",
    payload,
    bytesMax,
    message: `an edit has ${payload.byteLength} bytes and the server takes ${bytesMax}: make it in smaller pieces`,
  };
}

export function outboxFull(payload: Uint8Array): Problem {
  return { kind: "outbox-full", payload, message: "too much waits to be sent: the edit was not taken" };
}

export function storageFailed(cause: unknown): Problem {
  return {
    kind: "storage-failed",
    cause,
    message: `edits cannot be kept on this device, and are in memory only until they are acknowledged: ${cause instanceof Error ? cause.message : String(cause)}`,
  };
}

export function presenceTooLarge(bytesMax: number): Problem {
  return {
    kind: "presence-too-large",
    bytesMax,
    message: `what this client shows of itself would have more than ${bytesMax} bytes, or too many fields, and was not taken: show less, and put what should last into the document`,
  };
}
