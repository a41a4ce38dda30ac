import * as decoding from "lib0/decoding";
import { expect, onTestFinished, test, vi } from "vitest";
import { applyAwarenessUpdate, Awareness } from "y-protocols/awareness";
import * as Y from "yjs";

import type { Millis, UnixMillis } from "../shared/ids.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import type { Clock } from "../shared/time/clock.ts";
import { RESERVED_FIELDS } from "../client/presence/awareness.ts";
import { refuseReserved } from "../client/presence/presence-fields.ts";
import { type BridgedAwareness, YAwareness } from "./y-awareness.ts";
import { decodeYMessage, encodeAwareness, type YState } from "./y-websocket-protocol.ts";

const [OWN, BOB, CID] = [11, 22, 33];

function rig({ own }: { readonly own: number | undefined } = { own: OWN }) {
  const shown: unknown[] = [];
  const states = new Map<number, Record<string, unknown>>([[BOB, { name: "Bob" }]]);
  const room: BridgedAwareness = {
    clientID: OWN,
    states,
    setLocalState: (state) => (refuseReserved(state ?? {}, RESERVED_FIELDS), void shown.push(state)),
  };
  const date = { is: 0 };
  const time = { is: 0 };
  const fake = new FakeClock(0);
  const clock: Clock = { now: () => time.is as Millis, wallNow: () => date.is as UnixMillis, after: (ms, run) => fake.after(ms, run) };
  const awareness = new YAwareness(room, own, clock);
  shown.length = 0; // Sends an awareness state of a client.
  const receive = (...states: readonly YState[]): void => {
    const message = decodeYMessage(encodeAwareness(states));
    if (message?.kind === "awareness") awareness.receiveStates(message.bytes);
  };
  const say = (client: number, state: unknown, clock = 1): void => receive({ client, clock, json: JSON.stringify(state) });
  /** Lets time pass. */
  const wait = (ms: number): void => {
    time.is += ms;
    fake.turn(ms);
  };
  return { awareness, shown, states, date, time, wait, receive, say };
}

test("[YAW1] a client's own state is shown with its clock, and removed", () => {
  const { shown, say } = rig();
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 });
  say(OWN, { name: "Ann", mood: 1 }, 2);
  say(OWN, { name: "Ann", mood: 0 }, 1);
  say(OWN, null, 3);
  expect(shown).toEqual([{ "name": "Ann", "mood": 1, "y-websocket": 1 }, { "name": "Ann", "mood": 1, "y-websocket": 2 }, null]);
});

test("[YAW2] states of other clients that a client repeats do not count as its own, whether the bridge or another tab sent them", () => {
  const { awareness, shown, say } = rig();
  awareness.allStates();
  say(BOB, { name: "Bob" });
  say(CID, { name: "Cid in another tab" });
  expect(shown).toEqual([]);
});

test("[YAW10] of several states of the client in one message, only the one with the highest clock is shown", () => {
  const { shown, receive, say } = rig();
  receive(...[1, 3, 2].map((clock) => ({ client: OWN, clock, json: JSON.stringify({ clock }) })));
  say(OWN, { clock: 2 }, 2);
  say(OWN, { clock: 3 }, 3);
  expect(shown).toEqual([{ "clock": 3, "y-websocket": 3 }]);
});

test("[YAW11] a client that changes its state all the time shows the newest one at a limited rate, and none once it has left", () => {
  const { awareness, shown, say, wait } = rig();
  let clock = 0;
  const flood = (): void => {
    for (let state = 0; state < 200; state++) say(OWN, { at: ++clock }, clock);
  };
  flood();
  const atOnce = shown.length;
  expect(atOnce).toBeLessThan(100);
  for (let step = 0; step < 10; step++) {
    wait(100);
    flood();
  }
  expect(shown.length - atOnce, "in a second").toBeLessThan(100);
  wait(100);
  expect(shown.at(-1), "the newest").toEqual({ "at": clock, "y-websocket": clock });
  wait(10_000);
  say(OWN, { at: "then" }, ++clock);
  expect(shown.at(-1), "at once, after a pause").toMatchObject({ at: "then" });
  flood();
  awareness.stop();
  const count = shown.length;
  wait(1_000);
  expect(shown).toHaveLength(count);
});

test("[YAW12] at most one state of a message is read, and none while the client shows nothing", () => {
  const { receive } = rig();
  const late = rig({ own: undefined });
  const decode = vi.spyOn(TextDecoder.prototype, "decode");
  onTestFinished(() => decode.mockRestore());
  receive(...Array.from({ length: 1_000 }, (_, clock) => ({ client: OWN, clock, json: "{}" })));
  expect(decode).toHaveBeenCalledTimes(1);
  late.receive(...Array.from({ length: 1_000 }, (_, client) => ({ client, clock: 1, json: "null" })));
  expect(decode).toHaveBeenCalledTimes(1);
});

test("[YAW3] the client's own id may become known late: it is the id that the bridge did not send", () => {
  const { awareness, shown, say } = rig({ own: undefined });
  awareness.allStates();
  say(BOB, { name: "Bob" });
  say(CID, { name: "Ann" });
  say(BOB, { name: "Bob" });
  expect(shown).toEqual([{ "name": "Ann", "y-websocket": 1 }]);
});

