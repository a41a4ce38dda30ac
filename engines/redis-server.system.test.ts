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

test("a transaction that a user with few permissions wrote still exists after a restart", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-redis-"));
  const password = "password-of-the-leaderboard";
  const engine = await startRedisServer({ dataDir, users: [{ role: "leaderboard", environment: "test", password }] });
  const login = `AUTH leaderboard ${password}\r\n`;
  const write = `EVAL "redis.call('hset', KEYS[1], 'points', 'seven'); redis.call('hset', KEYS[2], 'points', 'nine'); return 'written'"`;
  expect(await answers(engine, `${login}${write} 2 test:board:a test:board:b`, "written")).toBe(true);
  await engine.stop();
  const again = await startRedisServer({ dataDir, users: [{ role: "leaderboard", environment: "test", password }] });
  expect(await answers(again, `${login}HGET test:board:a points`, "seven")).toBe(true);
  expect(await answers(again, `${login}HGET test:board:b points`, "nine")).toBe(true);
  expect(await answers(again, "GET test:board:a", "NOAUTH")).toBe(true);
  await again.stop();
  rmSync(dataDir, { recursive: true });
});

/** Asks again for up to 30 s: a server with users counts as ready while it still loads its file, and then answers `-LOADING`. */
async function answers(engine: Engine, command: string, answer: string): Promise<boolean> {
  const question = { host: "127.0.0.1", port: engine.port, send: `${command}\r\n`, msMax: 1_000 };
  const isAnswered = () => answersOverTcp(question, (received) => received.includes(answer));
  for (let attempt = 0; attempt < 30; attempt++) if (await isAnswered()) return true;
  return false;
}
