import { expect, test } from "vitest";

import { readSettings } from "../../shared/settings/settings.ts";
import { makeToken } from "../token.ts";
import { benchAccess } from "./access.ts";
import { benchSettings } from "./bench-settings.ts";

const SECRET = "a secret of the tests, 32 characters";
const claims = { room: ["coroom-bench-*"], user: "op", name: "", rights: ["read", "write", "admin"], tenant: "acme-test", ttl: 3_600 };
const accessWith = (flags: Record<string, string>) =>
  benchAccess(
    readSettings(benchSettings, { flags: { url: "http://127.0.0.1:1234", dataDir: "/does-not-exist", ...flags }, env: {} }),
    Date.now(),
  );
const given = async (changed: Partial<typeof claims>) => accessWith({ token: await makeToken({ ...claims, ...changed }, SECRET) });

test("[BNC20] a given token decides the tenant, and serves everybody", async () => {
  const access = await given({});
  expect(access.tenant).toBe("acme-test");
  expect(access.tokenOf(3)).toBe(await access.adminTokenOf(0));
  expect((await given({ room: ["*"] })).tenant).toBe("acme-test");
});

test.each<[Partial<typeof claims>, string]>([
  [{ rights: ["read", "write"] }, "its rights lack admin, which the command needs to delete its rooms"],
  [{ rights: ["read", "admin"] }, "its rights lack write"],
  [{ room: ["notes", "coroom-*-x", "coroom-bench-1"] }, "it does not open the rooms coroom-bench-*"],
  [{ ttl: 60 }, "and the run may take 152 s"],
])("[BNC21] a token with %o is refused before anything is opened", async (changed, reason) => {
  await expect(given(changed)).rejects.toThrow(reason);
});

test("[BNC29] a token that has expired is refused as such", async () => {
  const refused = given({ ttl: -25 });
  await expect(refused).rejects.toThrow(/^--token cannot be used: it expired at \d{4}-\d\d-\d\dT[\d:]+Z\. Give a token/);
});

test("[BNC22] text that is no token and a missing secret are refused with the remedy", async () => {
  await expect(accessWith({ token: "abc" })).rejects.toThrow("--token is no token of Coroom");
  await expect(accessWith({})).rejects.toThrow('Start one with "coroom start"');
});

test("[BNC23] with the secret each person is a separate user, and only tokens for deletion may administrate", async () => {
  const access = await accessWith({ jwtSecret: SECRET });
  expect(access.tenant).toBe("coroom-bench");
  const payload = (token: string): unknown => JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());
  const token = access.tokenOf(4);
  if (typeof token !== "function") throw new Error("people get a function, so that a token is renewed");
  expect(payload(await token())).toMatchObject({ sub: "bench-5", rooms: ["coroom-bench-*"], rights: ["read", "write"] });
  expect(payload(await access.adminTokenOf(0))).toMatchObject({ sub: "bench-1", rights: ["read", "write", "admin"] });
});
