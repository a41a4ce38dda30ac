import * as decoding from "lib0/decoding";
import { expect, onTestFinished, test } from "vitest";
import { applyAwarenessUpdate, Awareness } from "y-protocols/awareness";
import * as Y from "yjs";

import type { Millis, UnixMillis } from "../shared/ids.ts";
import { encodeAwareness, type YState } from "./protocol.ts";
import { type RoomAwareness, YAwareness } from "./y-awareness.ts";

const [OWN, BOB, CID] = [11, 22, 33];

function rig({ own }: { readonly own: number | undefined } = { own: OWN }) {
  const shown: unknown[] = [];
  const states = new Map<number, Record<string, unknown>>([[BOB, { name: "Bob" }]]);
  const room: RoomAwareness = { clientID: OWN, states, setLocalState: (state) => void shown.push(state) };
  const date = { is: 0 };
  const time = { is: 0 };
  const awareness = new YAwareness(room, own, { now: () => time.is as Millis, wallNow: () => date.is as UnixMillis });
  shown.length = 0; // That it shows nothing yet.
  const say = (client: number, state: unknown, clock = 1): void => awareness.receive([{ client, clock, json: JSON.stringify(state) }]);
  return { awareness, shown, states, date, time, say };
}

test("[YAW1] what the client shows of itself is shown with its clock, and taken back", () => {
  const { shown, say } = rig();
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 }, 2);
  say(OWN, { name: "Ann", mood: 0 }, 1);
  say(OWN, null, 3);
  expect(shown).toEqual([{ "name": "Ann", "mood": 1, "y-websocket": 1 }, { "name": "Ann", "mood": 1, "y-websocket": 2 }, null]);
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
  expect(shown).toEqual([{ "name": "Ann", "y-websocket": 1 }]);
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
  states.set(BOB, { "name": "Bob", "y-websocket": 7 });
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
  say(OWN, { "yjs": 99, "y-websocket": 5, "@me": 1, "": 1, ["x".repeat(65)]: 1, ["\ud800"]: 1, "name": "Ann" });
  say(OWN, { name: "x".repeat(10_000) }, 2);
  awareness.receive([{ client: OWN, clock: 3, json: "{" }]);
  expect(shown).toEqual([{ "name": "Ann", "y-websocket": 1 }, null, null]);
});

/** y-protocols' own, of the client that the bridge tells. */
function client() {
  const doc = new Y.Doc();
  doc.clientID = OWN;
  const awareness = new Awareness(doc);
  onTestFinished(() => awareness.destroy());
  const hear = (told: readonly YState[]): void => {
    const input = decoding.createDecoder(encodeAwareness(told));
    decoding.readVarUint(input);
    applyAwarenessUpdate(awareness, decoding.readVarUint8Array(input), "bridge");
  };
  return { awareness, hear, seen: () => awareness.getStates().get(BOB) };
}

test("[YAW7] who comes back as they were, the bridge having lost the room for a moment, is seen at once, and with all that they show from then on", () => {
  const { awareness, states } = rig();
  const { hear, seen } = client();
  const show = (state: Record<string, unknown>): void => {
    states.set(BOB, state);
    hear(awareness.tell([BOB]));
  };
  show({ "name": "Bob", "y-websocket": 7 });
  for (let loss = 0; loss < 2; loss++) {
    states.delete(BOB);
    hear(awareness.tell([BOB]));
    expect(seen()).toBe(undefined);
    show({ "name": "Bob", "y-websocket": 7 });
    expect(seen()).toEqual({ name: "Bob" });
  }
  show({ "name": "Bob", "caret": 1, "y-websocket": 8 });
  expect(seen()).toEqual({ name: "Bob", caret: 1 });
  hear(awareness.tellAll());
  states.delete(BOB);
  hear(awareness.tell([BOB]));
  expect(seen()).toBe(undefined);
});

test("[YAW8] whose clock is behind what was told is told of with one more as often as it renews it, and not as often as tabs repeat it", () => {
  const { awareness, states, time } = rig();
  const clockAt = (ms: number, own: number): number => {
    time.is = ms;
    states.set(BOB, { "name": "Bob", "y-websocket": own });
    return awareness.tell([BOB])[0]!.clock;
  };
  expect(clockAt(0, 7)).toBe(7);
  states.delete(BOB);
  awareness.tell([BOB]);
  expect([clockAt(0, 6), clockAt(3_000, 7), clockAt(3_100, 8)], "repeated by a tab, it took what it was told").toEqual([8, 8, 8]);
  states.delete(BOB);
  awareness.tell([BOB]);
  expect([clockAt(4_000, 6), clockAt(19_000, 7), clockAt(34_000, 8), clockAt(34_100, 8), clockAt(50_000, 20)]).toEqual([9, 10, 11, 11, 20]);
});

test("[YAW9] of those who are gone the last thousand are remembered, and no clock is told that clients cannot read", () => {
  const { awareness, states } = rig();
  const comeAndGo = (client: number): number => {
    states.set(client, { "y-websocket": 7 });
    const [{ clock }] = awareness.tell([client]) as [YState];
    states.delete(client);
    awareness.tell([client]);
    return clock;
  };
  for (let client = 100; client <= 1_100; client++) expect(comeAndGo(client)).toBe(7);
  expect(comeAndGo(1_100), "remembered").toBe(8);
  expect(comeAndGo(101)).toBe(8);
  expect(comeAndGo(100), "forgotten").toBe(7);
  states.set(BOB, { "y-websocket": Number.MAX_SAFE_INTEGER });
  expect(awareness.tell([BOB])[0]!.clock).toBeLessThan(2 ** 50);
});
