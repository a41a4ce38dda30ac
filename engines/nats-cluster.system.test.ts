/** Three nats-servers as a cluster: an R=3 stream keeps acknowledged messages while one server is down. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { expect, test, vi } from "vitest";
import { startNatsCluster } from "./nats-cluster.ts";

test("a replicated stream works through the SIGKILL of a member, and the member catches up after its restart", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-cluster-"));
  const engines = await startNatsCluster({ dataDir, members: 3 });
  const nats = await connect({ servers: engines.map((engine) => engine.url) });
  const manager = await jetstreamManager(nats);
  await vi.waitFor(() => manager.streams.add({ name: "kept", subjects: ["kept.>"], num_replicas: 3 }), { timeout: 30_000, interval: 100 });
  await vi.waitFor(() => jetstream(nats).publish("kept.one", "hello"), { timeout: 30_000, interval: 100 }); // The election may still run.

  const leader = (await manager.streams.info("kept")).cluster?.leader;
  const lost = engines.find((_, index) => `nats-${index + 1}` === leader);
  expect(lost).toBeDefined();
  lost!.kill("SIGKILL");
  await lost!.exited;
  await vi.waitFor(() => jetstream(nats).publish("kept.two", "still", { timeout: 1_000 }), { timeout: 30_000, interval: 100 });

  await lost!.restart();
  await vi.waitFor(
    async () => {
      const { cluster } = await manager.streams.info("kept");
      expect(cluster?.replicas?.map((replica) => replica.current)).toEqual([true, true]);
    },
    { timeout: 30_000, interval: 100 },
  );
  expect((await manager.streams.getMessage("kept", { last_by_subj: "kept.one" }))?.string()).toBe("hello");
  await nats.close();
  await Promise.all(engines.map((engine) => engine.stop()));
  rmSync(dataDir, { recursive: true });
});
