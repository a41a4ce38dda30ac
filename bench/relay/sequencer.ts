/**
 * The only sequencing process of the relay: assigns each edit of a room the next seq and appends it to the log. A room
 * has one append in flight, and edits that arrive during an append share the next record, as in Coroom. The stream
 * republishes each stored record to the gateways, so the commit precedes the fan-out.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { ClientId, Epoch, RoomKey, Seq, ServerId } from "../../shared/ids.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import type { CommittedEdit } from "../../shared/wire/frames.ts";

type Room = { readonly token: string; readonly logSubject: string; head: number; inFlight: boolean; waiting: CommittedEdit[] };

const EPOCH = 1 as Epoch;
const SERVER = "sequencer" as ServerId;

export async function startRelaySequencer(options: { natsUrl: string; environment: string }): Promise<void> {
  const nats = await connectNats({ servers: options.natsUrl, name: "relay-sequencer" });
  const subjects = subjectsOf(options.environment);
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 1 });
  const roomsBySubject = new Map<string, Room>();
  const roomsByToken = new Map<string, Room>();

  nats.subscribe(subjects.toOwner("*.*" as RoomKey), {
    callback: (_, message) => {
      const room = roomsBySubject.get(message.subject) ?? addRoom(message.subject);
      readEdits(message.data, room.waiting);
      if (!room.inFlight) append(room);
    },
  });
  nats.subscribe(subjects.allAppended(SERVER), {
    callback: (_, message) => {
      if (message.string().includes('"error"')) throw new Error(`the log rejected an append: ${message.string()}`);
      const room = roomsByToken.get(message.subject.slice(message.subject.lastIndexOf(".") + 1))!;
      room.inFlight = false;
      if (room.waiting.length > 0) append(room);
    },
  });
  await nats.flush();

  function addRoom(subject: string): Room {
    const key = subject.split(".").slice(-2).join(".") as RoomKey;
    const token = String(roomsByToken.size + 1);
    const room: Room = { token, logSubject: subjects.log(0, key), head: 0, inFlight: false, waiting: [] };
    roomsBySubject.set(subject, room);
    roomsByToken.set(token, room);
    return room;
  }

  function append(room: Room): void {
    const edits = room.waiting;
    const record = encoding.encode((out) => writeCommittedEdits(out, { epoch: EPOCH, firstSeq: (room.head + 1) as Seq, edits }));
    room.head += edits.length;
    room.waiting = [];
    room.inFlight = true;
    nats.publish(room.logSubject, record, { reply: subjects.appended(SERVER, room.token) });
  }
}

function readEdits(bytes: Uint8Array, into: CommittedEdit[]): void {
  const input = decoding.createDecoder(bytes);
  while (decoding.hasContent(input)) {
    into.push({
      client: decoding.readVarString(input) as ClientId,
      counter: decoding.readVarUint(input),
      parentSeq: decoding.readVarUint(input) as Seq,
      payload: decoding.readVarUint8Array(input),
    });
  }
}
