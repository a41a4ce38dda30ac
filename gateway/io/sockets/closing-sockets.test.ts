import { expect, test } from "vitest";

import { CLOSE } from "../../../shared/wire/close-codes.ts";
import type { ConnectionId } from "../../ports.ts";
import { ClosingSockets } from "./closing-sockets.ts";

const CONNECTION = 1 as ConnectionId;

/** Closing for a second, of which four looks are made. */
function closing(waiting: number) {
  const sockets = new ClosingSockets({ closingMsMax: 1_000 }, 250);
  const said: unknown[] = [];
  const topics = ["1", "2"];
  const socket = {
    waiting,
    getBufferedAmount: () => socket.waiting,
    getTopics: () => [...topics],
    unsubscribe: (topic: unknown) => topics.splice(topics.indexOf(topic as string), 1).length > 0,
    end: (code?: number) => void said.push(code, sockets.receiveClosed(CONNECTION)),
    close: () => void said.push("cut", sockets.receiveClosed(CONNECTION)),
  };
  sockets.add(CONNECTION, socket, "tooSlow");
  return { sockets, socket, said, topics };
}

test("[CLS1] a closing socket receives no publication, and its unread bytes are counted", () => {
  const { sockets, topics } = closing(5_000);
  expect([topics, sockets.count, sockets.bytes]).toEqual([[], 1, 5_000]);
});

test("[CLS2] the close frame is sent when the client has read everything before it", () => {
  const { sockets, socket, said } = closing(5_000);
  socket.waiting = 1;
  sockets.receiveDrained(CONNECTION);
  expect(said).toEqual([]);
  socket.waiting = 0;
  sockets.receiveDrained(CONNECTION);
  expect([said, sockets.count]).toEqual([[CLOSE.tooSlow.code, true], 0]);
});

test("[CLS3] a client that reads a little now and then gets no extra time", () => {
  const { sockets, socket, said } = closing(5_000);
  for (let look = 0; look < 4; look++) {
    socket.waiting -= 1;
    sockets.receiveDrained(CONNECTION);
    sockets.look();
  }
  expect([said, sockets.count]).toEqual([[], 1]);
  sockets.look();
  expect([said, sockets.count, sockets.bytes]).toEqual([["cut", true], 0, 0]);
});

test("[CLS4] a socket that closes by itself is forgotten, and other sockets' drains do not affect it", () => {
  const { sockets, said } = closing(5_000);
  sockets.receiveDrained(2 as ConnectionId);
  expect([sockets.receiveClosed(CONNECTION), sockets.receiveClosed(CONNECTION), sockets.count, said]).toEqual([true, false, 0, []]);
});
