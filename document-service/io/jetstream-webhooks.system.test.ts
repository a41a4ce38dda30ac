/** The webhook queue on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { webhookEndpoints } from "../../shared/settings/webhook-endpoints.ts";
import { startRealNats } from "../../test/contract/real-nats.ts";
import { documentServiceSettings } from "../config.ts";
import { jetstreamWebhooks } from "./jetstream-webhooks.ts";

const SETTLED_MS_MIN = 5_000;

test("[WBQ1] a slow event that waits for another slow event is not delivered a second time in the meantime", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const subjects = subjectsOf("told");
  const settings = readSettings(documentServiceSettings, { env: {}, flags: {} });
  const [endpoint] = webhookEndpoints("https://a.example/");
  await jetstreamWebhooks(nats, jetstream(nats), subjects, { ...settings, webhookUrls: [endpoint!], logReplicas: 1 });
  const { config } = await (await jetstreamManager(nats)).consumers.info(subjects.webhooksStream, endpoint!.name);
  expect(config.ack_wait! / 1_000_000 - 2 * settings.webhookTimeoutMs).toBeGreaterThan(SETTLED_MS_MIN);
  await nats.close();
  await server.stop();
});
