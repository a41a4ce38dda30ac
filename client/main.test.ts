import { expect, test } from "vitest";

import { RoomConnection } from "./main.ts";

test("[ROO32] an edit that is sent after destroy() throws, because nobody would receive it", () => {
  const room = new RoomConnection({ url: "ws://127.0.0.1:9", token: "t", room: "notes", connect: false });
  room.destroy();
  room.destroy();
  expect(() => room.send(new Uint8Array([1]))).toThrow("cannot send an edit after destroy()");
});
