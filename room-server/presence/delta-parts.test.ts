import { expect, test } from "vitest";

import type { PresenceFromOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { encodeSplitDelta } from "../../shared/presence/split-delta.ts";
import { decodeDelta, type PresenceDelta } from "../../shared/wire/presence.ts";
import { PresenceView } from "../../gateway/presence/presence-view.ts";
import { OwnerPresence, type OwnerPresenceEffect } from "./presence.ts";

const moments = { next: (now: Millis) => now, after: (now: Millis, ticks: number) => (now + 50 * ticks) as Millis };
const options = {
  participantsMax: 100,
  presenceBytesMax: 768 * 1024,
  presenceGatherMs: 0,
  gatewaySilenceMsMax: 2_000,
  presenceSilenceMsMax: 12_000,
  beaconMs: 1_000,
  beaconsWhenQuiet: 3,
  flatParticipantsMax: 50,
  flatAgainParticipants: 40,
  modeMsMin: 5_000,
};
const DELTA_BYTES_MAX = 256 * 1024;
const [gateway, epoch] = ["gw" as GatewayId, 1 as Epoch];
const SIXTY_ONE = Array.from({ length: 61 }, (_, index) => ({
  client: `client${String(index).padStart(10, "0")}` as ClientId,
  user: "ann" as UserId,
  name: "Ann",
  canWrite: true,
  spectator: false,
}));
/** Sixty-four fields with names of the maximum length. */
const named = (set: string, text: string) =>
  Array.from({ length: 64 }, (_, index) => ({ name: `${set}${index}`.padEnd(63, "\u2654"), value: new TextEncoder().encode(text) }));

/** The state of each participant, in any order. */
const shownIn = ({ present, states }: PresenceDelta) => [
  present.map(({ client }) => client).sort(),
  Object.fromEntries(states.map(({ number, fields }) => [number, fields.map(({ name }) => name).sort()])),
];

test("[PRS22] fields removed faster than the room announces become several deltas, each within the NATS limit, and complete", () => {
  const room = new OwnerPresence(epoch, options, moments, 0 as Millis);
  const view = new PresenceView();
  view.receiveEpoch(epoch);
  let turn = 0;
  let now = 0;
  const show = (...fields: ReturnType<typeof named>): void =>
    void room.receivePresenceInput(
      { kind: "states", gateway, number: (turn += 1), fresh: true, states: SIXTY_ONE.map(({ client }) => ({ client, fields })) },
      now as Millis,
    );
  const tick = (): OwnerPresenceEffect[] => room.receivePresenceInput({ kind: "tick" }, (now += 50) as Millis);
  const deltasIn = (effects: OwnerPresenceEffect[]) =>
    effects.flatMap((effect): (PresenceFromOwner & { kind: "delta" })[] =>
      effect.kind === "broadcast" && effect.message.kind === "delta" ? [effect.message] : [],
    );
  const wholeOf = () =>
    tick().flatMap((effect) => (effect.kind === "answer" && effect.answer.kind === "snapshot" ? [effect.answer] : []))[0]!;

  room.receivePresenceInput({ kind: "members", gateway, epoch, version: 1, snapshot: true, entered: SIXTY_ONE, exited: [] }, 0 as Millis);
  show(...named("a", "1"));
  room.receivePresenceInput({ kind: "sync", gateway }, 0 as Millis);
  view.receiveSnapshot(wholeOf());
  show(...named("a", ""), ...named("b", "1"));
  show(...named("b", ""), ...named("c", "1"));
  const delta = deltasIn(tick());
  expect(delta.length).toBeGreaterThan(1);
  for (const one of delta) {
    expect(one.delta.byteLength).toBeLessThanOrEqual(DELTA_BYTES_MAX);
    view.receiveDelta(one);
  }
  room.receivePresenceInput({ kind: "sync", gateway }, now as Millis);
  expect(view.isBehind).toBe(false);
  expect(shownIn(view.everything)).toEqual(shownIn(decodeDelta(wholeOf().delta)!));
  expect(view.shown(SIXTY_ONE[60]!.client, named("c", "1")[63]!.name)).toEqual(Uint8Array.of(0x31));
});

test("[PRS23] very many simultaneous joins and leaves are announced in several deltas, and few in one", () => {
  const participant = (number: number) => ({ number, ...SIXTY_ONE[0]!, name: "\u2654".repeat(256) });
  const many = Array.from({ length: 1_000 }, (_, index) => index + 1);
  const delta: PresenceDelta = {
    snapshot: false,
    present: many.map(participant),
    gone: many,
    states: [{ number: 1, fields: named("a", "1") }],
  };
  const parts = encodeSplitDelta(delta).map((bytes) => decodeDelta(bytes)!);
  expect(parts.length).toBeGreaterThan(2);
  expect({
    snapshot: false,
    present: parts.flatMap(({ present }) => present),
    gone: parts.flatMap(({ gone }) => gone),
    states: parts.flatMap(({ states }) => states),
  }).toEqual(delta);
  expect(encodeSplitDelta({ ...delta, present: [participant(1)] })).toHaveLength(1);
});
