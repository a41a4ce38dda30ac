/**
 * Request bodies that the gateway holds in memory. A body is read before its sender is authenticated, so the total is
 * bounded. At the bound, the gateway refuses the request that has been sending the longest. Honest requests end
 * quickly. Without this rule, attackers whose requests never end would lock out operators. Rules HBO1 to HBO4.
 */

import type { HttpResponse } from "uWebSockets.js-glibc-2.36";

/** `onBodiesFull` is called for each request that is refused because of the bound, `onBodyTooLarge` for each that exceeds its own. */
export type HeldBodiesOptions = { readonly bodiesBytesMax: number; readonly onBodiesFull: () => void; readonly onBodyTooLarge: () => void };

/** The result of reading a body. `full`: the gateway holds too many bytes. */
export type ReadBody = { readonly kind: "read"; readonly body: Uint8Array } | { readonly kind: "too-large" } | { readonly kind: "full" };

type Coming = { bytes: number; chunks: Uint8Array[]; readonly refuse: (kind: "too-large" | "full") => void };

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
   * resolves when the body is no longer needed. It is not called for a client that disconnects first (`signal`).
   */
  read(res: Pick<HttpResponse, "onData">, bytesMax: number, signal: AbortSignal, done: (read: ReadBody) => Promise<void>): void {
    const refuse = (kind: "too-large" | "full"): void => {
      this.#release(coming);
      if (kind === "full") this.#options.onBodiesFull();
      else this.#options.onBodyTooLarge();
      void done({ kind });
    };
    const coming: Coming = { bytes: 0, chunks: [], refuse };
    this.#coming.add(coming);
    signal.addEventListener("abort", () => this.#coming.has(coming) && this.#release(coming), { once: true });
    res.onData((chunk, isLast) => {
      if (!this.#coming.has(coming)) return; // The body was refused, and the client is still sending it.
      if (coming.bytes + chunk.byteLength > bytesMax) return refuse("too-large");
      if (!this.#makeRoom(chunk.byteLength, coming)) return;
      coming.bytes += chunk.byteLength;
      this.#bytes += chunk.byteLength;
      coming.chunks.push(new Uint8Array(chunk.slice(0))); // The chunk is valid during this call only.
      if (!isLast) return;
      this.#coming.delete(coming);
      const body = Buffer.concat(coming.chunks);
      coming.chunks = [];
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
    coming.chunks = [];
  }
}
