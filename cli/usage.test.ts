import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { expect, test } from "vitest";

import { SettingError, readSettings } from "../shared/settings/settings.ts";
import { usageSettings } from "./command-settings.ts";
import { printUsage } from "./usage.ts";

async function printed(answer: unknown, flags: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const server = createServer((_, response) => response.end(JSON.stringify(answer))).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = readSettings(usageSettings, { flags: { url, operatorSecret: "x".repeat(32), ...flags }, env: {} });
  const lines: string[] = [];
  try {
    await printUsage(config, (line) => void lines.push(line));
  } finally {
    server.close();
  }
  return lines;
}

const row = { day: "2026-11-28", tenant: "acme", connections: 1, connectionSeconds: 2, edits: 3, editBytes: 4, presenceMessages: 5 };
const days = { from: "2026-11-28", to: "2026-11-28" };

test("[USGC3] the usage of a gateway of another version is printed: a column that it lacks is empty, and one that it adds is left out", async () => {
  const older = { ...row, receivedBytes: 6, deliveredBytes: 7, refusals: 8 };
  const newer = { ...older, storedBytes: 9, peakConnections: 10, snapshots: 11 };
  const [head, first, second] = (await printed({ ...days, usage: [older, newer] }, { csv: "true" }))[0]!.split("\r\n");
  expect(head).toMatch(/,refusals,storedBytes,peakConnections$/);
  expect([first, second]).toEqual(["2026-11-28,acme,1,2,3,4,5,6,7,8,,", "2026-11-28,acme,1,2,3,4,5,6,7,8,9,10"]);
  const [title, line] = await printed({ ...days, usage: [older] });
  expect([title!.endsWith("peak connections"), line!.endsWith(" 8")]).toEqual([true, true]);
});

test("[USGC4] JSON of a server that is no gateway of this version is reported with what to check", async () => {
  for (const answer of [{}, { ...days, usage: "none" }, { ...days, usage: [3] }]) {
    const asked = printed(answer);
    await expect(asked).rejects.toThrow(SettingError);
    await expect(asked).rejects.toThrow(
      /not an answer that this command understands \([a-z][\w.]*: .*\)\. Check --url, and that gateway and command have the same version/,
    );
  }
});
