import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { encodeNews, type PresenceNews } from "../../shared/wire/presence.ts";
import { RoomPresence } from "../presence/presence.ts";

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
const news: PresenceNews = {
  whole: true,
  present: [{ number: 1, client: here, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false }],
  gone: [],
  states: [],
};

test("[FULL1] a room over its budget takes nobody new, but whoever was just there", () => {
  const presence = new RoomPresence(options, 0, now);
  const tell = (shed: number): void => {
    presence.receive(
      {
        kind: "answer",
        answer: {
          kind: "whole",
          epoch: 1 as Epoch,
          number: shed,
          standing: { mode: "flat", participants: 1, presencePerSecond: 1, shed },
          news: encodeNews(news),
        },
      },
      now,
    );
  };
  tell(7); // Acks are delayed, joins are not refused.
  expect([presence.isFullFor(here), presence.isFullFor(stranger)]).toEqual([false, false]);
  tell(8);
  expect([presence.isFullFor(here), presence.isFullFor(stranger)]).toEqual([false, true]);
});

test("[FULL2] who is in the room is known as soon as its owner has told", () => {
  const presence = new RoomPresence(options, 0, now);
  expect(presence.knows(here)).toBe(false);
  presence.receive(
    {
      kind: "answer",
      answer: {
        kind: "whole",
        epoch: 1 as Epoch,
        number: 1,
        standing: { mode: "flat", participants: 1, presencePerSecond: 1, shed: 0 },
        news: encodeNews(news),
      },
    },
    now,
  );
  expect([presence.knows(here), presence.knows(stranger)]).toEqual([true, false]);
});
