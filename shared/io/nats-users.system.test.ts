/** A nats-server that accepts only known users. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { nkeys } from "nats";
import { afterAll, beforeAll, expect, test } from "vitest";

import { connectOperator } from "../../cli/ops.ts";
import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { SettingError } from "../settings/settings.ts";
import { closeNats, connectAs, connectNats, type NatsConnection } from "./nats.ts";

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

async function isLetIn(nats: NatsConnection): Promise<void> {
  await nats.flush();
  await closeNats(nats);
}
