/** Frames that are sent within one turn leave together, in order, and once. */

import { expect, test } from "vitest";

import type { ConnectionId } from "../../ports.ts";
import { GATHERED_BYTES_MAX, GatheredSends } from "./gathered-sends.ts";

type Fake = { send(frame: unknown): 0 | 1 | 2; cork(write: () => void): Fake };

function rig() {
  const sent: string[] = [];
  const ends: (() => void)[] = [];
  const open = new Map<ConnectionId, Fake>();
  const socket = (id: ConnectionId, onSend: () => void = () => {}): Fake => ({
    send: (frame) => {
      sent.push(`${id}:${(frame as Uint8Array)[0]}`);
      onSend();
      return 1;
    },
    cork(write) {
      sent.push(`${id}(`);
      write();
      sent.push(")");
      return this;
    },
  });
  const gathered = new GatheredSends(open as never, (run) => void ends.push(run));
  const send = (to: number, ...frames: number[]): void =>
    frames.forEach((frame) => gathered.send(to as ConnectionId, Uint8Array.of(frame)));
  const enter = (id: number, onSend?: () => void): void => void open.set(id as ConnectionId, socket(id as ConnectionId, onSend));
  return { sent, open, gathered, send, enter, endTurn: () => ends.splice(0).forEach((run) => run()) };
}

test("[GAT1] several frames for one client are one write at the end of the turn; a single frame needs no cork", () => {
  const { sent, send, enter, endTurn } = rig();
  [1, 2].forEach((id) => enter(id));
  send(1, 10, 11);
  send(2, 20);
  send(1, 12);
  expect(sent).toEqual([]);
  endTurn();
  expect(sent).toEqual(["1(", "1:10", "1:11", "1:12", ")", "2:20"]);
  send(1, 13);
  endTurn();
  expect(sent.slice(6)).toEqual(["1:13"]);
});

test("[GAT2] flushed frames are not sent again, and a closed connection receives nothing", () => {
  const { sent, open, gathered, send, enter, endTurn } = rig();
  [1, 2].forEach((id) => enter(id));
  send(1, 10);
  send(2, 20);
  open.delete(2 as ConnectionId);
  gathered.flush();
  send(1, 11);
  endTurn();
  expect(sent).toEqual(["1:10", "1:11"]);
});

test("[GAT3] a send that causes another flush keeps the order of frames and repeats none", () => {
  const { sent, gathered, send, enter, endTurn } = rig();
  enter(1, () => {
    if (sent.length > 1) return;
    send(2, 21); // The connection broke, and its peer is informed immediately.
    gathered.flush();
  });
  [2, 3].forEach((id) => enter(id));
  send(1, 10);
  send(2, 20);
  send(3, 30);
  endTurn();
  expect(sent).toEqual(["1:10", "2(", "2:20", "2:21", ")", "3:30"]);
});

test("[GAT4] many bytes leave before the end of the turn, because the limit of unread bytes counts only what is written", () => {
  const { sent, gathered, send, enter, endTurn } = rig();
  enter(1);
  const long = new Uint8Array(GATHERED_BYTES_MAX / 2);
  gathered.send(1 as ConnectionId, long);
  gathered.send(1 as ConnectionId, long);
  expect(sent).toEqual([]);
  send(1, 10);
  expect(sent).toEqual(["1(", "1:0", "1:0", "1:10", ")"]);
  send(1, 11);
  expect(sent).toHaveLength(5);
  endTurn();
  expect(sent.slice(5)).toEqual(["1:11"]);
});
