import { expect, test } from "vitest";

import { Events } from "./events.ts";

test("[EVE1] listeners receive their events until they unsubscribe", () => {
  const events = new Events<{ saved: [boolean]; seq: [number] }>(() => {});
  const received: string[] = [];
  const listener = (saved: boolean): void => void received.push(`on ${saved}`);
  events.on("saved", listener);
  events.once("saved", (saved) => received.push(`once ${saved}`));
  events.emit("saved", true);
  events.emit("seq", 1);
  events.emit("saved", false);
  events.off("saved", listener);
  events.emit("saved", true);
  expect(received).toEqual(["on true", "once true", "on false"]);
});

test("[EVE2] an error of one listener is reported, and the other listeners still receive the event", () => {
  const reported: unknown[] = [];
  const events = new Events<{ seq: [number] }>((error) => reported.push(error));
  const received: number[] = [];
  events.on("seq", () => {
    throw new Error("the application's own");
  });
  events.on("seq", (seq) => received.push(seq));
  events.emit("seq", 1);
  expect(received).toEqual([1]);
  expect(reported).toEqual([new Error("the application's own")]);
});

test("[EVE3] a once listener can be removed, and a listener that is removed during an event receives nothing more", () => {
  const events = new Events<{ seq: [number] }>(() => {});
  const received: string[] = [];
  const [first, second] = [(): void => void received.push("first"), (): void => void received.push("second")];
  events.once("seq", first);
  events.off("seq", first);
  events.on("seq", () => events.off("seq", second));
  events.on("seq", second);
  events.emit("seq", 1);
  expect(received).toEqual([]);
  events.on("seq", () => events.clear());
  events.on("seq", first);
  events.emit("seq", 2);
  expect(received, "no listener is called after the end").toEqual([]);
});

test("[EVE4] a listener that is no function is refused where it is added, not at the event", () => {
  const events = new Events<{ seq: [number] }>(() => {});
  for (const add of ["on", "once"] as const)
    expect(() => events[add]("seq", undefined as never)).toThrow('the listener of "seq" must be a function, not undefined');
});
