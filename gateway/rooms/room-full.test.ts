import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, ServerId, UserId } from "../../shared/ids.ts";
import { encodeDelta, type PresenceDelta } from "../../shared/wire/presence.ts";
import { PresenceRelay } from "../presence/presence-relay.ts";

const options = {
  gateway: "gw" as GatewayId,
  repeatMs: 500,
  keepaliveMs: 5_000,
  spectatorAfterMs: 60_000,
  memberBytesMax: 1_000,
  memberFieldsMax: 10,
  flushMs: 15,
  ownerSilenceMsMax: 2_000,
};
const [here, stranger] = ["client0000000001" as ClientId, "client0000000002" as ClientId];
const now = 0 as Millis;
const delta: PresenceDelta = {
  snapshot: true,
  present: [{ number: 1, client: here, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false }],
  gone: [],
  states: [],
};

test("[FULL1] a room over its budget admits no new client, but clients that were just in it", () => {
  const presence = new PresenceRelay(options, 0, now);
  const receiveShed = (shed: number): void => {
    presence.receiveInput(
      {
        kind: "answer",
        server: "rs-1" as ServerId,
        answer: {
          kind: "snapshot",
          epoch: 1 as Epoch,
          number: shed,
          status: { mode: "flat", participants: 1, presencePerSecond: 1, shed },
          delta: encodeDelta(delta),
        },
      },
      now,
    );
  };
  receiveShed(7); // Acks are delayed, joins are not refused.
  expect([presence.isFullFor(here), presence.isFullFor(stranger)]).toEqual([false, false]);
  receiveShed(8);
  expect([presence.isFullFor(here), presence.isFullFor(stranger)]).toEqual([false, true]);
});

test("[FULL2] a client counts as present once the owner has announced it", () => {
  const presence = new PresenceRelay(options, 0, now);
  expect(presence.knows(here)).toBe(false);
  presence.receiveInput(
    {
      kind: "answer",
      server: "rs-1" as ServerId,
      answer: {
        kind: "snapshot",
        epoch: 1 as Epoch,
        number: 1,
        status: { mode: "flat", participants: 1, presencePerSecond: 1, shed: 0 },
        delta: encodeDelta(delta),
      },
    },
    now,
  );
  expect([presence.knows(here), presence.knows(stranger)]).toEqual([true, false]);
});
