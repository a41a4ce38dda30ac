/** Properties of objects in JetStream beyond the contract of object stores, on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { ObjectStore } from "@nats-io/obj";
import { expect, test } from "vitest";

import { objectSizes } from "../../shared/io/jetstream-object.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { startRealNats } from "../../test/contract/real-nats.ts";
import { jetstreamObjects } from "./object-stores.ts";

test("[JSO1] a listing names every object, also when the list with the sizes breaks off", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const store = await jetstreamObjects(jetstream(nats), "listed", 1);
  const names = ["acme.notes/1-1-a", "acme.notes/1-2-b", "acme.plan/1-1-c"];
  for (const name of names) await store.write(name, new Uint8Array(8));
  expect([...(await store.list())].toSorted()).toEqual(names.map((name) => [name, 8]));
  await store.remove(names[0]!);

  const broken = { list: () => Promise.reject(new Error("NATS is gone")) } as unknown as ObjectStore;
  const bucket = { name: "listed", store: broken, manager: await jetstreamManager(nats) };
  expect([...(await objectSizes(bucket))].toSorted()).toEqual(names.slice(1).map((name) => [name, undefined]));
  await nats.close();
  await server.stop();
});
