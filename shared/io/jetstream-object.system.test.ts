/** The chunks that dead writers leave in a JetStream object store, on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { expect, test } from "vitest";

import { startRealNats } from "../../test/contract/real-nats.ts";
import { eventually } from "../../test/system/eventually.ts";
import { objectBucket } from "./jetstream-stores.ts";
import { readObject, removeObject, removeOrphanChunks } from "./jetstream-object.ts";
import { connectNats } from "./nats.ts";

const CHUNK = 128 * 1024;

test("[UNC1] chunks whose writer was killed before it named them are removed once they are old, and named chunks stay", async () => {
  const server = await startRealNats();
  const [nats, dying] = await Promise.all([
    connectNats({ servers: server.url, name: "test" }),
    connectNats({ servers: server.url, name: "dying" }),
  ]);
  const store = await objectBucket(jetstream(nats), "unnamed", 1);
  const bucket = { name: "unnamed", store, manager: await jetstreamManager(nats) };
  const chunks = async () =>
    Object.values((await bucket.manager.streams.info("OBJ_unnamed", { subjects_filter: "$O.unnamed.C.>" })).state.subjects ?? {}).sort();

  const names = ["acme.a/1", "acme.a/2", "acme.b/1"];
  for (const name of names) await store.putBlob({ name }, new Uint8Array(2 * CHUNK).fill(name.length));
  await store.putBlob({ name: "acme.empty/1" }, new Uint8Array());
  const endless = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(3 * CHUNK + 1)) });
  const writing = (await objectBucket(jetstream(dying), "unnamed", 1)).put({ name: "acme.c/1" }, endless).catch(() => "never ended");
  await eventually("its chunks are there", async () => (await chunks()).includes(3));
  await dying.close();

  expect(await removeOrphanChunks(bucket, 3_600_000)).toBe(0);
  expect(await chunks()).toEqual([2, 2, 2, 3]);
  expect(await removeOrphanChunks(bucket, 0)).toBe(1);
  expect(await chunks()).toEqual([2, 2, 2]);
  expect(await removeOrphanChunks(bucket, 0)).toBe(0);
  for (const name of names) expect((await readObject(bucket, name))?.byteLength).toBe(2 * CHUNK);

  const partial = { ...bucket, store: Object.assign(Object.create(store) as typeof store, { list: () => Promise.resolve([]) }) };
  expect(await removeOrphanChunks(partial, 0), "a listing that breaks off costs nothing").toBe(0);
  void writing;
  await nats.close();
  await server.stop();
});

test("[UNC2] an object is removed completely, also from a store that has no storage left for a marker", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const store = await new Objm(jetstream(nats)).create("full", { max_bytes: 6 * CHUNK });
  const bucket = { name: "full", store, manager: await jetstreamManager(nats) };
  const messages = async () => (await bucket.manager.streams.info("OBJ_full")).state.messages;
  const write = (name: string) => store.putBlob({ name }, new Uint8Array(2 * CHUNK));

  await write("acme.a/1");
  await write("acme.a/2");
  await expect(write("acme.a/3")).rejects.toThrow(/maximum bytes exceeded/);
  await removeOrphanChunks(bucket, 0); // The parts of the refused one.
  for (const size of [10_000, 1_000, 0]) {
    const isFull = async () => "error" in (await nats.request("$O.full.M.filler", new Uint8Array(size))).json<object>();
    while (!(await isFull())); // Until not even a marker fits.
  }
  await removeObject(bucket, "acme.a/1");
  expect(await readObject(bucket, "acme.a/1")).toBeUndefined();
  await write("acme.a/3");
  expect((await readObject(bucket, "acme.a/3"))?.byteLength).toBe(2 * CHUNK);
  const before = await messages();
  await removeObject(bucket, "acme.a/3");
  expect(before - (await messages()), "two chunks and the entry").toBe(3);
  await removeObject(bucket, "acme.a/3");
  await nats.close();
  await server.stop();
});

test("[UNC3] an object that is removed while it is read is missing, and not damaged", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const store = await objectBucket(jetstream(nats), "replaced", 1);
  const bucket = { name: "replaced", store, manager: await jetstreamManager(nats) };
  await store.putBlob({ name: "acme.a/1" }, new Uint8Array(2 * CHUNK));
  const removedAfterInfo = Object.assign(Object.create(store) as typeof store, {
    info: async (name: string) => {
      const info = await store.info(name);
      await removeObject(bucket, name);
      return info;
    },
  });
  expect(await readObject({ ...bucket, store: removedAfterInfo }, "acme.a/1")).toBeUndefined();
  await nats.close();
  await server.stop();
});
