import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { encodeToOwner, type ToOwner } from "../../shared/bus/envelope.ts";
import { encodePresenceToOwner, type PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import { natsInbox } from "./nats-inbox.ts";

const room = "acme.notes" as RoomKey;
const subjects = subjectsOf("test");

test("[NAT21] an owner receives edits and presence on one subscription, separates them, and counts messages that are neither", async () => {
  const subscribed: string[] = [];
  let deliver: (error: null, message: { sid: number; data: Uint8Array }) => void = () => {};
  const nats = {
    subscribe: (subject: string, { callback }: { callback: typeof deliver }) => {
      subscribed.push(subject);
      deliver = callback;
      return { getID: () => 7 };
    },
    flush: () => Promise.resolve(),
  };
  const metrics = roomServerMetrics(new Registry());
  const heard: (ToOwner | PresenceToOwner)[] = [];
  await natsInbox(nats as unknown as NatsConnection, subjects, { log: SILENT_LOG, metrics }).subscribe(room, {
    receiveMessage: (message) => void heard.push(message),
    receivePresence: (message) => void heard.push(message),
  });

  const gateway = "gw" as GatewayId;
  const said = [{ kind: "sync", gateway }, { kind: "check-ownership" }, { kind: "edits", gateway, edits: [] }] as const;
  deliver(null, { sid: 7, data: encodePresenceToOwner(said[0]) });
  deliver(null, { sid: 7, data: encodeToOwner(said[1]) });
  deliver(null, { sid: 7, data: encodeToOwner(said[2]) });
  for (const bytes of [[], [0xff], [encodePresenceToOwner(said[0])[0]!], [encodeToOwner(said[2])[0]!]])
    deliver(null, { sid: 7, data: Uint8Array.from(bytes) });
  expect(subscribed).toEqual([subjects.toOwner(room)]);
  expect(heard).toEqual(said);
  expect((await metrics.messagesUnread.get()).values).toMatchObject([{ value: 4 }]);
});
