import { expect, test } from "vitest";

import { encodeToOwner } from "../../shared/bus/envelope.ts";
import type { ClientId, GatewayId, Millis, Seq, UserId } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { EditRelay, Unacked } from "./edit-relay.ts";
import { MemberConnections } from "./members.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";
import { UnackedBudget } from "./unacked-budget.ts";

const NATS_PAYLOAD_BYTES_MAX = 1024 ** 2;
const now = 0 as Millis;

/** Sizes of the messages in which these edits are sent again together. */
function messagesOf(edits: number, payloadBytes: number, user: string): number[] {
  const unacked = new Unacked(
    { forwardedEditsPerRoomMax: edits, forwardedBytesPerRoomMax: 1e9, forwardedKeptMs: 1 },
    new UnackedBudget({ bytesMax: 1e9 }),
  );
  const relay = new EditRelay("gw" as GatewayId, 1, new MemberConnections(), unacked);
  const effects: FollowedRoomEffect[] = [];
  const author = { user: user as UserId, client: "annannannannann1" as ClientId };
  const counter = (index: number): number => Number.MAX_SAFE_INTEGER - edits + index;
  for (let index = 0; index < edits; index++) {
    relay.receiveEdit(
      1 as ConnectionId,
      {
        author,
        counter: counter(index),
        ackedThrough: counter(index) - 1,
        parentSeq: counter(index) as Seq,
        payload: new Uint8Array(payloadBytes),
      },
      now,
      effects,
    );
  }
  relay.sendAllAgain(now, effects);
  return effects.flatMap((effect) => (effect.kind === "send-to-owner" ? [encodeToOwner(effect.message).byteLength] : []));
}

test.each([
  ["small edits of users with long names", 2_000, 130, "漢".repeat(128)],
  ["small edits", 2_000, 1, "ann"],
  ["large edits", 20, 524_288, "漢".repeat(128)],
])("[REL1] no message to the owner exceeds the max_payload of NATS: %s", (_, edits, payloadBytes, user) => {
  const messages = messagesOf(edits, payloadBytes, user);
  expect(Math.max(...messages)).toBeLessThan(NATS_PAYLOAD_BYTES_MAX);
  expect(messages.length).toBeLessThanOrEqual(edits);
});
