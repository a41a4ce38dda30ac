/** Checkpoints that are damaged, on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { expect, test } from "vitest";

import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import type { RoomKey, Seq } from "../../shared/ids.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { startRealNats } from "../../test/contract/real-nats.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { ALL_TIME } from "../boards/windows.ts";
import { kvCheckpoints } from "./kv-checkpoints.ts";

const [ROOM, OTHER] = ["acme.notes", "acme.notes-2"] as [RoomKey, RoomKey];
const DUMP = {
  applied: { ...NOTHING_APPLIED, seq: 1 as Seq },
  uses: NO_USES,
  names: new Map(),
  boards: [{ role: "everyone" as const, window: ALL_TIME, standings: [{ member: "ann", score: 1, reachedAt: 1 }] }],
};

test("[LB18] a checkpoint with a lost part is undecodable and keeps its objects until its room is removed; sweeps remove unnamed objects", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  let names = 0;
  const checkpoints = await kvCheckpoints(nats, "boards", { replicas: 1, partitions: 1, newName: () => `run-${++names}` });
  const store = await new Objm(jetstream(nats)).open("boards");
  const objects = async (): Promise<string[]> => (await store.list()).map(({ name }) => name).sort();
  for (const room of [ROOM, OTHER]) expect((await checkpoints.write(room, DUMP, 0)).kind).toBe("written");

  await (await jetstreamManager(nats)).streams.purge("OBJ_boards", { filter: `$O.boards.C.${(await store.info(`${OTHER}/run-2`))!.nuid}` });
  await expect(checkpoints.read(OTHER)).rejects.toThrow(UndecodableEntry);

  await (await new Kvm(jetstream(nats)).open("boards")).put(`0.${ROOM}`, "{}");
  await store.putBlob({ name: `${OTHER}/left` }, Uint8Array.of(1));
  await nats.publish("$O.boards.C.half", "written before its writer was killed");
  expect(await checkpoints.sweep(0)).toBe(2);
  expect(await objects()).toEqual([`${OTHER}/run-2`, `${ROOM}/run-1`]);
  await expect(checkpoints.mark(ROOM)).rejects.toThrow(UndecodableEntry);
  expect(await checkpoints.remove(ROOM)).toEqual([]);
  expect([(await checkpoints.mark(ROOM)).isDeleted, await objects()]).toEqual([true, [`${OTHER}/run-2`]]);
  await nats.close();
  await server.stop();
});

test("[LB28] a written checkpoint counts as written, even if NATS does not remove the object that it replaces", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  let names = 0;
  const checkpoints = await kvCheckpoints(nats, "boards", { replicas: 1, partitions: 1, newName: () => `run-${++names}` });
  await checkpoints.write(ROOM, DUMP, 0);
  const { revision } = await checkpoints.mark(ROOM);
  const request = nats.request.bind(nats);
  nats.request = (subject, ...rest) => (subject.includes(".PURGE.") ? Promise.reject(new Error("no answer")) : request(subject, ...rest));
  expect((await checkpoints.write(ROOM, DUMP, revision)).kind).toBe("written");
  nats.request = request;
  expect(await checkpoints.sweep(0)).toBe(1);
  expect(await checkpoints.read(ROOM)).toEqual(DUMP);
  await nats.close();
  await server.stop();
});

test("[LB29] a checkpoint never replaces one that counts more or a deletion, even at the revision that the writer knows", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  let names = 0;
  const checkpoints = await kvCheckpoints(nats, "boards", { replicas: 1, partitions: 1, newName: () => `run-${++names}` });
  const dumpTo = (seq: number) => ({ ...DUMP, applied: { ...DUMP.applied, seq: seq as Seq } });
  await checkpoints.write(ROOM, dumpTo(5), 0);
  // The bucket lost its end after a paused writer had read this revision of an entry at 2.
  const { revision } = await checkpoints.mark(ROOM);
  expect(await checkpoints.write(ROOM, dumpTo(3), revision)).toMatchObject({ kind: "superseded" });
  expect(await checkpoints.read(ROOM)).toEqual(dumpTo(5));
  expect(await (await new Objm(jetstream(nats)).open("boards")).list()).toHaveLength(1);
  await checkpoints.remove(ROOM);
  const deletion = await checkpoints.mark(ROOM);
  expect(await checkpoints.write(ROOM, dumpTo(6), deletion.revision)).toMatchObject({ kind: "superseded" });
  expect((await checkpoints.mark(ROOM)).isDeleted).toBe(true);
  await nats.close();
  await server.stop();
});
