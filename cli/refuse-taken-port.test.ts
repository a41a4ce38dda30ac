import { type AddressInfo, createServer } from "node:net";

import { expect, onTestFinished, test } from "vitest";

import { StartError } from "../shared/process/lifecycle.ts";
import { refuseTakenPort } from "./start-checks.ts";

const host = "127.0.0.1";

async function taken(): Promise<number> {
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((listening) => server.listen(0, host, listening));
  return (server.address() as AddressInfo).port;
}

test("[PORT1] only a gateway refuses a port in use, before anything starts", async () => {
  const port = await taken();
  await expect(refuseTakenPort({ roles: ["engines", "gateway"], host, port })).rejects.toThrow(StartError);
  await expect(refuseTakenPort({ roles: ["placement"], host, port })).resolves.toBeUndefined();
  await expect(refuseTakenPort({ roles: ["gateway"], host, port: 0 })).resolves.toBeUndefined();
});

test("[PORT2] the check releases a free port", async () => {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, host, listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  await refuseTakenPort({ roles: ["gateway"], host, port });
  await expect(refuseTakenPort({ roles: ["gateway"], host, port })).resolves.toBeUndefined();
});
