/**
 * The bodies that a gateway has in hand, of all requests together: they are read before anybody has looked at who sends
 * them, so only what is counted here keeps strangers from filling the memory. Rules HBO1 to HBO3.
 */

import type { HttpResponse } from "uws-node20";

/** `onFull`: is told of each request that is refused for it. */
export type HeldBodiesOptions = { readonly bodiesBytesMax: number; readonly onBodiesFull: () => void };

/** What comes of reading one. `full`: too much is in hand. */
export type ReadBody = { readonly kind: "read"; readonly body: Uint8Array } | { readonly kind: "too-large" } | { readonly kind: "full" };

export class HeldBodies {
  readonly #options: HeldBodiesOptions;
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
    let chunks: Uint8Array[] | undefined = [];
    let bytes = 0;
    const letGo = (): void => {
      this.#bytes -= bytes;
      bytes = 0;
      chunks = undefined;
    };
    const refuse = (kind: "too-large" | "full"): void => {
      letGo();
      if (kind === "full") this.#options.onBodiesFull();
      void done({ kind });
    };
    signal.addEventListener("abort", () => chunks !== undefined && letGo(), { once: true });
    res.onData((chunk, isLast) => {
      if (chunks === undefined) return; // It was refused, and comes on for a while.
      if (bytes + chunk.byteLength > bytesMax) return refuse("too-large");
      if (this.#bytes + chunk.byteLength > this.#options.bodiesBytesMax) return refuse("full");
      bytes += chunk.byteLength;
      this.#bytes += chunk.byteLength;
      chunks.push(new Uint8Array(chunk.slice(0))); // Lent for this call.
      if (!isLast) return;
      const body = Buffer.concat(chunks);
      chunks = undefined;
      void done({ kind: "read", body }).finally(letGo);
    });
  }
}
