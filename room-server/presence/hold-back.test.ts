import { expect, test } from "vitest";

import type { Standing } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { Presence, type PresenceEffect } from "./presence.ts";

const TICK_MS = 50;
const options = { participantsMax: 100, presenceBytesMax: 100_000, presenceTickMs: TICK_MS, presenceGatherMs: 0, gatewaySilenceMsMax: 2_000, presenceSilenceMsMax: 12_000, beaconMs: 1_000, beaconsWhenQuiet: 3, flatParticipantsMax: 50, flatAgainParticipants: 40, modeMsMin: 5_000 };
const gateway = "gw" as GatewayId;
const client = "client0000000001" as ClientId;
const at = (ms: number) => ms as Millis;

/** A room of one, who shows something at every turn of ten milliseconds for a second; how often the room is told. */
function newsInASecond(level: number): { news: number; standing: Standing | undefined } {
  const presence = new Presence(1 as Epoch, options, at(0));
  presence.receive({ kind: "members", gateway, epoch: 0 as Epoch, version: 1, whole: true, entered: [{ client, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false }], exited: [] }, at(0));
  presence.receive({ kind: "tick" }, at(0));
  presence.receive({ kind: "hold-back", level }, at(0));
  const effects: PresenceEffect[] = [];
  for (let ms = 1; ms <= 1_000; ms++) {
    if (ms % 10 === 0) presence.receive({ kind: "states", gateway, number: ms, fresh: true, states: [{ client, fields: [{ name: "tool", value: Uint8Array.of(ms % 251) }] }] }, at(ms));
    if ((presence.dueAt ?? Number.POSITIVE_INFINITY) <= ms) effects.push(...presence.receive({ kind: "tick" }, at(ms)));
  }
  const said = effects.flatMap((effect) => (effect.kind === "broadcast" ? [effect.message] : []));
  const head = said.find((message) => message.kind === "head");
  return { news: said.filter(({ kind }) => kind === "news").length, standing: head?.kind === "head" ? head.standing : undefined };
}

test("[FAIR7] a room that is held back is told less often, and how often each may tell of itself", () => {
  expect([0, 1, 2].map((level) => newsInASecond(level).news)).toEqual([20, 10, 5]);
  expect(newsInASecond(1).standing).toMatchObject({ shed: 4, presencePerSecond: 10 });
  expect([4, 5].map((level) => newsInASecond(level).standing)).toMatchObject([{ shed: 7, presencePerSecond: 1 }, { shed: 8, presencePerSecond: 1 }]);
});
