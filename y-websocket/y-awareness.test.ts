import { expect, test } from "vitest";

import type { UnixMillis } from "../shared/ids.ts";
import { type RoomAwareness, YAwareness } from "./y-awareness.ts";

const [OWN, BOB, CID] = [11, 22, 33];

function rig({ own }: { readonly own: number | undefined } = { own: OWN }) {
  const shown: unknown[] = [];
  const states = new Map<number, Record<string, unknown>>([[BOB, { name: "Bob" }]]);
  const room: RoomAwareness = { clientID: OWN, states, setLocalState: (state) => void shown.push(state) };
  const date = { is: 0 };
  const clock = { wallNow: () => date.is as UnixMillis };
  const awareness = new YAwareness(room, own, clock);
  shown.length = 0; // That it shows nothing yet.
  const say = (client: number, state: unknown): void => awareness.receive([{ client, clock: 1, state }]);
  return { awareness, shown, states, date, say };
}

test("[YAW1] what the client shows of itself is shown, once for as long as it stays so, and taken back", () => {
  const { shown, say } = rig();
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, null);
  expect(shown).toEqual([{ name: "Ann", mood: 1 }, null]);
});

test("[YAW2] what it repeats of others is not taken for its own, be they told of or in a tab beside it", () => {
  const { awareness, shown, say } = rig();
  awareness.tellAll();
  say(BOB, { name: "Bob" });
  say(CID, { name: "Cid in another tab" });
  expect(shown).toEqual([]);
});

test("[YAW3] who it is may be said late: by what it was not told", () => {
  const { awareness, shown, say } = rig({ own: undefined });
  awareness.tellAll();
  say(BOB, { name: "Bob" });
  say(CID, { name: "Ann" });
  say(BOB, { name: "Bob" });
  expect(shown).toEqual([{ name: "Ann" }]);
});

test("[YAW4] each telling outdoes all before it, those of a bridge that went before too, and the client is not told of itself", () => {
  const { awareness, states, date } = rig();
  states.set(OWN, { name: "Ann" });
  date.is = 1_000;
  expect(awareness.tellAll()).toEqual([{ client: BOB, clock: 1_000, state: { name: "Bob" } }]);
  states.delete(BOB);
  expect(awareness.tell([BOB])).toEqual([{ client: BOB, clock: 1_001, state: null }]);
  date.is = 500;
  expect(awareness.tell([BOB])[0]!.clock).toBe(1_002);
  date.is = 9_000;
  expect(awareness.tell([BOB])[0]!.clock).toBe(9_000);
});

test.each([["a text"], [7], [[1]]])("[YAW1] a state that is no object shows nothing: %j", (state) => {
  const { shown, say } = rig();
  say(OWN, state);
  expect(shown).toEqual([null]);
});

test("[YAW1] the SDK's own field cannot be shown", () => {
  const { shown, say } = rig();
  say(OWN, { yjs: 99, name: "Ann" });
  expect(shown).toEqual([{ name: "Ann" }]);
});
