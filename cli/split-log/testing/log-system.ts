/** A log for tests of a split, with everything that refers to its sequences. */

import { jetstream, jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers } from "nats";
import { expect, onTestFinished } from "vitest";

import { encodeJson } from "../../../shared/bus/json-messages.ts";
import { partitionOf, roomOfSubject, type Subjects, subjectsOf } from "../../../shared/bus/subjects.ts";
import type { RoomKey } from "../../../shared/ids.ts";
import { ensureLogStreams } from "../../../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../../../shared/io/nats.ts";

export const ROOMS = Array.from({ length: 24 }, (_, index) => `acme.room-${index}` as RoomKey);
export type LogSystem = { readonly nats: NatsConnection; readonly manager: JetStreamManager; readonly subjects: Subjects };

export async function put(
  { nats }: LogSystem,
  subject: string,
  text: string,
  expected?: number,
): Promise<{ seq?: number; error?: object }> {
  const head = headers();
  if (expected !== undefined) head.set("Nats-Expected-Last-Subject-Sequence", String(expected));
  return (await nats.request(subject, text, { headers: head, timeout: 10_000 })).json();
}

/** A log with trimmed rooms and a gap at its end, with leases, checkpoints of boards and activities. */
export async function startLogSystem(servers: string, environment: string, partitions: number, replicas = 1): Promise<LogSystem> {
  const nats = await connectNats({ servers, name: "test" });
  onTestFinished(() => closeNats(nats));
  const system = { nats, manager: await jetstreamManager(nats), subjects: subjectsOf(environment) };
  const { manager, subjects } = system;
  await ensureLogStreams(nats, subjects, { partitions, replicas, bytesMax: 8 * 1024 ** 2 });
  const kvm = new Kvm(jetstream(nats));
  const [documents, boards, points] = await Promise.all(
    [subjects.documentsBucket, subjects.boardsBucket, subjects.boardCheckpointsBucket].map((bucket) => kvm.create(bucket)),
  );
  const last = new Map<RoomKey, number>();
  for (let edit = 0; edit < 3; edit++)
    for (const room of ROOMS) {
      const { seq } = await put(system, subjects.log(partitionOf(room, partitions), room), `${room} ${edit}`, last.get(room) ?? 0);
      last.set(room, seq!);
    }
  for (const room of ROOMS.slice(0, 8)) {
    const partition = partitionOf(room, partitions);
    await manager.streams.purge(subjects.logStream(partition), { filter: subjects.log(partition, room), keep: 1 });
  }
  for (let partition = 0; partition < partitions; partition++) {
    const { state } = await manager.streams.info(subjects.logStream(partition));
    await put(system, subjects.logOfPartition(partition).replace("*.*", "=.filler"), "x");
    const lease = { holder: "killed", floor: state.last_seq + 1, said: { service: "killed", number: 4 }, last: { streamSeq: 1, id: "a" } };
    for (const bucket of [documents!, boards!]) await bucket.put(`partition.${partition}`, encodeJson(lease));
    await manager.streams.add({
      name: subjects.activityStream(partition),
      subjects: [subjects.activityOfPartition(partition)],
      first_seq: 5_000,
      num_replicas: replicas,
    });
  }
  for (const room of ROOMS) await points!.put(`${partitionOf(room, partitions)}.${room}`, encodeJson({ room }));
  for (const room of ROOMS.slice(0, 4)) await put(system, subjects.activity(partitionOf(room, partitions), room), `activity ${room}`);
  return system;
}

/** All messages of rooms, by room and sequence, and the end of each stream. */
export async function contentOf({ manager, subjects }: LogSystem, kind: "log" | "activity", partitions: number) {
  const messages: Record<string, string> = {};
  const ends: number[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const stream = kind === "log" ? subjects.logStream(partition) : subjects.activityStream(partition);
    const { state } = await manager.streams.info(stream);
    ends.push(state.last_seq);
    for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq++) {
      const message = await manager.streams.getMessage(stream, { seq }).catch(() => null);
      const room = message === null ? undefined : roomOfSubject(message.subject);
      if (room === undefined) continue;
      expect(partitionOf(room, partitions), `${room} in ${stream}`).toBe(partition);
      messages[`${room} ${seq}`] = `${message!.timestamp} ${message!.string()}`;
    }
  }
  return { messages, ends };
}
