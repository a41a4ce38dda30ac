/** The webhook queue on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { webhookEndpoints } from "../../shared/settings/webhook-endpoints.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { startRealNats, until } from "../../test/contract/real-nats.ts";
import { documentServiceSettings } from "../config.ts";
import { jetstreamWebhooks } from "./jetstream-webhooks.ts";

const SETTLED_MS_MIN = 5_000;

test("[WBQ1] a slow event that waits for another slow event is not delivered a second time in the meantime", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const subjects = subjectsOf("told");
  const settings = readSettings(documentServiceSettings, { env: {}, flags: {} });
  const [endpoint] = webhookEndpoints("https://a.example/");
  await jetstreamWebhooks(nats, jetstream(nats), subjects, { ...settings, webhookUrls: [endpoint!], logReplicas: 1 }, SILENT_LOG);
  const { config } = await (await jetstreamManager(nats)).consumers.info(subjects.webhooksStream, endpoint!.name);
  expect(config.ack_wait! / 1_000_000 - 2 * settings.webhookTimeoutMs).toBeGreaterThan(SETTLED_MS_MIN);
  await nats.close();
  await server.stop();
});

test("[WBQ2] events are queued and taken after the consumer or the stream was lost, while a service waits for events", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const subjects = subjectsOf("lost");
  const manager = await jetstreamManager(nats);
  const [endpoint] = webhookEndpoints("https://a.example/");
  const settings = readSettings(documentServiceSettings, { env: {}, flags: {} });
  const losses: unknown[] = [];
  const log = { ...SILENT_LOG, error: (_: object, text: string) => void losses.push(text) };
  const queue = await jetstreamWebhooks(nats, jetstream(nats), subjects, { ...settings, webhookUrls: [endpoint!], logReplicas: 1 }, log);
  const stopping = new AbortController();
  const taken: string[] = [];
  const serving = (async () => {
    while (!stopping.signal.aborted) {
      try {
        for await (const { id, settle } of queue.take(endpoint!, 10, stopping.signal)) {
          taken.push(id);
          settle({ kind: "done" });
        }
      } catch (error) {
        expect(error).toBeInstanceOf(Error); // The host logs it and goes on.
      }
    }
  })();
  const take = async (id: string): Promise<unknown> => {
    // The change queue repeats a failed add too: nats-server may still be removing the files of the stream.
    await until(
      () =>
        queue.add(id, { type: "room.deleted", tenant: "acme", room: "plan", at: 0 }).then(
          () => true,
          () => false,
        ),
      `queue "${id}"`,
    );
    return until(() => taken.includes(id), `the event "${id}"`);
  };
  await take("before");
  await manager.consumers.delete(subjects.webhooksStream, endpoint!.name);
  await until(() => losses.length === 1, "the report of a lost consumer");
  await take("after the loss of the consumer");
  await manager.streams.delete(subjects.webhooksStream);
  await take("after the loss of the stream");
  await manager.streams.delete(subjects.webhooksStream);
  const ids = Array.from({ length: 200 }, (_, index) => `concurrent ${index}`);
  await Promise.all(ids.map(take));
  expect(losses.length, "200 requests share repairs").toBeLessThan(20);
  await until(async () => (await queue.waiting(endpoint!)) === 0, "the end of the queue");
  stopping.abort();
  await serving;
  await nats.close();
  await server.stop();
});

/** A queue on a real nats-server. `stop` ends both. */
async function startQueue(name: string, urls: string, limits: { webhookEventsMax: number; webhookBytesMax: number }) {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const subjects = subjectsOf(name);
  const settings = { ...readSettings(documentServiceSettings, { env: {}, flags: {} }), ...limits };
  const endpoints = webhookEndpoints(urls);
  const open = () =>
    jetstreamWebhooks(nats, jetstream(nats), subjects, { ...settings, webhookUrls: endpoints, logReplicas: 1 }, SILENT_LOG);
  const stop = async (): Promise<void> => {
    await nats.close();
    await server.stop();
  };
  return { queue: await open(), open, endpoints, subjects, manager: await jetstreamManager(nats), stop };
}

test("[WBQ3] a tenant with more undelivered events than its share loses its own oldest, and none of another tenant", async () => {
  const { queue, endpoints, stop } = await startQueue("share", "big=https://a.example/,small=https://b.example/", {
    webhookEventsMax: 40,
    webhookBytesMax: 64 * 1024,
  });
  await queue.add("small", { type: "room.deleted", tenant: "small", room: "plan", at: 0 });
  for (let added = 0; added < 100; added++)
    await queue.add(`big ${added}`, { type: "room.deleted", tenant: "big", room: `r${added}`, at: 0 });
  const [big, small] = await Promise.all(endpoints.map((endpoint) => queue.waiting(endpoint)));
  expect([big, small]).toEqual([24, 1]);
  for await (const { id } of queue.take(endpoints[0]!, 1, new AbortController().signal)) {
    expect(id, "the newest events remain").toBe("big 76");
    break;
  }
  await stop();
});

test("[WBQ4] delivered events need no place in the queue, also in a stream that an earlier release made", async () => {
  const limits = { webhookEventsMax: 1_000, webhookBytesMax: 1024 * 1024 };
  const { open, endpoints, manager, subjects, stop } = await startQueue("places", "acme=https://a.example/", limits);
  await manager.streams.delete(subjects.webhooksStream);
  await manager.streams.add({ name: subjects.webhooksStream, subjects: [subjects.allWebhooks], storage: "file", max_msgs: 1_000 });
  const queue = await open();
  await queue.add("delivered", { type: "room.deleted", tenant: "acme", room: "plan", at: 0 });
  await queue.add("unwanted", { type: "room.deleted", tenant: "other", room: "plan", at: 0 });
  await queue.add("waits", { type: "room.deleted", tenant: "acme", room: "plan", at: 0 });
  for await (const { settle } of queue.take(endpoints[0]!, 1, new AbortController().signal)) {
    settle({ kind: "done" });
    break;
  }
  const held = async () => (await manager.streams.info(subjects.webhooksStream)).state.messages;
  await until(async () => (await held()) === 1, "the removal of the delivered event");
  expect(await queue.waiting(endpoints[0]!)).toBe(1);
  await stop();
});

test("[WBQ5] the endpoint of all tenants receives events of others while all events of one tenant wait for their next try", async () => {
  const { endpoints, manager, subjects, stop } = await startQueue("others", "https://a.example/,acme=https://b.example/", {
    webhookEventsMax: 100_000,
    webhookBytesMax: 64 * 1024 ** 2,
  });
  const unsettledMax = async (name: string) => (await manager.consumers.info(subjects.webhooksStream, name)).config.max_ack_pending!;
  const { max_msgs_per_subject: tenantMax } = (await manager.streams.info(subjects.webhooksStream)).config;
  expect((await unsettledMax(endpoints[0]!.name)) - tenantMax).toBe(10_000);
  expect(await unsettledMax(endpoints[1]!.name)).toBe(10_000);
  await stop();
});
