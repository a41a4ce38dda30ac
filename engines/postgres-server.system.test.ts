/** A real PostgreSQL server: committed rows are still there after a crash. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { startPostgresServer } from "./postgres-server.ts";

test("a committed row still exists after SIGKILL of all processes, also with a client connected", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-postgres-"));
  const engine = await startPostgresServer({ dataDir });
  const ask = async (statement: string): Promise<unknown[]> => {
    const client = new pg.Client({ connectionString: engine.url });
    await client.connect();
    try {
      return (await client.query<object>(statement)).rows;
    } finally {
      await client.end();
    }
  };
  await ask("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('hello')");
  const connected = new pg.Client({ connectionString: engine.url });
  // A lost connection may report two errors.
  const lost = new Promise((resolve) => connected.on("error", resolve));
  await connected.connect();
  await engine.crash(() => lost);
  expect(await ask("SELECT word FROM kept")).toEqual([{ word: "hello" }]);
  const patient = new pg.Client({ connectionString: engine.url }); // A stop does not wait for its clients.
  patient.on("error", () => {});
  await patient.connect();
  await engine.stop();
  rmSync(dataDir, { recursive: true });
});
