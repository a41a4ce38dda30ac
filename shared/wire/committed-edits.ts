/**
 * The bytes of committed and tentative edits. The log, NATS and the socket share one layout, so that a gateway passes
 * the log's bytes to its clients without decoding them (see shared/bus/record.ts).
 */

import { createDecoder, type Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { ClientId, Epoch, Seq } from "../ids.ts";
import {
  bytes,
  checked,
  clientId,
  counter,
  decodeAll,
  epoch,
  type Format,
  fields,
  number,
  refuseUnless,
  seqOrStart,
  userId,
  inRange,
  readBytes,
  readClientId,
  readCount,
  readCounter,
  readEpoch,
  readList,
  readNumber,
  readSeq,
  skipBytes,
} from "./fields.ts";
import type { CommittedEdit, CommittedEdits, Counter, TentativeEdit } from "./frames.ts";

const CLIENT_BYTES = 17;
const EDIT_BYTES_MIN = 4;

/**
 * Each client id is written once, in order of first use, and edits refer to it by index. A parent at or after its edit
 * is written as the previous seq. Such a parent comes from a hostile author, or from one that knows a lost log.
 */
export function writeCommittedEdits(out: encoding.Encoder, { epoch, firstSeq, edits }: CommittedEdits): void {
  encoding.writeVarUint(out, epoch);
  encoding.writeVarUint(out, firstSeq);
  const clients = new Map<ClientId, number>();
  for (const { client } of edits) if (!clients.has(client)) clients.set(client, clients.size);
  encoding.writeVarUint(out, clients.size);
  for (const client of clients.keys()) encoding.writeVarString(out, client);
  encoding.writeVarUint(out, edits.length);
  edits.forEach((edit, index) => {
    encoding.writeVarUint(out, clients.get(edit.client)!);
    encoding.writeVarUint(out, edit.counter);
    // A small number: the distance between the edit and its parent.
    encoding.writeVarUint(out, Math.max(1, firstSeq + index - edit.parentSeq));
    encoding.writeVarUint8Array(out, edit.payload);
  });
}

/** Throws on other bytes. Payloads are views into the input: copy them to keep them. */
export function readCommittedEdits(input: Decoder): CommittedEdits {
  const epoch = readEpoch(input);
  const firstSeq = readSeq(input);
  const clients = readList(input, CLIENT_BYTES, readClientId);
  const count = readCount(input, EDIT_BYTES_MIN);
  if (count === 0) throw new RangeError("committed edits are never empty");
  inRange(firstSeq + (count - 1));
  const edits: CommittedEdit[] = [];
  for (let index = 0; index < count; index++) {
    const client = clients[readNumber(input)];
    if (client === undefined) throw new RangeError("an edit names a client that is not listed");
    const counter = readCounter(input);
    const behind = readNumber(input);
    const parentSeq = firstSeq + index - behind;
    if (behind === 0 || parentSeq < 0) throw new RangeError("an edit's parent comes before it");
    edits.push({ client, counter, parentSeq: parentSeq as Seq, payload: readBytes(input) });
  }
  return { epoch, firstSeq, edits };
}

/** The payloads of the edits, in order, as views into the bytes of a batch. The batch was verified when it was read. */
export function payloadsIn({ bytes: batch }: CommittedBatch): Uint8Array[] {
  const input = createDecoder(batch);
  readRange(input);
  for (let clients = readNumber(input); clients > 0; clients--) skipBytes(input);
  return readList(input, EDIT_BYTES_MIN, () => {
    readNumber(input); // client
    readNumber(input); // counter
    readNumber(input); // parent
    return readBytes(input);
  });
}

/** Reads only the position of the edits. */
export function readRange(input: Decoder): { epoch: Epoch; firstSeq: Seq } {
  return { epoch: readEpoch(input), firstSeq: readSeq(input) };
}

/** Consecutive edits of one client, in its own numbering and in the room's order. */
export type CounterRun = { readonly client: ClientId; readonly counter: Counter; readonly seq: Seq; readonly count: number };

export type CommittedRuns = { readonly epoch: Epoch; readonly firstSeq: Seq; readonly lastSeq: Seq; readonly runs: readonly CounterRun[] };

/** Committed edits of one frame: the log's bytes, and the authors. */
export type CommittedBatch = CommittedRuns & { readonly bytes: Uint8Array };

/** Undefined: the bytes are not committed edits. */
export function batchFrom(bytes: Uint8Array): CommittedBatch | undefined {
  return decodeAll(bytes, (input) => ({ ...readRuns(input), bytes }));
}

/** Reads the writers and skips the payloads, which is all that a gateway needs. Throws on other bytes. */
export function readRuns(input: Decoder): CommittedRuns {
  const epoch = readEpoch(input);
  const firstSeq = readSeq(input);
  const clients = readList(input, CLIENT_BYTES, readClientId);
  const count = readCount(input, EDIT_BYTES_MIN);
  if (count === 0) throw new RangeError("committed edits are never empty");
  const lastSeq = inRange(firstSeq + (count - 1)) as Seq;
  const runs: CounterRun[] = [];
  let run: { client: ClientId; counter: Counter; seq: Seq; count: number } | undefined;
  for (let seq = firstSeq; seq <= lastSeq; seq++) {
    const client = clients[readNumber(input)];
    if (client === undefined) throw new RangeError("an edit names a client that is not listed");
    const counter = readCounter(input);
    const behind = readNumber(input);
    if (behind === 0 || behind > seq) throw new RangeError("an edit's parent comes before it");
    skipBytes(input);
    if (run !== undefined && run.client === client && run.counter + run.count === counter) run.count += 1;
    else runs.push((run = { client, counter, seq, count: 1 }));
  }
  return { epoch, firstSeq, lastSeq, runs };
}

/** An acknowledged edit is not sent again, so the counter is above `ackedThrough`. */
export function numbered<Value extends { readonly counter: Counter; readonly ackedThrough: Counter }>(
  format: Format<Value>,
): Format<Value> {
  return checked(format, ({ counter, ackedThrough }) => refuseUnless(ackedThrough < counter, "an edit that is acknowledged already"));
}

export const tentativeEdit: Format<TentativeEdit> = numbered(
  fields({ epoch, user: userId, client: clientId, counter, ackedThrough: number, parentSeq: seqOrStart, mac: bytes, payload: bytes }),
);
