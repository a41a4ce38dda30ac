import { expect, test } from "vitest";

import { CLOSE } from "../../../shared/wire/close-codes.ts";
import type { ConnectionId } from "../../ports.ts";
import { ClosingSockets } from "./closing-sockets.ts";

const CONNECTION = 1 as ConnectionId;

/** A socket that closes within one second, in which it is checked four times. */
function closing(waiting: number) {
  const sockets = new ClosingSockets({ closingMsMax: 1_000 }, 250);
  const outcome: unknown[] = [];
  const topics = ["1", "2"];
  const socket = {
    waiting,
    getBufferedAmount: () => socket.waiting,
    getTopics: () => [...topics],
    unsubscribe: (topic: unknown) => topics.splice(topics.indexOf(topic as string), 1).length > 0,
    end: (code?: number) => void outcome.push(code, sockets.receiveClosed(CONNECTION)),
    close: () => void outcome.push("cut", sockets.receiveClosed(CONNECTION)),
  };
  sockets.add(CONNECTION, socket, "tooSlow");
  return { sockets, socket, outcome, topics };
}

test("[CLS1] a closing socket receives no publication, and its unread bytes are counted", () => {
  const { sockets, topics } = closing(5_000);
  expect([topics, sockets.count, sockets.bytes]).toEqual([[], 1, 5_000]);
});

test("[CLS2] the close frame is sent when the client has read everything before it", () => {
  const { sockets, socket, outcome } = closing(5_000);
  socket.waiting = 1;
  sockets.receiveDrained(CONNECTION);
  expect(outcome).toEqual([]);
  socket.waiting = 0;
  sockets.receiveDrained(CONNECTION);
  expect([outcome, sockets.count]).toEqual([[CLOSE.tooSlow.code, true], 0]);
});

test("[CLS3] a client that reads slowly gets no extra time", () => {
  const { sockets, socket, outcome } = closing(5_000);
  for (let look = 0; look < 4; look++) {
    socket.waiting -= 1;
    sockets.receiveDrained(CONNECTION);
    sockets.look();
  }
  expect([outcome, sockets.count]).toEqual([[], 1]);
  sockets.look();
  expect([outcome, sockets.count, sockets.bytes]).toEqual([["cut", true], 0, 0]);
});

test("[CLS4] a socket that closes by itself is forgotten, and other sockets' drains do not affect it", () => {
  const { sockets, outcome } = closing(5_000);
  sockets.receiveDrained(2 as ConnectionId);
  expect([sockets.receiveClosed(CONNECTION), sockets.receiveClosed(CONNECTION), sockets.count, outcome]).toEqual([true, false, 0, []]);
});
