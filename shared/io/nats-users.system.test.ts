/** A nats-server that accepts only known users. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { nkeys } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import { connectOperator } from "../../cli/ops.ts";
import { natsPresenceServers } from "../../gateway/io/nats/nats-presence.ts";
import { gatewayMetrics } from "../../gateway/metrics.ts";
import type { PresenceBackbone } from "../../gateway/ports.ts";
import { natsFanOut } from "../../room-server/io/nats-fan-out.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { startNatsCluster } from "../../engines/nats-cluster.ts";
import { subjectsOf } from "../bus/subjects.ts";
import type { GatewayId, RoomKey } from "../ids.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { SettingError } from "../settings/settings.ts";
import { closeNats, connectAs, connectNats, logForbidden, type NatsConnection } from "./nats.ts";

const NO_TLS = { natsCa: "", natsCert: "", natsKey: "" };
const PASSWORD = "p@ss:1,word";
const signer = nkeys.createUser();
let server: RealNats;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-nats-users-"));
  server = await startRealNats({ users: [{ user: "coroom", password: PASSWORD }, { nkey: signer.getPublicKey() }] });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function urlWith(password: string): string {
  return server.url.replace("nats://", `nats://coroom:${encodeURIComponent(password)}@`);
}

test("[NAT11] NATS accepts a user and password from the address", async () => {
  await isLetIn(await connectAs("operator", "test", { environment: "test", natsUrl: urlWith(PASSWORD), natsCredentials: "", ...NO_TLS }));
  await isLetIn(
    await connectOperator({ environment: "test", natsUrl: urlWith(PASSWORD), natsCredentials: "", ...NO_TLS, dataDir: folder }),
  );
});

test("[NAT12] NATS accepts a credentials file", async () => {
  const natsCredentials = join(folder, "coroom.creds");
  const seed = new TextDecoder().decode(signer.getSeed());
  writeFileSync(
    natsCredentials,
    `-----BEGIN NATS USER JWT-----\njwt\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  );
  await isLetIn(await connectNats({ servers: server.url, name: "test", natsCredentials }));
});

test("[NAT13] a rejected client is informed at once which credentials to give, and the error contains no secret", async () => {
  for (const natsUrl of [urlWith("WRONG"), server.url]) {
    for (const connect of [
      () => connectNats({ servers: natsUrl, name: "test" }),
      () => connectOperator({ environment: "test", natsUrl, natsCredentials: "", ...NO_TLS, dataDir: folder }),
    ]) {
      const error = await connect().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(SettingError);
      expect(String(error)).toMatch(/rejects the credentials. Set a valid user and password .*COROOM_NATS_URL.*COROOM_NATS_CREDENTIALS/);
      expect(String(error)).not.toContain("WRONG");
    }
  }
});

test("[NAT29] a cluster whose servers name each other rejects a client as one server does", async () => {
  const users = [{ user: "coroom", password: PASSWORD }];
  const engines = await startNatsCluster({ dataDir: join(folder, "cluster"), members: 2, users });
  try {
    const [first] = engines.map(({ url }) => url.replace("nats://", "nats://coroom:WRONG@"));
    await expect(connectNats({ servers: first!, name: "test" })).rejects.toThrow(/rejects the credentials/);
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
  }
});

test("[NAT25] a process logs each subject that its user may not use, although the subscription ignores the error", async () => {
  const permissions = { publish: ["test.>"], subscribe: ["test.allowed"] };
  const strict = await startRealNats({
    users: [
      { user: "free", password: PASSWORD },
      { user: "coroom", password: PASSWORD, permissions },
    ],
  });
  const nats = await connectNats({
    servers: strict.url.replace("nats://", `nats://coroom:${encodeURIComponent(PASSWORD)}@`),
    name: "test",
  });
  const [lines, subjects] = [[] as object[], subjectsOf("test")];
  logForbidden(nats, { ...SILENT_LOG, warn: (facts) => void lines.push(facts) });
  await natsFanOut(nats, subjects).subscribe("acme.plan" as RoomKey, () => {});
  const presence = natsPresenceServers(nats, subjects, "gw" as GatewayId, { metrics: gatewayMetrics(new Registry()) });
  await presence.start({} as PresenceBackbone);
  nats.publish("others.subject");
  nats.subscribe("test.allowed");
  await until(() => lines.length >= 4, "four lines");
  expect(lines).toEqual([
    { operation: "subscription", subject: subjects.editsOut("acme.plan" as RoomKey) },
    { operation: "subscription", subject: subjects.allPresenceToGateway("gw" as GatewayId) },
    { operation: "subscription", subject: subjects.allNoPresenceOwner("gw" as GatewayId) },
    { operation: "publish", subject: "others.subject" },
  ]);
  await closeNats(nats);
  await strict.stop();
});

async function isLetIn(nats: NatsConnection): Promise<void> {
  await nats.flush();
  await closeNats(nats);
}
