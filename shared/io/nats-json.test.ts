import type { Msg, NatsConnection, SubscriptionOptions } from "nats";
import { expect, test } from "vitest";

import { encodeJson } from "../bus/json-messages.ts";
import { ServiceHeartbeat } from "../bus/placement-messages.ts";
import { respond } from "./nats.ts";
import { subscribeJson, type SubscribeJsonOptions } from "./nats-json.ts";

const alive = { service: "d1", url: "http://127.0.0.1:7000", time: 0 };

function hearing(options?: SubscribeJsonOptions) {
  const received: unknown[] = [];
  let subscribed: SubscriptionOptions = {};
  const nats = { subscribe: (_: string, given: SubscriptionOptions) => void (subscribed = given) } as unknown as NatsConnection;
  subscribeJson(nats, "services", ServiceHeartbeat, (message, { subject }) => void received.push(message, subject), options);
  const arrive = (data: Uint8Array, error: Error | null = null): void =>
    void subscribed.callback!(error, { subject: "services", data } as Msg);
  return { received, arrive, queue: subscribed.queue };
}

test("[HEAR1] a valid message is received, and any other message is skipped", () => {
  const { received, arrive, queue } = hearing({ queue: "placement" });
  for (const data of [encodeJson(alive), encodeJson({ service: 1 }), new TextEncoder().encode("no json")]) arrive(data);
  expect([received, queue]).toEqual([[alive, "services"], "placement"]);
});

test("[HEAR2] a subscriber can also receive invalid messages, with the error of NATS if there is one", () => {
  const others: (Error | null)[] = [];
  const { received, arrive } = hearing({ receiveOther: (error) => void others.push(error) });
  const denied = new Error("permissions violation");
  arrive(encodeJson({ service: 1 }));
  arrive(encodeJson(alive), denied);
  expect([received, others]).toEqual([[], [null, denied]]);
});

test("[PRM11] a reply goes to an inbox only, never to another subject that the sender names", () => {
  const sent: string[] = [];
  for (const reply of [
    "production.inbox.gateway.x1",
    "_INBOX.x1",
    "production.log.0.acme.notes",
    "production.owner.acme.inbox",
    "",
    undefined,
  ])
    respond({ ...(reply === undefined ? {} : { reply }), respond: () => sent.push(String(reply)) > 0 }, new Uint8Array());
  expect(sent).toEqual(["production.inbox.gateway.x1", "_INBOX.x1"]);
});
