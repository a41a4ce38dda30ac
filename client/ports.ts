/** The ports of the client to the platform. `io/` implements each, and tests replace them. */

import type { ClientKey, Millis, Position } from "../shared/ids.ts";
import type { EditName } from "./persistence/edit-store.ts";

/** All ports as one value, which `main.ts` puts together. */
export type ClientWorld = {
  readonly clock: ClientClock;
  readonly chance: ClientRandom;
  readonly openSocket: OpenSocket;
  readonly fetchSnapshot: FetchSnapshot;
  /** Undefined where the platform does not report network changes. */
  readonly watchNetwork?: WatchNetwork;
  /** Reports an error that an application's listener threw as an uncaught error. It stops nothing in the client. */
  readonly reportError: (error: unknown) => void;
};

/**
 * A change of the device's network. back: there is a network again. doubtful: there is none, or the page was asleep, so
 * a connection may be dead.
 */
export type NetworkChange = "back" | "doubtful";

/** Returns a function that ends the watch. */
export type WatchNetwork = (report: (change: NetworkChange) => void) => () => void;

/** Reports at once and after each change, where the platform has pages. Returns a function that ends the watch. */
export type WatchVisibility = (report: (isVisible: boolean) => void) => () => void;

export interface ClientClock {
  /** Milliseconds since an arbitrary start. Never goes back; jumps ahead when a laptop wakes up. */
  now(): Millis;
  /** Runs once after the delay. The returned function cancels it. */
  after(delayMs: number, run: () => void): () => void;
  /** Runs once when the current task has ended, so that edits made in one task are sent together. */
  soon(run: () => void): void;
}

export interface ClientRandom {
  /** Returns a number in [0, 1). */
  unit(): number;
  /** Returns a key that is hard to guess and used by no other tab. */
  clientKey(): ClientKey;
}

/**
 * A socket that cannot be opened reports `closed`. Throws only if the platform forbids the URL (`ws:` in a page over
 * `https:`).
 */
export type OpenSocket = (url: string, listener: SocketListener) => Socket;

export interface Socket {
  /** Bytes are lost while the socket is not open. */
  send(bytes: Uint8Array): void;
  /** The listener is not called any more. */
  close(): void;
}

export interface SocketListener {
  opened(): void;
  /** The bytes belong to the listener. */
  received(bytes: Uint8Array): void;
  /**
   * Called at most once. Code 1006: the connection broke or was refused. `why`: the server's reason or the
   * platform's text. `retryAfterMs`: the delay that a refusing server asked for. Browsers do not give it.
   */
  closed(code: number, why?: string, retryAfterMs?: number): void;
}

/** Rejects if the server cannot be reached. `etag`: of the copy that the caller has; the status is 304 if it is current. */
export type FetchJson = (url: string, token: string, etag?: string) => Promise<JsonAnswer>;
/** `body`: undefined if it is not JSON. `maxAgeMs`, `retryAfterMs`: undefined if the server did not send them. */
export type JsonAnswer = {
  readonly status: number;
  readonly body: unknown;
  readonly etag?: string | undefined;
  readonly maxAgeMs?: number | undefined;
  readonly retryAfterMs?: number | undefined;
};

/** Rejects if the server cannot be reached, or when the signal aborts. */
export type FetchSnapshot = (url: string, token: string, signal: AbortSignal) => Promise<SnapshotAnswer>;

export type SnapshotAnswer =
  /** `last`: the edit at the position, if the server names it. */
  | { readonly kind: "snapshot"; readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array }
  /** The room has no snapshot yet. */
  | { readonly kind: "none" }
  /** The room is deleted permanently. */
  | { readonly kind: "deleted" }
  | { readonly kind: "unavailable"; readonly retryAfterMs: number; readonly why: string };
