/** Readers of the log's tail: the records after a room's last segment. Each reader receives one record after another. */

import { headOf, type StoredRecord } from "../../shared/bus/record.ts";
import type { Seq, UnixMillis } from "../../shared/ids.ts";
import { type LoggedEdits, LoggedEditsReader, loggedEditsOf } from "./segments.ts";

/** `done`: the reader needs no further record. */
export interface TailReader {
  receiveRecord(stored: StoredRecord): "more" | "done";
}

/** Collects the edits in `after < seq <= through`, up to a number of bytes of records. */
export class EditsInTail implements TailReader {
  readonly #after: Seq;
  readonly #through: number;
  readonly #bytesMax: number;
  readonly edits: LoggedEdits[] = [];
  /** The range has more edits than fit. */
  isCut = false;
  #bytes = 0;
  readonly #records: LoggedEditsReader;

  /** `records`: has read the records before the tail. */
  constructor(
    { after, through, bytesMax }: { readonly after: Seq; readonly through: number; readonly bytesMax: number },
    records = new LoggedEditsReader(),
  ) {
    this.#after = after;
    this.#through = through;
    this.#bytesMax = bytesMax;
    this.#records = records;
  }

  receiveRecord(stored: StoredRecord): "more" | "done" {
    const one = this.#records.receiveRecord(stored);
    if (one === undefined || headOf(one.record) <= this.#after) return "more";
    this.#bytes += stored.bytes.byteLength;
    this.isCut = this.#bytes > this.#bytesMax;
    if (this.isCut) return "done";
    this.edits.push(one);
    return headOf(one.record) >= this.#through ? "done" : "more";
  }
}

/** Finds the last seq that the log had at a time. */
export class SeqInTail implements TailReader {
  readonly #time: UnixMillis;
  /** 0: the room begins after the time. Undefined: the tail begins after the time, and does not contain the room's first edit. */
  seq: Seq | undefined;

  constructor(time: UnixMillis) {
    this.#time = time;
  }

  receiveRecord(stored: StoredRecord): "more" | "done" {
    const [edits] = loggedEditsOf([stored]);
    if (edits === undefined) return "more";
    if (edits.time <= this.#time) {
      this.seq = headOf(edits.record);
      return "more";
    }
    if (this.seq === undefined && edits.record.edits.firstSeq === 1) this.seq = 0 as Seq;
    return "done";
  }
}
