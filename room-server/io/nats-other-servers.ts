/** Asks other room servers, and placement, by request and reply. */

import { ClaimReply, LocateReply, OrderReply } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { askNats } from "../../shared/io/nats-ask.ts";
import type { OtherServers } from "../ports.ts";

/** A copy of a busy room takes a while to read. */
const FOLLOW_MS_MAX = 10_000;
const EXPECT_MS_MAX = 2_000;
/** The room's edits wait for it. */
const CLAIM_MS_MAX = 1_000;
const LOCATE_MS_MAX = 500;

export function natsOtherServers(nats: NatsConnection, subjects: Subjects): OtherServers {
  return {
    follow: async (server, room) =>
      (await askNats(nats, subjects.order(server), { kind: "follow", room, generation: 0 }, OrderReply, FOLLOW_MS_MAX))?.kind === "done",
    expect: async (server, room) =>
      (await askNats(nats, subjects.order(server), { kind: "expect", room, generation: 0 }, OrderReply, EXPECT_MS_MAX))?.kind === "done",
    claim: (server, request) => askNats(nats, subjects.claim(server), request, ClaimReply, CLAIM_MS_MAX),
    locate: async (room, suspects) => {
      const reply = await askNats(nats, subjects.locate, { room, suspects }, LocateReply, LOCATE_MS_MAX);
      return reply?.kind === "server" ? reply.server : undefined;
    },
  };
}
