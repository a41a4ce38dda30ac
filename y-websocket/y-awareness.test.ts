import { expect, test } from "vitest";

import type { UnixMillis } from "../shared/ids.ts";
import { type RoomAwareness, YAwareness } from "./y-awareness.ts";

const [OWN, BOB, CID] = [11, 22, 33];

function rig({ own }: { readonly own: number | undefined } = { own: OWN }) {
  const shown: unknown[] = [];
  const states = new Map<number, Record<string, unknown>>([[BOB, { name: "Bob" }]]);
  const room: RoomAwareness = { clientID: OWN, states, setLocalState: (state) => void shown.push(state) };
  const date = { is: 0 };
  const awareness = new YAwareness(room, own, { wallNow: () => date.is as UnixMillis });
  shown.length = 0; // That it shows nothing yet.
  const say = (client: number, state: unknown, clock = 1): void => awareness.receive([{ client, clock, json: JSON.stringify(state) }]);
  return { awareness, shown, states, date, say };
}

test("[YAW1] what the client shows of itself is shown with its clock, and taken back", () => {
  const { shown, say } = rig();
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 }, 2);
  say(OWN, { name: "Ann", mood: 0 }, 1);
  say(OWN, null, 3);
  expect(shown).toEqual([{ name: "Ann", mood: 1, "y-websocket": 1 }, { name: "Ann", mood: 1, "y-websocket": 2 }, null]);
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
  expect(shown).toEqual([{ name: "Ann", "y-websocket": 1 }]);
});

test("[YAW4] of the SDK's clients each telling outdoes all before it, those of a bridge that went before too; that one is gone is told under the last", () => {
  const { awareness, states, date } = rig();
  states.set(OWN, { name: "Ann" });
  date.is = 1_000;
  expect(awareness.tellAll(), "but for itself").toEqual([{ client: BOB, clock: 1_000, json: `{"name":"Bob"}` }]);
  expect(awareness.tell([BOB])[0]!.clock).toBe(1_001);
  date.is = 500;
  expect(awareness.tell([BOB])[0]!.clock).toBe(1_002);
  states.delete(BOB);
  date.is = 9_000;
  expect(awareness.tell([BOB])).toEqual([{ client: BOB, clock: 1_002, json: "null" }]);
});

test("[YAW5] of y-websocket's clients it tells their own clock, which a tab that is told of itself knows already", () => {
  const { awareness, states, date } = rig();
  date.is = 1_000;
  states.set(BOB, { name: "Bob", "y-websocket": 7 });
  expect(awareness.tellAll()).toEqual([{ client: BOB, clock: 7, json: `{"name":"Bob"}` }]);
  states.delete(BOB);
  expect(awareness.tell([BOB])).toEqual([{ client: BOB, clock: 7, json: "null" }]);
});

test.each([["a text"], [7], [[1]]])("[YAW6] a state that is no object shows nothing: %j", (state) => {
  const { shown, say } = rig();
  say(OWN, state);
  expect(shown).toEqual([null]);
});

test("[YAW6] fields that the SDK does not take, or keeps to itself, are left out, and a state that is too long, or no JSON, is not shown", () => {
  const { awareness, shown, say } = rig();
  say(OWN, { yjs: 99, "y-websocket": 5, "@me": 1, "": 1, ["x".repeat(65)]: 1, ["\ud800"]: 1, name: "Ann" });
  say(OWN, { name: "x".repeat(10_000) }, 2);
  awareness.receive([{ client: OWN, clock: 3, json: "{" }]);
  expect(shown).toEqual([{ name: "Ann", "y-websocket": 1 }, null, null]);
});