test("[YAW4] each update of an SDK client has a higher clock than all before it, from an earlier bridge too; a removal keeps the last clock", () => {
  const { awareness, states, date } = rig();
  states.set(OWN, { name: "Ann" });
  date.is = 1_000;
  expect(awareness.allStates(), "but for itself").toEqual([{ client: BOB, clock: 1_000, json: `{"name":"Bob"}` }]);
  expect(awareness.statesOf([BOB])[0]!.clock).toBe(1_001);
  date.is = 500;
  expect(awareness.statesOf([BOB])[0]!.clock).toBe(1_002);
  states.delete(BOB);
  date.is = 9_000;
  expect(awareness.statesOf([BOB])).toEqual([{ client: BOB, clock: 1_002, json: "null" }]);
});

test("[YAW5] updates of y-websocket clients keep their own clock, because other tabs of that browser already know it", () => {
  const { awareness, states, date } = rig();
  date.is = 1_000;
  states.set(BOB, { "name": "Bob", "y-websocket": 7 });
  expect(awareness.allStates()).toEqual([{ client: BOB, clock: 7, json: `{"name":"Bob"}` }]);
  states.delete(BOB);
  expect(awareness.statesOf([BOB])).toEqual([{ client: BOB, clock: 7, json: "null" }]);
});

test.each([["a text"], [7], [[1]]])("[YAW6] a state that is no object shows nothing: %j", (state) => {
  const { shown, say } = rig();
  say(OWN, state);
  expect(shown).toEqual([null]);
});

test("[YAW6] fields that the SDK rejects or reserves are skipped, and a state that is too long or not JSON is not shown", () => {
  const { shown, receive, say } = rig();
  say(OWN, { "yjs": 99, "coroom": 1, "y-websocket": 5, "@me": 1, "": 1, ["x".repeat(65)]: 1, ["\ud800"]: 1, "name": "Ann" });
  say(OWN, { name: "x".repeat(10_000) }, 2);
  receive({ client: OWN, clock: 3, json: "{" });
  expect(shown).toEqual([{ "name": "Ann", "y-websocket": 1 }, null, null]);
});

/** The awareness of y-protocols, as the client of the bridge uses it. */
function client() {
  const doc = new Y.Doc();
  doc.clientID = OWN;
  const awareness = new Awareness(doc);
  onTestFinished(() => awareness.destroy());
  const receive = (states: readonly YState[]): void => {
    const input = decoding.createDecoder(encodeAwareness(states));
    decoding.readVarUint(input);
    applyAwarenessUpdate(awareness, decoding.readVarUint8Array(input), "bridge");
  };
  return { awareness, receive, seen: () => awareness.getStates().get(BOB) };
}

test("[YAW7] after the bridge lost the room for a moment, returning clients are shown at once with all later changes", () => {
  const { awareness, states } = rig();
  const { receive, seen } = client();
  const show = (state: Record<string, unknown>): void => {
    states.set(BOB, state);
    receive(awareness.statesOf([BOB]));
  };
  show({ "name": "Bob", "y-websocket": 7 });
  for (let loss = 0; loss < 2; loss++) {
    states.delete(BOB);
    receive(awareness.statesOf([BOB]));
    expect(seen()).toBe(undefined);
    show({ "name": "Bob", "y-websocket": 7 });
    expect(seen()).toEqual({ name: "Bob" });
  }
  show({ "name": "Bob", "caret": 1, "y-websocket": 8 });
  expect(seen()).toEqual({ name: "Bob", caret: 1 });
  receive(awareness.allStates());
  states.delete(BOB);
  receive(awareness.statesOf([BOB]));
  expect(seen()).toBe(undefined);
});

test("[YAW8] a client whose clock is behind is announced with the next clock at each renewal, not at each repetition by a tab", () => {
  const { awareness, states, time } = rig();
  const clockAt = (ms: number, own: number): number => {
    time.is = ms;
    states.set(BOB, { "name": "Bob", "y-websocket": own });
    return awareness.statesOf([BOB])[0]!.clock;
  };
  expect(clockAt(0, 7)).toBe(7);
  states.delete(BOB);
  awareness.statesOf([BOB]);
  expect([clockAt(0, 6), clockAt(3_000, 7), clockAt(3_100, 8)], "a repeated state keeps the received clock").toEqual([8, 8, 8]);
  states.delete(BOB);
  awareness.statesOf([BOB]);
  expect([clockAt(4_000, 6), clockAt(19_000, 7), clockAt(34_000, 8), clockAt(34_100, 8), clockAt(50_000, 20)]).toEqual([9, 10, 11, 11, 20]);
});

test("[YAW9] the last thousand departed clients are remembered, and no clock is sent that clients cannot read", () => {
  const { awareness, states } = rig();
  const comeAndGo = (client: number): number => {
    states.set(client, { "y-websocket": 7 });
    const [{ clock }] = awareness.statesOf([client]) as [YState];
    states.delete(client);
    awareness.statesOf([client]);
    return clock;
  };
  for (let client = 100; client <= 1_100; client++) expect(comeAndGo(client)).toBe(7);
  expect(comeAndGo(1_100), "remembered").toBe(8);
  expect(comeAndGo(101)).toBe(8);
  expect(comeAndGo(100), "forgotten").toBe(7);
  states.set(BOB, { "y-websocket": Number.MAX_SAFE_INTEGER });
  expect(awareness.statesOf([BOB])[0]!.clock).toBeLessThan(2 ** 50);
});
