import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { expect, test } from "vitest";

import { readSettings } from "../shared/settings/settings.ts";
import { opsProcessesSettings } from "./command-settings.ts";
import { listProcesses } from "./ops-fleet.ts";

test("[OPL13] a gateway of a release that lists no processes is named, and no empty list is printed", async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ reachesNats: true, gateways: [] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = readSettings(opsProcessesSettings, { flags: { url, operatorSecret: "operator" }, env: {} });
    const printed: string[] = [];
    await expect(listProcesses(config, (line) => void printed.push(line))).rejects.toThrow(
      "the release of this gateway lists no processes. Set --url to a gateway of a newer release",
    );
    expect(printed).toEqual([]);
  } finally {
    server.close();
  }
});
