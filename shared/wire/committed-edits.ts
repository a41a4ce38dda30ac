/**
 * The bytes of committed edits. One layout in the log, on NATS and on the socket, so that a gateway hands
 * the log's bytes to its clients without reading them again (see shared/bus/record.ts).
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { Epoch, Seq } from "../ids.ts";
import { readBytes, readClientId, readCounter, readEpoch, readSeq } from "./fields.ts";
import type { CommittedEdit, CommittedEdits } from "./frames.ts";

/** Each client id stands once, in order of first use; an edit names its own by index. */
export function writeCommittedEdits(out: encoding.Encoder, { epoch, firstSeq, edits }: CommittedEdits): void {
  encoding.writeVarUint(out, epoch);
  encoding.writeVarUint(out, firstSeq);
  const clients = [...new Set(edits.map((edit) => edit.client))];
  encoding.writeVarUint(out, clients.length);
  for (const client of clients) encoding.writeVarString(out, client);
  encoding.writeVarUint(out, edits.length);
  edits.forEach((edit, index) => {
    encoding.writeVarUint(out, clients.length === 1 ? 0 : clients.indexOf(edit.client));
    encoding.writeVarUint(out, edit.counter);
    encoding.writeVarUint(out, firstSeq + index - edit.parentSeq); // A small number: how far behind its author was.
    encoding.writeVarUint8Array(out, edit.payload);
  });
}

/** Throws on bytes that are no committed edits. Payloads are views into the input: copy them to keep them. */
export function readCommittedEdits(input: decoding.Decoder): CommittedEdits {
  const epoch = readEpoch(input);
  const firstSeq = readSeq(input);
  const clients = Array.from({ length: readCount(input) }, () => readClientId(input));
  const count = readCount(input);
  if (count === 0) throw new RangeError("committed edits are never empty");
  const edits: CommittedEdit[] = [];
  for (let index = 0; index < count; index++) {
    const client = clients[decoding.readVarUint(input)];
    if (client === undefined) throw new RangeError("an edit names a client that is not listed");
    const counter = readCounter(input);
    const behind = decoding.readVarUint(input);
    const parentSeq = firstSeq + index - behind;
    if (behind === 0 || parentSeq < 0) throw new RangeError("an edit's parent comes before it");
    edits.push({ client, counter, parentSeq: parentSeq as Seq, payload: readBytes(input) });
  }
  return { epoch, firstSeq, edits };
}

/** Reads only where the edits stand in the order: a gateway needs no more to see a gap. */
export function readRange(input: decoding.Decoder): { epoch: Epoch; firstSeq: Seq } {
  return { epoch: readEpoch(input), firstSeq: readSeq(input) };
}

function readCount(input: decoding.Decoder): number {
  const count = decoding.readVarUint(input);
  if (count > input.arr.byteLength) throw new RangeError("more entries than bytes");
  return count;
}
