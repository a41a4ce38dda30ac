/** The state that NATS keeps of a subscription whose connection was lost before NATS confirmed it. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { LocalOwner } from "../../shared/bus/envelope.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import { natsFanOut } from "./nats-fan-out.ts";
import { natsInbox } from "./nats-inbox.ts";

const room = "acme.notes" as RoomKey;
const subjects = subjectsOf("test");
const deaf = { openEpoch: undefined, receiveMessage: () => {}, receivePresence: () => {} };

/**
 * The connection is lost between a subscription and NATS's answer; the client keeps the subscription for the next
 * connection.
 */
function brokenConnection() {
  const kept: string[] = [];
  const subscribe = (subject: string) => {
    kept.push(subject);
    return { getID: () => 1, unsubscribe: () => void kept.splice(kept.indexOf(subject), 1) };
  };
  const nats = {
    subscribe,
    flush: () => Promise.reject(new Error("connection disconnected")),
    status: async function* () {},
  } as unknown as NatsConnection;
  return { nats, kept };
}

test("[SUBS2] without an answer from NATS, no gateway of the same process reaches the owner", async () => {
  const localOwners = new Map<RoomKey, LocalOwner>();
  const inbox = natsInbox(brokenConnection().nats, subjects, { log: SILENT_LOG, metrics: roomServerMetrics(new Registry()), localOwners });
  await expect(inbox.subscribe(room, deaf)).rejects.toThrow("disconnected");
  expect(localOwners.size).toBe(0);
});

test.each([
  [
    "messages from gateways to the owner",
    (nats: NatsConnection) =>
      natsInbox(nats, subjects, { log: SILENT_LOG, metrics: roomServerMetrics(new Registry()) }).subscribe(room, deaf),
  ],
  ["announcements", (nats: NatsConnection) => natsFanOut(nats, subjects).subscribe(room, () => {})],
])("[SUBS1] without an answer from NATS no subscription to %s of a room remains", async (_, subscribeOn) => {
  const { nats, kept } = brokenConnection();
  await expect(subscribeOn(nats)).rejects.toThrow("disconnected");
  expect(kept).toEqual([]);
});
