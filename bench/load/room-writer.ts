/** One room's only author, who appends to the log directly, fenced as a room server does it: what its document must be. */

import { type JetStreamClient } from "@nats-io/jetstream";
import { headers } from "nats";
import * as Y from "yjs";

import { encodeEditsRecord } from "../../shared/bus/record.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";

const ANN = { client: "annannannannann1" as ClientId, user: "ann" as UserId };
const APPEND_MS_MAX = 30_000;

export type Writing = { readonly streams: JetStreamClient; readonly subjects: Subjects; readonly partitions: number };

export class RoomWriter {
  readonly room: RoomKey;
  readonly #doc = new Y.Doc();
  readonly #writing: Writing;
  #seq = 0;
  #streamSeq = 0;

  constructor(room: RoomKey, writing: Writing) {
    this.room = room;
    this.#writing = writing;
  }

  get seq(): number {
    return this.#seq;
  }

  get text(): string {
    return this.#doc.getText("text").toString();
  }

  /** A word at the end. */
  async type(): Promise<void> {
    const { streams, subjects, partitions } = this.#writing;
    const before = Y.encodeStateVector(this.#doc);
    const text = this.#doc.getText("text");
    text.insert(text.length, `${this.#seq + 1} `);
    const edits = [
      { client: ANN.client, counter: this.#seq + 1, parentSeq: this.#seq as Seq, payload: Y.encodeStateAsUpdate(this.#doc, before) },
    ];
    const time = Date.now() as UnixMillis;
    const record = encodeEditsRecord({
      id: `bench.${this.room}.${this.#seq}`,
      time,
      users: new Map([[ANN.client, ANN.user]]),
      edits: { epoch: 1 as Epoch, firstSeq: (this.#seq + 1) as Seq, edits },
    });
    const fence = headers();
    fence.set("Nats-Expected-Last-Subject-Sequence", String(this.#streamSeq));
    this.#streamSeq = (
      await streams.publish(subjects.log(partitionOf(this.room, partitions), this.room), record, { headers: fence, timeout: APPEND_MS_MAX })
    ).seq;
    this.#seq += 1;
  }
}
