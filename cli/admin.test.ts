import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { readSettings } from "../shared/settings/settings.ts";
import { runAdmin } from "./admin.ts";
import { type AdminCommandName, adminSettings } from "./command-settings.ts";

const UNTIL = "2026-01-02T03:04:05.000Z";

let server: Server;
let asked: { line: string; bearer: string | undefined; body: unknown }[];
let answers: { status: number; body: object }[];

beforeAll(async () => {
  server = createServer(async (question, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of question) chunks.push(chunk as Buffer);
    asked.push({
      line: `${question.method} ${question.url}`,
      bearer: question.headers.authorization,
      body: chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString()),
    });
    const { status, body } = answers.shift() ?? { status: 200, body: { gateways: 1, until: UNTIL } };
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => void server.close());
beforeEach(() => {
  [asked, answers] = [[], []];
});

function run(command: AdminCommandName, flags: Record<string, string>): Promise<string> {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return runAdmin(command, readSettings(adminSettings[command], { flags: { url, operatorSecret: "operator", ...flags }, env: {} }));
}

test.each<[AdminCommandName, Record<string, string>, string, unknown]>([
  ["kick", { user: "bob", room: "notes" }, "POST /v1/admin/kick", { tenant: "default", user: "bob", room: "notes" }],
  ["downgrade", { user: "bob", for: "1h", tenant: "acme" }, "POST /v1/admin/downgrade", { tenant: "acme", user: "bob", seconds: 3_600 }],
  ["ban", { address: "203.0.113.7" }, "POST /v1/admin/ban", { tenant: "default", address: "203.0.113.7", seconds: 900 }],
  ["unban", { user: "bob" }, "POST /v1/admin/lift", { tenant: "default", user: "bob", level: "banned" }],
  ["bans", {}, "GET /v1/admin/bans", undefined],
  ["delete-room", { room: "a/b", tenant: "acme" }, "DELETE /v1/rooms/a%2Fb?tenant=acme", undefined],
  ["rooms", { tenant: "acme", prefix: "a b" }, "GET /v1/rooms?tenant=acme&prefix=a+b&limit=100", undefined],
  ["members", { room: "a/b", tenant: "acme" }, "GET /v1/admin/rooms/a%2Fb/members?tenant=acme", undefined],
])("[ADC1] coroom %s %o asks a gateway", async (command, flags, line, body) => {
  await run(command, flags);
  expect(asked).toEqual([{ line, bearer: "Bearer operator", body }]);
});

test("[ADC2] the token has priority over the operator's secret, and the command reports the gateway's refusal", async () => {
  answers = [{ status: 403, body: { error: "not-allowed", message: "the token does not open this room" } }];
  await expect(run("kick", { token: "t", user: "bob" })).rejects.toThrow("the token does not open this room");
  expect(asked[0]!.bearer).toBe("Bearer t");
  await expect(run("bans", { url: "http://127.0.0.1:2" })).rejects.toThrow("no gateway answers");
});

test("[ADC3] a drain repeats its request until no client is connected or the time limit ends", async () => {
  answers = [
    { status: 202, body: { connections: 2 } },
    { status: 202, body: { connections: 0 } },
  ];
  expect(await run("drain", {})).toMatch(/^drained: .*restart it to use it again$/);
  expect(asked).toHaveLength(2);
  answers = Array.from({ length: 3 }, () => ({ status: 202, body: { connections: 2 } }));
  await expect(run("drain", { drainMs: "1" })).rejects.toThrow("2 connections have not moved");
});

test.each<AdminCommandName>(["members", "kick"])("[ADC4] %s fails if no gateway answers", async (command) => {
  answers = [{ status: 200, body: { members: [], kicked: 0, gateways: 0 } }];
  await expect(run(command, { room: "notes" })).rejects.toThrow(/no gateway took part.*NATS/);
});

test("[ADC5] the end of a sanction is printed as a date", async () => {
  expect(JSON.parse(await run("ban", { user: "bob" }))).toEqual({ until: UNTIL });
  expect(JSON.parse(await run("downgrade", { user: "bob" }))).toEqual({ until: UNTIL });
  expect(JSON.parse(await run("unban", { user: "bob" }))).toEqual({ lifted: true, wouldHaveEnded: UNTIL });
});

test("[ADC6] without a secret, a token and a started system the command states how to give one, and makes no folder", async () => {
  const dataDir = join(tmpdir(), `coroom-never-${process.pid}`);
  await expect(run("bans", { operatorSecret: "", dataDir })).rejects.toThrow(
    /no system was started with the data folder .* or set COROOM_OPERATOR_SECRET .* or --token/,
  );
  expect(existsSync(dataDir)).toBe(false);
});

test("[ADC7] a sanction without its user, or longer than gateways accept, is refused before a gateway is asked", () => {
  const read = (command: AdminCommandName, flags: Record<string, string>) => () => readSettings(adminSettings[command], { flags, env: {} });
  expect(read("downgrade", {})).toThrow(/--user is not set: Id of the user/);
  for (const command of ["ban", "downgrade"] as const) {
    expect(read(command, { user: "bob", for: "367d" })).toThrow(/--for=367d must be at most 366d/);
    expect(read(command, { user: "bob", for: "366d" })).not.toThrow();
  }
});
