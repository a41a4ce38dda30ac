/** A real nats-server: what it stores, what it survives, and its errors at start. */

import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Engine } from "./engine.ts";
import { startNatsServer, type NatsServerOptions } from "./nats-server.ts";

let dataDir: string;
let running: Engine[];

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-nats-"));
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((engine) => engine.stop()));
  rmSync(dataDir, { recursive: true, force: true });
});

async function start(options: Partial<NatsServerOptions> = {}): Promise<Engine> {
  const engine = await startNatsServer({ dataDir, ...options });
  running.push(engine);
  return engine;
}

test("a message acknowledged by JetStream survives SIGKILL and a restart on the same port", async () => {
  const engine = await start();
  const before = await connect({ servers: engine.url, reconnect: false });
  await (await jetstreamManager(before)).streams.add({ name: "kept", subjects: ["kept.>"] });
  await jetstream(before).publish("kept.one", "hello");
  const firstPid = engine.pid;
  engine.kill("SIGKILL");
  expect((await engine.exited).signal).toBe("SIGKILL");
  await engine.restart();
  expect(engine.pid).not.toBe(firstPid);
  const after = await connect({ servers: engine.url });
  const message = await (await jetstreamManager(after)).streams.getMessage("kept", { last_by_subj: "kept.one" });
  expect(message?.string()).toBe("hello");
  expect(after.info?.max_payload).toBe(8 * 1024 * 1024);
  await after.close();
});

test("the error names a port in use and its setting", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await expect(start({ port })).rejects.toMatchObject({
    name: "EngineError",
    kind: "port-in-use",
    message: expect.stringMatching(new RegExp(`:${port}: .*COROOM_NATS_PORT`)),
  });
  other.close();
  await start();
});

test("a second start on the same data folder is refused until the first engine stops", async () => {
  const first = await start();
  await expect(start()).rejects.toMatchObject({ kind: "data-dir-in-use", message: expect.stringContaining(String(process.pid)) });
  await first.stop();
  await start();
});

test("the error names a folder that is not writable", async () => {
  await expect(start({ dataDir: "/proc/coroom" })).rejects.toMatchObject({
    kind: "data-dir-unwritable",
    message: expect.stringMatching(/\/proc\/coroom .*COROOM_DATA_DIR/),
  });
});

test("the error of a server that stops during its start contains the last lines of its log, however long it is", async () => {
  const log = join(dataDir, "nats-server.log");
  writeFileSync(log, "");
  truncateSync(log, 3 * 1024 ** 3); // Sparse, and longer than Node reads at once.
  await expect(start({ serverName: "no spaces allowed" })).rejects.toMatchObject({
    kind: "start-failed",
    message: expect.stringMatching(/server name cannot contain spaces/i),
  });
});

test("a paused server can be stopped", async () => {
  const engine = await start();
  engine.kill("SIGSTOP");
  await engine.stop();
  await engine.exited;
});
