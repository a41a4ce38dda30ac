import { expect, test } from "vitest";

import type { PresenceStatus } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { OwnerPresence, type OwnerPresenceEffect } from "./presence.ts";

const TICK_MS = 50;
const moments = { next: (now: Millis) => now, after: (now: Millis, ticks: number) => (now + TICK_MS * ticks) as Millis };
const options = {
  participantsMax: 100,
  presenceBytesMax: 100_000,
  presenceGatherMs: 0,
  gatewaySilenceMsMax: 2_000,
  presenceSilenceMsMax: 12_000,
  beaconMs: 1_000,
  beaconsWhenQuiet: 3,
  flatParticipantsMax: 50,
  flatAgainParticipants: 40,
  modeMsMin: 5_000,
};
const gateway = "gw" as GatewayId;
const client = "client0000000001" as ClientId;
const at = (ms: number) => ms as Millis;

/** A room of one participant, who changes state every 10 ms for a second. Returns how often the room sends a delta. */
function deltasInASecond(level: number): { delta: number; status: PresenceStatus | undefined } {
  const presence = new OwnerPresence(1 as Epoch, options, moments, at(0));
  presence.receivePresenceInput(
    {
      kind: "members",
      gateway,
      epoch: 0 as Epoch,
      version: 1,
      snapshot: true,
      entered: [{ client, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false }],
      exited: [],
    },
    at(0),
  );
  presence.receivePresenceInput({ kind: "tick" }, at(0));
  presence.receivePresenceInput({ kind: "hold-back", level }, at(0));
  const effects: OwnerPresenceEffect[] = [];
  for (let ms = 1; ms <= 1_000; ms++) {
    if (ms % 10 === 0)
      presence.receivePresenceInput(
        {
          kind: "states",
          gateway,
          number: ms,
          fresh: true,
          states: [{ client, fields: [{ name: "tool", value: Uint8Array.of(ms % 251) }] }],
        },
        at(ms),
      );
    if ((presence.dueAt ?? Number.POSITIVE_INFINITY) <= ms) effects.push(...presence.receivePresenceInput({ kind: "tick" }, at(ms)));
  }
  const messages = effects.flatMap((effect) => (effect.kind === "broadcast" ? [effect.message] : []));
  const head = messages.find((message) => message.kind === "head");
  return { delta: messages.filter(({ kind }) => kind === "delta").length, status: head?.kind === "head" ? head.status : undefined };
}

test("[FAIR7] a throttled room sends deltas less often, and permits fewer updates per participant", () => {
  expect([0, 1, 2].map((level) => deltasInASecond(level).delta)).toEqual([20, 10, 5]);
  expect(deltasInASecond(1).status).toMatchObject({ shed: 4, presencePerSecond: 10 });
  expect([4, 5].map((level) => deltasInASecond(level).status)).toMatchObject([
    { shed: 7, presencePerSecond: 1 },
    { shed: 8, presencePerSecond: 1 },
  ]);
});

/** A room of one participant, who changes state every 10 ms. Returns its statuses as sent until then. */
function statusesUntil(endMs: number, holdBacks: ReadonlyMap<number, number>): { ms: number; shed: number }[] {
  const presence = new OwnerPresence(1 as Epoch, options, moments, at(0));
  presence.receivePresenceInput(
    {
      kind: "members",
      gateway,
      epoch: 0 as Epoch,
      version: 1,
      snapshot: true,
      entered: [{ client, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false }],
      exited: [],
    },
    at(0),
  );
  const statuses: { ms: number; shed: number }[] = [];
  for (let ms = 0; ms <= endMs; ms += 10) {
    presence.receivePresenceInput(
      {
        kind: "states",
        gateway,
        number: ms + 1,
        fresh: true,
        states: [{ client, fields: [{ name: "tool", value: Uint8Array.of((ms / 10) % 251) }] }],
      },
      at(ms),
    );
    const level = holdBacks.get(ms);
    if (level !== undefined) presence.receivePresenceInput({ kind: "hold-back", level }, at(ms));
    if ((presence.dueAt ?? Number.POSITIVE_INFINITY) > ms) continue;
    for (const effect of presence.receivePresenceInput({ kind: "tick" }, at(ms)))
      if (effect.kind === "broadcast" && effect.message.kind === "head") statuses.push({ ms, shed: effect.message.status.shed });
  }
  return statuses;
}

test("[FAIR9] a changed status is sent at once, even if a delta is due at that moment and deltas never pause", () => {
  const statuses = statusesUntil(
    9_000,
    new Map([
      [5_000, 5],
      [7_000, 0],
    ]),
  ); // Deltas are due every 50 ms, at level 5 every 200 ms.
  expect(statuses).toContainEqual({ ms: 5_000, shed: 8 });
  expect(statuses).toContainEqual({ ms: 7_000, shed: 0 });
  const sameRate = statusesUntil(
    9_000,
    new Map([
      [5_000, 4],
      [7_350, 5],
    ]),
  );
  expect(sameRate).toContainEqual({ ms: 7_350, shed: 8 });
});

test("[FAIR10] the status is sent again every second while deltas never pause, so that a lost one is repaired", () => {
  const statuses = statusesUntil(9_000, new Map([[5_000, 5]]));
  expect(statuses.filter(({ shed }) => shed === 8).length).toBeGreaterThanOrEqual(4);
  expect(statuses.length).toBeLessThanOrEqual(11);
});
