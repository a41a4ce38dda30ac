import { expect, test } from "vitest";

import type { ClientKey, Epoch, Millis, RoomId, Seq } from "../../shared/ids.ts";
import { ControlFrames, type ControlFrame } from "./control-frames.ts";
import { FrameSendRate } from "./client-rates.ts";

const at = (ms: number): Millis => ms as Millis;
const join = (room: string, request: number): ControlFrame => ({
  type: "join",
  request,
  room: room as RoomId,
  clientKey: "key-aaaa" as ClientKey,
  position: { epoch: 0 as Epoch, seq: 0 as Seq },
});
const leave = (channel: number): ControlFrame => ({ type: "leave", channel });
const replay = (channel: number, after: number): ControlFrame => ({
  type: "replay-request",
  channel,
  after: after as Seq,
  through: 9 as Seq,
});

/** Allows one frame at once, and one frame each second after that. */
function frames(): { controls: ControlFrames; sent: string[]; until: (ms: number) => string[] } {
  const sent: string[] = [];
  const controls = new ControlFrames((frame) => {
    sent.push(
      "request" in frame
        ? `join ${frame.request}`
        : `${frame.type} ${"after" in frame ? frame.after : "channel" in frame ? frame.channel : ""}`.trim(),
    );
  });
  const rate = new FrameSendRate({ burst: 1, perSecond: 1 / 0.9 }, at(0));
  controls.open(rate);
  const arrive = (now: Millis): void => {
    rate.markAsked();
    rate.receiveArrival(now);
  };
  const until = (ms: number): string[] => {
    for (let due = controls.dueAt; due !== undefined && due <= ms; due = controls.dueAt) {
      arrive(due);
      controls.receiveTick(due);
    }
    arrive(at(ms));
    return sent.splice(0);
  };
  return { controls, sent, until };
}

test("[CTL1] the first control frame goes out at once, the others wait for their turn in order", () => {
  const { controls, until } = frames();
  for (const frame of [join("a", 1), leave(7), join("b", 2)]) controls.send(frame, at(0));
  expect([until(0), controls.dueAt]).toEqual([["join 1"], 1_000]);
  expect([until(1_000), until(2_000), controls.dueAt]).toEqual([["leave 7"], ["join 2"], undefined]);
});

test("[CTL2] a repeated request replaces the earlier one and keeps its turn", () => {
  const { controls, until } = frames();
  for (const frame of [leave(7), join("a", 1), replay(3, 5), join("b", 2), join("a", 3), replay(3, 8)]) controls.send(frame, at(0));
  expect(until(10_000)).toEqual(["leave 7", "join 3", "replay-request 8", "join 2"]);
});

test("[CTL3] leaving a channel drops its requests, and a withdrawn request returns its turn", () => {
  const { controls, until } = frames();
  for (const frame of [leave(1), replay(3, 5), join("a", 1), leave(3)]) controls.send(frame, at(0));
  controls.withdrawJoin("a" as RoomId);
  expect(until(10_000)).toEqual(["leave 1", "leave 3"]);
  controls.send(leave(4), at(10_000));
  controls.send(join("b", 2), at(10_000));
  controls.withdrawJoin("b" as RoomId);
  expect([until(10_000), controls.dueAt]).toEqual([["leave 4"], undefined]);
  controls.send(leave(5), at(10_000));
  expect(until(11_000), "no later than if it had never been asked for").toEqual(["leave 5"]);
});

test("[CTL4] a PING goes out before the frames that wait, and resubmitted edits of others go out after them", () => {
  const { controls, until } = frames();
  const edit = { client: "c", counter: 1 } as unknown as (ControlFrame & { type: "resubmit" })["edit"];
  for (const frame of [leave(1), { type: "resubmit", channel: 3, edit } as const, leave(2), { type: "ping", nonce: 1 } as const])
    controls.send(frame, at(0));
  expect(until(10_000)).toEqual(["leave 1", "ping", "leave 2", "resubmit 3"]);
});

test("[CTL5] requests that wait are dropped when the connection ends", () => {
  const { controls, until } = frames();
  for (const frame of [leave(1), leave(2)]) controls.send(frame, at(0));
  controls.clear();
  controls.send(leave(3), at(5_000));
  expect([until(10_000), controls.dueAt]).toEqual([["leave 1"], undefined]);
});
