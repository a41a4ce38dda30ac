/** Properties of objects in JetStream beyond the contract of object stores, on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";

import { connectNats } from "../../shared/io/nats.ts";
import { startRealNats } from "../../test/contract/real-nats.ts";
import { jetstreamObjects } from "./object-stores.ts";

test("[JSO1] objects are listed without a consumer, which a lost connection would end with a partial list", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const store = await jetstreamObjects(jetstream(nats), "listed", 1);
  const names = ["acme.notes/1-1-a", "acme.notes/1-2-b", "acme.plan/1-1-c"];
  for (const name of names) await store.write(name, new Uint8Array(8));
  const asked: string[] = [];
  nats.subscribe("$JS.API.CONSUMER.CREATE.OBJ_listed.>", { callback: (_, { subject }) => void asked.push(subject) });
  await nats.flush();
  expect([...(await store.list()).keys()].toSorted()).toEqual(names);
  await store.remove(names[0]!);
  expect([...(await store.list()).keys()].toSorted()).toEqual(names.slice(1));
  await nats.flush();
  const { state } = await (await jetstreamManager(nats)).streams.info("OBJ_listed");
  expect([asked, state.consumer_count]).toEqual([[], 0]);
  await nats.close();
  await server.stop();
});
