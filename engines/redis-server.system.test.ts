/** A real redis-server: stored data is still there after a crash and after a stop. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answersOverTcp } from "./ask.ts";
import type { Engine } from "./engine.ts";
import { startRedisServer } from "./redis-server.ts";

test("a written key still exists after SIGKILL and after an orderly stop", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-redis-"));
  const engine = await startRedisServer({ dataDir });
  expect(await answers(engine, "SET kept hello", "+OK")).toBe(true);
  engine.kill("SIGKILL");
  await engine.exited;
  await engine.restart();
  expect(await answers(engine, "GET kept", "hello")).toBe(true);
  await engine.stop();
  const again = await startRedisServer({ dataDir });
  expect(await answers(again, "GET kept", "hello")).toBe(true);
  await again.stop();
  rmSync(dataDir, { recursive: true });
});

function answers(engine: Engine, command: string, answer: string): Promise<boolean> {
  return answersOverTcp({ host: "127.0.0.1", port: engine.port, send: `${command}\r\n`, msMax: 30_000 }, (received) =>
    received.includes(answer),
  );
}
