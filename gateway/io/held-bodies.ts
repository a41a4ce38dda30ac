/**
 * The bodies that a gateway has in hand, of all requests together: they are read before anybody has looked at who sends
 * them, so only what is counted here keeps strangers from filling the memory. Where it is full, whoever has been sending
 * for the longest makes room: an honest request is soon whole, and strangers who never end theirs would otherwise keep out
 * operators too. Rules HBO1 to HBO4.
 */

import type { HttpResponse } from "uws-node20";

/** `onFull`: is told of each request that is refused for it. */
export type HeldBodiesOptions = { readonly bodiesBytesMax: number; readonly onBodiesFull: () => void };

/** What comes of reading one. `full`: too much is in hand. */
export type ReadBody = { readonly kind: "read"; readonly body: Uint8Array } | { readonly kind: "too-large" } | { readonly kind: "full" };

type Coming = { bytes: number; chunks: Uint8Array[]; readonly refuse: (kind: "too-large" | "full") => void };

export class HeldBodies {
  readonly #options: HeldBodiesOptions;
  /** Those that are not whole yet, in the order in which they began. */
  readonly #coming = new Set<Coming>();
  #bytes = 0;

  constructor(options: HeldBodiesOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * `bytesMax`: of this one. `done`: once the whole has come, or is known not to be taken; what it returns says when the
   * body is needed no more. Whoever goes away before (`signal`) is not told of.
   */
  read(res: Pick<HttpResponse, "onData">, bytesMax: number, signal: AbortSignal, done: (read: ReadBody) => Promise<void>): void {
    const refuse = (kind: "too-large" | "full"): void => {
      this.#letGo(coming);
      if (kind === "full") this.#options.onBodiesFull();
      void done({ kind });
    };
    const coming: Coming = { bytes: 0, chunks: [], refuse };
    this.#coming.add(coming);
    signal.addEventListener("abort", () => this.#coming.has(coming) && this.#letGo(coming), { once: true });
    res.onData((chunk, isLast) => {
      if (!this.#coming.has(coming)) return; // It was refused, and comes on for a while.
      if (coming.bytes + chunk.byteLength > bytesMax) return refuse("too-large");
      if (!this.#makeRoom(chunk.byteLength, coming)) return;
      coming.bytes += chunk.byteLength;
      this.#bytes += chunk.byteLength;
      coming.chunks.push(new Uint8Array(chunk.slice(0))); // Lent for this call.
      if (!isLast) return;
      this.#coming.delete(coming);
      const body = Buffer.concat(coming.chunks);
      coming.chunks = [];
      void done({ kind: "read", body }).finally(() => this.#letGo(coming));
    });
  }

  /** Whether there is room for `bytes` more of the one that `asks`: all who began before it have been refused, if need be. */
  #makeRoom(bytes: number, asks: Coming): boolean {
    for (const oldest of this.#coming) {
      if (this.#bytes + bytes <= this.#options.bodiesBytesMax) break;
      oldest.refuse("full");
      if (oldest === asks) return false;
    }
    return true;
  }

  #letGo(coming: Coming): void {
    this.#coming.delete(coming);
    this.#bytes -= coming.bytes;
    coming.bytes = 0;
    coming.chunks = [];
  }
}
