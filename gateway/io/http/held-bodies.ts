/**
 * Request bodies that the gateway holds in memory. A body is read before its sender is authenticated, so the total is
 * bounded. At the bound, the gateway refuses the request that has been sending the longest. Honest requests end
 * quickly. Without this rule, attackers whose requests never end would lock out operators. A body may come in chunks of
 * one byte, and each costs a call into this code: a sender of too many is cut. Rules HBO1 to HBO6.
 */

import type { HttpResponse } from "uWebSockets.js-glibc-2.36";

/** `onBodiesFull` is called for each request that is refused because of the bound, `onBodyTooLarge` for each that exceeds its own. */
export type HeldBodiesOptions = { readonly bodiesBytesMax: number; readonly onBodiesFull: () => void; readonly onBodyTooLarge: () => void };

/** The result of reading a body. `full`: the gateway holds too many bytes. */
export type ReadBody = { readonly kind: "read"; readonly body: Uint8Array } | { readonly kind: "too-large" } | { readonly kind: "full" };

/** `content` has space for more than the `bytes` that have arrived. */
type Coming = { bytes: number; pieces: number; content: Uint8Array; readonly refuse: (kind: "too-large" | "full") => void };

/** A body beyond this many pieces needs PIECE_BYTES_MIN bytes for each further piece. Clients send pieces of kilobytes. */
const PIECES_MAX = 1_024;
const PIECE_BYTES_MIN = 64;
const NOTHING = new Uint8Array(0);

export class HeldBodies {
  readonly #options: HeldBodiesOptions;
  /** Incomplete bodies, in the order in which they began. */
  readonly #coming = new Set<Coming>();
  #bytes = 0;

  constructor(options: HeldBodiesOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * `bytesMax` limits this body. `done` is called when the body is complete or refused; the promise that it returns
   * resolves when the body is no longer needed. It is not called for a client that disconnects first (`signal`), or is cut.
   */
  read(res: Pick<HttpResponse, "onData" | "close">, bytesMax: number, signal: AbortSignal, done: (read: ReadBody) => Promise<void>): void {
    const refuse = (kind: "too-large" | "full"): void => {
      this.#release(coming);
      if (kind === "full") this.#options.onBodiesFull();
      else this.#options.onBodyTooLarge();
      void done({ kind });
    };
    const coming: Coming = { bytes: 0, pieces: 0, content: NOTHING, refuse };
    this.#coming.add(coming);
    signal.addEventListener("abort", () => this.#coming.has(coming) && this.#release(coming), { once: true });
    res.onData((chunk, isLast) => {
      if (!this.#coming.has(coming)) return; // The body was refused, and the client is still sending it.
      coming.pieces += 1;
      if (coming.pieces > PIECES_MAX + coming.bytes / PIECE_BYTES_MIN) {
        this.#options.onBodyTooLarge();
        return void res.close(); // Aborts the signal. An answer would leave thousands of pieces of this read to receive.
      }
      if (coming.bytes + chunk.byteLength > bytesMax) return refuse("too-large");
      if (!this.#makeRoom(chunk.byteLength, coming)) return;
      append(coming, new Uint8Array(chunk), bytesMax);
      this.#bytes += chunk.byteLength;
      if (!isLast) return;
      this.#coming.delete(coming);
      const body = coming.content.subarray(0, coming.bytes);
      coming.content = NOTHING;
      void done({ kind: "read", body }).finally(() => this.#release(coming));
    });
  }

  /**
   * Returns whether `bytes` more of the request `asks` fit. Refuses older requests to make space, and `asks` itself
   * when it is the oldest.
   */
  #makeRoom(bytes: number, asks: Coming): boolean {
    for (const oldest of this.#coming) {
      if (this.#bytes + bytes <= this.#options.bodiesBytesMax) break;
      oldest.refuse("full");
      if (oldest === asks) return false;
    }
    return true;
  }

  #release(coming: Coming): void {
    this.#coming.delete(coming);
    this.#bytes -= coming.bytes;
    coming.bytes = 0;
    coming.content = NOTHING;
  }
}

/** Copies `piece`, which is valid during this call only. An object for each piece would cost hundreds of times its bytes. */
function append(coming: Coming, piece: Uint8Array, bytesMax: number): void {
  const bytes = coming.bytes + piece.byteLength;
  if (bytes > coming.content.byteLength) {
    const larger = new Uint8Array(Math.min(bytesMax, Math.max(bytes, 2 * coming.bytes)));
    larger.set(coming.content.subarray(0, coming.bytes));
    coming.content = larger;
  }
  coming.content.set(piece, coming.bytes);
  coming.bytes = bytes;
}
