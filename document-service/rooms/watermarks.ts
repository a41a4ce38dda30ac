/**
 * The last committed edit of each client, for the checkpoint. A new owner of the room takes its dedupe window from this
 * list. The list is limited and drops the longest-silent clients first. A dropped client reports its own position in
 * its next edit (`ackedThrough`), so a drop never causes a gap. A checkpoint must fit into one message, so the encoded
 * length of the list counts.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { EditsRecord } from "../../shared/bus/record.ts";
import { assert } from "../../shared/assert.ts";
import type { ClientId, Seq, UnixMillis } from "../../shared/ids.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";

export type Watermark = Checkpoint["clients"][number];

export type WatermarksOptions = { readonly silenceMsMax: number; readonly clientsMax: number; readonly bytesMax: number };

const encoder = new TextEncoder();
const LONGEST = Number.MAX_SAFE_INTEGER;

export class Watermarks {
  readonly #options: WatermarksOptions;
  /** The longest-silent client first. */
  readonly #byClient = new LazyMap<ClientId, { readonly watermark: Watermark; readonly bytes: number }>();
  #bytes = 0;

  constructor(known: readonly Watermark[], options: WatermarksOptions) {
    this.#options = options;
    for (const watermark of known.toSorted((a, b) => a.lastSeen - b.lastSeen)) this.#set(watermark);
  }

  /**
   * `loggedAt`: on the log's clock. The record's own date is its room server's, and one that is wrong would make all other
   * clients silent. Returns the number of clients that were dropped before their time for lack of space.
   */
  receiveEdits(record: EditsRecord, loggedAt: UnixMillis): number {
    const { firstSeq, edits } = record.edits;
    const last = new Map<ClientId, number>();
    edits.forEach(({ client }, index) => last.set(client, index));
    for (const [client, index] of last) {
      const [edit, user] = [edits[index], record.users.get(client)];
      assert(edit !== undefined && user !== undefined, "a record names the user of each of its clients");
      this.#set({ client, user, counter: edit.counter, seq: (firstSeq + index) as Seq, lastSeen: loggedAt });
    }
    return this.#forget(loggedAt);
  }

  all(): Watermark[] {
    return [...this.#byClient.values()].map(({ watermark }) => watermark);
  }

  #forget(now: UnixMillis): number {
    const { silenceMsMax, clientsMax, bytesMax } = this.#options;
    let early = 0;
    for (const [client, { watermark }] of this.#byClient) {
      const isSilent = now - watermark.lastSeen > silenceMsMax;
      if (!isSilent && this.#byClient.size <= clientsMax && this.#bytes <= bytesMax) break;
      if (!isSilent) early += 1;
      this.#remove(client);
    }
    return early;
  }

  /** Moves the client to the end: the map is ordered by silence. */
  #set(watermark: Watermark): void {
    const bytes = this.#byClient.get(watermark.client)?.bytes ?? bytesMaxOf(watermark);
    this.#remove(watermark.client);
    this.#byClient.set(watermark.client, { watermark, bytes });
    this.#bytes += bytes;
  }

  #remove(client: ClientId): void {
    this.#bytes -= this.#byClient.get(client)?.bytes ?? 0;
    this.#byClient.delete(client);
  }
}

/** With the longest numbers, so that it is measured once for each client: a client id belongs to one user. */
function bytesMaxOf({ client, user }: Watermark): number {
  const longest = { client, user, counter: LONGEST, seq: LONGEST, lastSeen: LONGEST };
  return encoder.encode(JSON.stringify(longest)).byteLength + 1;
}
