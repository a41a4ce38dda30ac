/**
 * Points for activities that are no edits, end to end: a backend reports an activity over HTTP, or a user is present.
 * Clients cannot report activities.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { makeToken } from "../../cli/token.ts";
import { RoomConnection } from "../../client/index.ts";
import { DemoSystem, FIRST_START_MS_MAX } from "./browser.ts";
import { eventually } from "./eventually.ts";

const BURST = 12;
let system: DemoSystem;
let jwtSecret: string;

beforeAll(async () => {
  system = await DemoSystem.start({
    BOARD_ROLES: "everyone,editors,commenters",
    BOARD_KINDS: "comment:5:commenters,review:2",
    BOARD_SESSION_MS: "2000",
    BOARD_SESSION_POINTS: "3",
    BOARD_READ_BURST: "10000",
    ACTIVITY_BURST: String(BURST),
    ACTIVITIES_PER_SECOND: "1",
  });
  ({ jwtSecret } = JSON.parse(readFileSync(join(system.folder, "data", "secrets.json"), "utf8")) as { jwtSecret: string });
}, FIRST_START_MS_MAX);
afterAll(() => system?.stop());

const tokenOf = (user: string, rights: readonly string[], room = "*"): Promise<string> =>
  makeToken({ room: [room], user, name: user, rights, tenant: "default", ttl: 600 }, jwtSecret);

async function report(
  room: string,
  body: unknown,
  { user = "backend", rights = ["award"], opens = "*" }: { user?: string; rights?: string[]; opens?: string } = {},
): Promise<{ status: number; outcome?: string; error?: string }> {
  const response = await fetch(`${system.url}/v1/rooms/${room}/activities`, {
    method: "POST",
    headers: { authorization: `Bearer ${await tokenOf(user, rights, opens)}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, ...((await response.json()) as { outcome?: string; error?: string }) };
}

async function scoresOf(room: string, role: string): Promise<string[]> {
  const response = await fetch(`${system.url}/v1/rooms/${room}/leaderboard?role=${role}`, {
    headers: { authorization: `Bearer ${await tokenOf("reader", ["read"])}` },
  });
  const { ranking = [] } = (await response.json()) as { ranking?: { user: string; score: number }[] };
  return ranking.map(({ user, score }) => `${user} ${score}`);
}

const comment = (user: string, times = 1) => ({ user, kind: "comment", times });

test("[ACT10] an activity that a backend reports counts once on everyone's board and on the role's board, also in an empty room", async () => {
  const body = { id: "c-1", activities: [comment("ann", 2), { user: "bob", kind: "review" }] };
  await eventually("it is stored", async () => ["stored", "known"].includes((await report("quiet", body)).outcome ?? ""));
  expect(await report("quiet", body)).toEqual({ status: 202, outcome: "known" });
  expect(await report("quiet", { id: "c-2", activities: [comment("bob")] })).toEqual({ status: 202, outcome: "stored" });
  await eventually("it is counted", async () => (await scoresOf("quiet", "everyone")).join() === "ann 10,bob 7");
  expect(await scoresOf("quiet", "commenters")).toEqual(["ann 10", "bob 5"]);
  expect(await scoresOf("quiet", "editors")).toEqual([]);
});

test("[ACT11] an activity without the right, of an invalid form or above the rate is refused", async () => {
  const body = { id: "x-1", activities: [comment("eve", 1_000)] };
  for (const rights of [
    ["read", "write"],
    ["read", "write", "admin"],
  ])
    expect(await report("closed", body, { user: "eve", rights })).toMatchObject({ status: 403, error: "not-allowed" });
  expect(await report("closed", body, { opens: "other" })).toMatchObject({ status: 403, error: "not-allowed" });
  expect((await fetch(`${system.url}/v1/rooms/closed/activities`, { method: "POST", body: JSON.stringify(body) })).status).toBe(401);
  const user = "careless";
  for (const bad of [
    {},
    { ...body, id: "" },
    { ...body, activities: [] },
    { ...body, activities: [comment("eve", 0)] },
    { ...body, activities: [{ user: "", kind: "comment" }] },
    { ...body, activities: [{ user: "eve", kind: "comment", score: 5, times: "many" }] },
  ]) {
    expect(await report("closed", bad, { user }), JSON.stringify(bad)).toMatchObject({ status: 400, error: "bad-body" });
  }
  expect(await report("closed", { id: "x-2", activities: [{ user: "eve", kind: "applause" }] }, { user })).toMatchObject({
    status: 400,
    error: "unknown-kind",
  });
  expect(await report("%01", body, { user })).toMatchObject({ status: 400, error: "bad-room" });
  const often = await Promise.all(
    Array.from({ length: 2 * BURST }, (_, index) =>
      report("often", { id: `o-${index}`, activities: [comment("ann")] }, { user: "greedy" }),
    ),
  );
  expect(often.filter(({ error }) => error === "rate-limited").length).toBeGreaterThan(0); // The rate admits one more each second.
  expect(await scoresOf("closed", "everyone")).toEqual([]);
});

test("[ACT12] presence in a room earns points for users who may write, however many connections each of them has", async () => {
  const enter = (user: string, rights: readonly string[]) =>
    new RoomConnection({ url: system.url, room: "present", token: () => tokenOf(user, rights) });
  const here = [enter("ann", ["read", "write"]), enter("ann", ["read", "write"]), enter("onlooker", ["read"])];
  try {
    await eventually("ann has been there for a while", async () =>
      (await scoresOf("present", "everyone")).some((score) => Number(score.split(" ")[1]) >= 6),
    );
    expect((await scoresOf("present", "everyone")).map((score) => score.split(" ")[0])).toEqual(["ann"]);
    expect(Number((await scoresOf("present", "everyone"))[0]?.split(" ")[1]) % 3).toBe(0);
    expect(await scoresOf("present", "editors")).toEqual([]);
  } finally {
    for (const room of here) room.destroy();
  }
});
