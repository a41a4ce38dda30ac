import { expect, test } from "vitest";

import { FakeClock } from "./test/fake-clock.ts";
import { ModelServer } from "./test/model-server.ts";
import { RoomHost } from "./room-host.ts";

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

test("[ROO1] an edit is sent, acknowledged and delivered to everyone", async () => {
  const clock = new FakeClock();
  const server = new ModelServer(clock);
  const ann = new RoomHost({ url: "ws://h", token: "t", room: "notes" }, server.world(1));
  const bob = new RoomHost({ url: "ws://h", token: "t", room: "notes" }, server.world(2));
  const seen: string[] = [];
  bob.on("edit", ({ seq, payload, own }) => seen.push(`${seq} ${payload} ${own}`));
  ann.on("edit", ({ seq, payload, own }) => seen.push(`ann ${seq} ${payload} ${own}`));
  await clock.advance(1000);
  expect(ann.status).toBe("connected");
  ann.send(bytes(1));
  expect(ann.saved).toBe(false);
  await clock.advance(100);
  expect(ann.saved).toBe(true);
  expect(seen.sort()).toEqual(["1 1 false", "ann 1 1 true"]);
});
