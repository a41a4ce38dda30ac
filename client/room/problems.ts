/**
 * Refusals and problems that an application receives. After a refusal the client tries nothing until the application
 * acts. After a problem the client continues. Decide by `kind`; `message` is for developers.
 */

import type { Seq } from "../../shared/ids.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { JoinRefusal } from "../../shared/wire/frames.ts";

/** Why the server refuses this client. Nothing is tried until `connect()` is called. Decide by `kind`; `message` is for developers. */
export type Refusal =
  /** The server closed the connection permanently. `code`: the WebSocket close code. */
  | { readonly kind: "connection-refused"; readonly code: number; readonly message: string }
  /** The token was given as a text and has expired. Give a function that fetches a new one. */
  | { readonly kind: "token-expired"; readonly message: string }
  /**
   * The server does not admit this client. `deleted`: the room was deleted permanently and removed from the local
   * store; remove the application's own copies too.
   */
  | { readonly kind: "room-refused"; readonly reason: JoinRefusal | "rights-revoked"; readonly message: string };

/** What the client reports and continues after. Decide by `kind`; `message` is for developers. Sizes are in bytes. */
export type Problem =
  /** This edit is not sent and not saved. Later edits are. */
  | { readonly kind: "edit-too-large"; readonly payload: Uint8Array; readonly bytesMax: number; readonly message: string }
  /** Edits were made in a room that this client may only read. They stay on this device, unsaved. */
  | { readonly kind: "read-only"; readonly message: string }
  /** Too many edits wait to be sent. This edit was not accepted. */
  | { readonly kind: "outbox-full"; readonly payload: Uint8Array; readonly message: string }
  /** The presence was larger than the server accepts. Nothing of that call was taken. */
  | { readonly kind: "presence-too-large"; readonly bytesMax: number; readonly message: string }
  /** Nothing can be stored on this device. The client continues without a store. */
  | { readonly kind: "storage-failed"; readonly message: string; readonly cause: unknown }
  /** The token function failed, or returned no JWT. It is called again for the next attempt. */
  | { readonly kind: "token-failed"; readonly message: string; readonly cause: unknown }
  /**
   * The server does not admit this client to the room for now. The client tries again after `retryInMs`. Reported once
   * per reason.
   */
  | { readonly kind: "room-unavailable"; readonly reason: JoinRefusal; readonly retryInMs: number; readonly message: string }
  /** The room's snapshot could not be downloaded. The client tries again. */
  | { readonly kind: "snapshot-unavailable"; readonly message: string }
  /** A committed edit could not be applied to the document and was left out. */
  | { readonly kind: "edit-unreadable"; readonly seq: Seq; readonly message: string; readonly cause: unknown }
  /**
   * The document no longer follows the room, and changes of it are no longer saved. Create a new document and provider;
   * they start from the room's content.
   */
  | { readonly kind: "document-stuck"; readonly message: string; readonly cause: unknown };

/** Close code of the WebSocket standard. */
const POLICY_VIOLATION = 1008;

/** Whether the server rejected the token, or the token does not open the room. */
export function isAuthenticationFailure(refusal: Refusal): boolean {
  switch (refusal.kind) {
    case "connection-refused":
      return refusal.code === CLOSE.unauthorized.code;
    case "token-expired":
      return true;
    case "room-refused":
      return refusal.reason === "not-allowed" || refusal.reason === "rights-revoked";
  }
}

/** `why`: the text of the server's ERROR frame or of its close, if one arrived. */
export function connectionRefused(code: number, why = "the server closed the connection permanently"): Refusal {
  return { kind: "connection-refused", code, message: `${why} (close code ${code})` };
}

export function socketForbidden(): Refusal {
  return {
    kind: "connection-refused",
    code: POLICY_VIOLATION,
    message: "cannot open a ws: socket from a page over https. Set `url` to wss: or https:.",
  };
}

export function tokenExpired(): Refusal {
  return {
    kind: "token-expired",
    message: "the token has expired. Pass `token` as a function that fetches a new one, or connect again with another token.",
  };
}

export function rightsRevoked(): Refusal {
  return {
    kind: "room-refused",
    reason: "rights-revoked",
    message:
      "an administrator removed this client from the room, or its token no longer grants access. Reload the page or call connect() to try again.",
  };
}

export function roomDeleted(): Refusal {
  return {
    kind: "room-refused",
    reason: "deleted",
    message: "the room was deleted permanently, and its data on this device was removed. Remove the application's own copies too.",
  };
}

export function documentStuck(cause: unknown): Problem {
  return {
    kind: "document-stuck",
    cause,
    message: `the document no longer follows the room, and its changes are not saved: ${cause instanceof Error ? cause.message : String(cause)}. Create a new Y.Doc and provider.`,
  };
}

/** `serverText`: the reason as the server gave it. */
export function roomUnavailable(reason: JoinRefusal, serverText: string, retryInMs: number): Problem {
  return { kind: "room-unavailable", reason, retryInMs, message: `cannot join the room now, will retry: ${serverText}` };
}

export function snapshotUnavailable(why: string): Problem {
  return { kind: "snapshot-unavailable", message: `cannot fetch the room's snapshot now, will retry: ${why}` };
}

export function readOnly(): Problem {
  return {
    kind: "read-only",
    message:
      "edits were made where this client may only read: they stay on this device and are not saved. The token does not allow writing, the user may only read for a time, or the room or its tenant stores as much as it may. The edits are sent once writing is allowed.",
  };
}

export function tooLarge(payload: Uint8Array, bytesMax: number): Problem {
  return {
    kind: "edit-too-large",
    payload,
    bytesMax,
    message: `cannot send an edit of ${payload.byteLength} bytes: the server accepts at most ${bytesMax}. Make the change in smaller pieces.`,
  };
}

export function outboxFull(payload: Uint8Array): Problem {
  return {
    kind: "outbox-full",
    payload,
    message: "the edit was not accepted: too many edits wait to be sent. Send it again once the connection is back and fewer wait.",
  };
}

export function presenceTooLarge(bytesMax: number): Problem {
  return {
    kind: "presence-too-large",
    bytesMax,
    message: `the presence was not accepted: it would exceed ${bytesMax} bytes or the number of fields. Set less, and keep lasting data in the document.`,
  };
}
