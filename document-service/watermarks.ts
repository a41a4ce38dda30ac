/**
 * How far each client's edits are committed, for the checkpoint: a new owner of the room takes its dedupe
 * state from there. Bounded by forgetting: a client that is not known is asked how far it got (the
 * `ackedThrough` of its next edit), so forgetting never opens a hole.
 */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { EditsRecord } from "../shared/bus/record.ts";
import { assert } from "../shared/assert.ts";
import type { ClientId, Seq, UnixMillis } from "../shared/ids.ts";

export type Watermark = Checkpoint["clients"][number];

export class Watermarks {
  readonly #silenceMsMax: number;
  readonly #clientsMax: number;
  /** The most silent first. */
  readonly #byClient: Map<ClientId, Watermark>;

  constructor(known: readonly Watermark[], options: { silenceMsMax: number; clientsMax: number }) {
    this.#silenceMsMax = options.silenceMsMax;
    this.#clientsMax = options.clientsMax;
    this.#byClient = new Map(known.toSorted((a, b) => a.lastSeen - b.lastSeen).map((watermark) => [watermark.client, watermark]));
  }

  receiveEdits(record: EditsRecord): void {
    const { firstSeq, edits } = record.edits;
    const last = new Map<ClientId, number>();
    edits.forEach(({ client }, index) => last.set(client, index));
    for (const [client, index] of last) {
      const [edit, user] = [edits[index], record.users.get(client)];
      assert(edit !== undefined && user !== undefined, "a record names the user of each of its clients");
      this.#byClient.delete(client); // To the end: the order of the map is the order of silence.
      this.#byClient.set(client, { client, user, counter: edit.counter, seq: (firstSeq + index) as Seq, lastSeen: record.time });
    }
    this.#forget(record.time);
  }

  all(): Watermark[] {
    return [...this.#byClient.values()];
  }

  #forget(now: UnixMillis): void {
    for (const [client, { lastSeen }] of this.#byClient) {
      if (now - lastSeen <= this.#silenceMsMax && this.#byClient.size <= this.#clientsMax) return;
      this.#byClient.delete(client);
    }
  }
}
