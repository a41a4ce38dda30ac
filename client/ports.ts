/** What the client needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { ClientKey, Millis, Position } from "../shared/ids.ts";
import type { EditName } from "./keeping/edit-store.ts";

/** Everything outside, as one value that `main.ts` puts together. */
export type World = {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly openSocket: OpenSocket;
  readonly fetchSnapshot: FetchSnapshot;
  /** Only where the platform tells of its network. */
  readonly watchNetwork?: WatchNetwork;
  /** What an application's listener threw goes to whoever watches for uncaught errors, and stops nothing here. */
  readonly reportError: (error: unknown) => void;
};

/**
 * What the platform says of the way to the server. back: there is a network again. doubtful: there is none, or the page
 * slept, so that a line may be dead and nobody has heard of it.
 */
export type NetworkNews = "back" | "doubtful";

/** Returns what ends it. */
export type WatchNetwork = (tell: (news: NetworkNews) => void) => () => void;

export interface Clock {
  /** Milliseconds, from some time on. Never goes back; jumps ahead when a laptop wakes up. */
  now(): Millis;
  /** Runs once after the delay; the returned function calls it off. */
  after(delayMs: number, run: () => void): () => void;
  /** Runs once when what runs now has ended, so that what one task does goes out together. */
  soon(run: () => void): void;
}

export interface Chance {
  /** A number in [0, 1). */
  unit(): number;
  /** Hard to guess, and no other tab's. */
  clientKey(): ClientKey;
}

/** A socket that cannot be opened is closed. Throws only where the platform forbids the URL (`ws:` in a page over `https:`). */
export type OpenSocket = (url: string, listener: SocketListener) => Socket;

export interface Socket {
  /** What is sent while the socket is not open is lost. */
  send(bytes: Uint8Array): void;
  /** The listener hears nothing after it. */
  close(): void;
}

export interface SocketListener {
  opened(): void;
  /** The bytes are the listener's own from here on. */
  received(bytes: Uint8Array): void;
  /**
   * At most once. 1006: the line broke, or was refused. `why`: what the platform says beside the code. `retryAfterMs`:
   * for how long a server that refused it wants to be left alone. Browsers tell neither.
   */
  closed(code: number, why?: string, retryAfterMs?: number): void;
}

/** Rejects if the server cannot be reached, and ends once the signal fires: nobody waits for it any more. */
export type FetchSnapshot = (url: string, token: string, signal: AbortSignal) => Promise<SnapshotAnswer>;

export type SnapshotAnswer =
  /** `last`: the edit at the position, where the server names it. */
  | { readonly kind: "snapshot"; readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array }
  /** The room has none yet. */
  | { readonly kind: "none" }
  | { readonly kind: "unavailable"; readonly retryAfterMs: number; readonly why: string };
