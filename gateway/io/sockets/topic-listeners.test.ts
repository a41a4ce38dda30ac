import { expect, test } from "vitest";

import type { ConnectionId } from "../../ports.ts";
import { FRAMES_SENT_MAX, TopicListeners, LISTENERS_SENT_MAX } from "./uws-server.ts";

const STEP_MS = 1_000;
const WINDOW_STEPS = 10;
const FRAME = new Uint8Array([7]);

/** Records the recipients of frames, and the subscriptions to topics of uWebSockets.js. */
function rig(connections: number) {
  const seen: string[] = [];
  const subscribed = new Set<string>();
  const socketOf = (id: number) => ({
    subscribe: (topic: string) => subscribed.add(`${id} ${topic}`).size > 0,
    unsubscribe: (topic: string) => subscribed.delete(`${id} ${topic}`),
    publish: (topic: string) => (seen.push(`topic ${topic} but ${id}`), true),
  });
  const open = new Map(Array.from({ length: connections }, (_, id) => [id as ConnectionId, socketOf(id)]));
  const listeners = new TopicListeners(
    {
      app: { publish: (topic) => (seen.push(`topic ${String(topic)}`), true) },
      open,
      send: (to) => void seen.push(`to ${to}`),
      beforePublish: () => void seen.push("flush"),
    },
    { stepMs: STEP_MS },
  );
  const publish = (frames = 1, except?: number): string[] => {
    seen.length = 0;
    for (let frame = 0; frame < frames; frame++) listeners.publish("room", FRAME, except as ConnectionId | undefined);
    return [...seen];
  };
  const listen = (id: number): void => listeners.listen(id as ConnectionId, "room");
  const unlisten = (id: number): void => listeners.unlisten(id as ConnectionId, "room");
  const passWindow = (): void => {
    for (let step = 0; step < WINDOW_STEPS; step++) listeners.step();
  };
  return { open, listeners, subscribed, publish, listen, unlisten, passWindow };
}

test("[LSN1] rare frames are sent to each of a few listeners, and no topic is created", () => {
  const { publish, listen, unlisten, subscribed, passWindow } = rig(3);
  expect(publish()).toEqual([]);
  for (const id of [0, 1, 1, 2]) listen(id);
  expect(publish()).toEqual(["to 0", "to 1", "to 2"]);
  unlisten(0);
  unlisten(0);
  expect(publish(1, 2)).toEqual(["to 1"]);
  for (let window = 0; window < 3; window++) {
    expect(publish(FRAMES_SENT_MAX - 2)).toHaveLength(2 * (FRAMES_SENT_MAX - 2));
    passWindow();
  }
  expect(subscribed.size).toBe(0);
  unlisten(1);
  unlisten(2);
  expect(publish()).toEqual([]);
});

test("[LSN2] frequent frames go to a topic, after the frames sent directly before, until a window passes without frames", () => {
  const { publish, listen, unlisten, subscribed, passWindow } = rig(4);
  for (const id of [0, 1]) listen(id);
  expect(publish(FRAMES_SENT_MAX + 1, 1).slice(-3)).toEqual(["to 0", "flush", "topic room but 1"]);
  listen(2);
  expect([...subscribed]).toEqual(["0 room", "1 room", "2 room"]);
  passWindow();
  expect(publish()).toEqual(["flush", "topic room"]);
  passWindow();
  unlisten(2);
  expect([...subscribed]).toEqual(["0 room", "1 room"]);
  passWindow();
  expect(subscribed.size).toBe(0);
  expect(publish()).toEqual(["to 0", "to 1"]);
});

test("[LSN3] many listeners share a topic, even if it is quiet", () => {
  const { publish, listen, unlisten, subscribed, passWindow } = rig(LISTENERS_SENT_MAX + 1);
  for (let id = 0; id < LISTENERS_SENT_MAX; id++) listen(id);
  expect(publish()).toHaveLength(LISTENERS_SENT_MAX);
  listen(LISTENERS_SENT_MAX);
  passWindow();
  expect([subscribed.size, publish()]).toEqual([LISTENERS_SENT_MAX + 1, ["flush", "topic room"]]);
  for (let id = 0; id <= LISTENERS_SENT_MAX; id++) unlisten(id);
  expect([subscribed.size, publish()]).toEqual([0, []]);
});

test("[LSN4] a closed connection listens to nothing any more", () => {
  const { open, publish, listen, unlisten, subscribed } = rig(2);
  for (const id of [0, 1]) listen(id);
  publish(FRAMES_SENT_MAX + 1);
  open.delete(0 as ConnectionId); // uWebSockets.js has removed it from its topics.
  unlisten(0);
  listen(0);
  expect([...subscribed].filter((each) => each.startsWith("1"))).toEqual(["1 room"]);
  unlisten(1);
  expect(publish()).toEqual([]);
});

test("[LSN5] a frame of a connection that does not listen reaches all listeners", () => {
  const { publish, listen } = rig(3);
  for (const id of [0, 1]) listen(id);
  publish(FRAMES_SENT_MAX + 1);
  expect(publish(1, 2)).toEqual(["flush", "topic room"]);
});
