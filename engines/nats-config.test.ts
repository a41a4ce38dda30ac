import { expect, test } from "vitest";
import { natsConfigText, type NatsConfig } from "./nats-config.ts";

const alone: NatsConfig = {
  serverName: "one",
  host: "127.0.0.1",
  port: 4222,
  storeDir: '/data/a "b"',
  syncAlways: false,
  memoryBytesMax: 1,
  fileBytesMax: 2,
  tags: [],
};

test("the file contains only requested options", () => {
  expect(natsConfigText(alone)).not.toMatch(/cluster|http|sync_interval|server_tags/);
});

test("a path is quoted", () => {
  expect(natsConfigText(alone)).toContain('store_dir: "/data/a \\"b\\""');
});

test("a cluster member has its routes, its tags and its fsync option", () => {
  const text = natsConfigText({
    ...alone,
    syncAlways: true,
    tags: ["az:a"],
    cluster: { name: "local", port: 6222, routes: ["nats-route://127.0.0.1:6223"] },
  });
  expect(text).toContain("sync_interval: always");
  expect(text).toContain('server_tags: ["az:a"]');
  expect(text).toContain('routes: ["nats-route://127.0.0.1:6223"]');
});
