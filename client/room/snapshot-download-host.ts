/** Downloads a room's snapshot over HTTP. Only the newest download answers: one that was aborted or replaced is dropped. */

import type { RoomId } from "../../shared/ids.ts";
import { snapshotUrl } from "../options.ts";
import type { ClientWorld, SnapshotAnswer } from "../ports.ts";

/** The server's address, and the newest token of the connection. */
type SnapshotSource = { readonly server: string; readonly lastToken: string };

export class SnapshotDownload {
  readonly #room: RoomId;
  readonly #world: Pick<ClientWorld, "fetchSnapshot">;
  readonly #receive: (answer: SnapshotAnswer) => void;
  #newest: AbortController | undefined;

  constructor(room: RoomId, world: Pick<ClientWorld, "fetchSnapshot">, receive: (answer: SnapshotAnswer) => void) {
    this.#room = room;
    this.#world = world;
    this.#receive = receive;
  }

  begin(source: SnapshotSource): void {
    this.abort();
    this.#newest = new AbortController();
    void this.#fetch(source, this.#newest.signal);
  }

  abort(): void {
    this.#newest?.abort();
  }

  async #fetch({ server, lastToken }: SnapshotSource, signal: AbortSignal): Promise<void> {
    let answer: SnapshotAnswer;
    try {
      answer = await this.#world.fetchSnapshot(snapshotUrl({ http: server }, this.#room), lastToken, signal);
    } catch (cause) {
      answer = { kind: "unavailable", retryAfterMs: 0, why: `cannot reach the server: ${String(cause)}` }; // Any network error.
    }
    if (!signal.aborted) this.#receive(answer);
  }
}
