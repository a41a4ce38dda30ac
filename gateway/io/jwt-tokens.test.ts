import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { exportJWK, exportSPKI, generateKeyPair, type JWTHeaderParameters, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import type { Clock } from "../../shared/time/clock.ts";
import { SettingError } from "../../shared/settings/settings.ts";
import { type Millis, TENANT_ID_RULE, type UnixMillis, USER_ID_RULE } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { Tokens } from "../ports.ts";
import { jwtTokens as tokensBy, type TokenOptions } from "./jwt-tokens.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const options: TokenOptions = {
  jwtSecret: SECRET,
  jwtSecretPrevious: "",
  jwksUrl: "",
  jwksFile: "",
  jwtIssuer: "",
  jwtAudience: "",
  jwtClockToleranceSeconds: 5,
  waitingTokensMax: 2,
};
const date = Math.floor(Date.now() / 1000) * 1000;
/** A process that is seven seconds old. */
const clock: Clock = { now: () => 7_000 as Millis, wallNow: () => date as UnixMillis, after: () => () => {} };
const nothing = (): void => {};
const jwtTokens = (of: TokenOptions) => tokensBy(of, { clock, log: SILENT_LOG, onWaiting: nothing, report: nothing });
const key = (secret: string) => new TextEncoder().encode(secret);

let folder: string;
let jwksFile: string;
let pair: Awaited<ReturnType<typeof generateKeyPair>>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-jwks-"));
  jwksFile = join(folder, "jwks.json");
  pair = await generateKeyPair("ES256", { extractable: true });
  writeFileSync(jwksFile, JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: "one", alg: "ES256" }] }));
});
afterAll(() => rmSync(folder, { recursive: true }));

function token(claims: object = {}, expiry: string | number = "1h", header: JWTHeaderParameters = { alg: "HS256" }): SignJWT {
  return new SignJWT({ rooms: ["notes"], rights: ["read", "write"], ...claims })
    .setProtectedHeader(header)
    .setSubject("ann")
    .setExpirationTime(expiry);
}

test("[JWT1] a token gives its bearer, the rooms it opens, and its expiry on the clock that deadlines use", async () => {
  const exp = date / 1000 + 60;
  const signed = await token({ tenant: "acme", name: "Ann" }, exp).sign(key(SECRET));
  expect(await jwtTokens(options).verify(signed)).toEqual({
    kind: "valid",
    identity: {
      tenant: "acme",
      user: "ann",
      name: "Ann",
      rooms: ["notes"],
      rights: { read: true, write: true, admin: false, award: false, boards: false },
      expiresAt: 72_000,
    },
  });
  for (const [name, displayed] of [
    [undefined, "ann"],
    ["", "ann"],
    ["Ann\n\u202eadmin", "Ann admin"],
  ])
    expect(await jwtTokens(options).verify(await token({ name }).sign(key(SECRET)))).toMatchObject({
      identity: { tenant: "default", name: displayed },
    });
});

test("[JWT2] an expired token differs from a bad one, and clocks may differ a little", async () => {
  const past = (seconds: number) => token({}, date / 1000 - seconds).sign(key(SECRET));
  expect(await jwtTokens(options).verify(await past(60))).toEqual({ kind: "expired", tenant: "default" });
  expect((await jwtTokens(options).verify(await past(2))).kind).toBe("valid");
});

test.each<[string, () => Promise<string> | string]>([
  ["no JWT", () => "hello"],
  ["nothing", () => ""],
  ["signed with another secret", () => token().sign(key("another secret, just as long as ours is"))],
  ["signed with HS512", () => token({}, "1h", { alg: "HS512" }).sign(key(SECRET.padEnd(64)))],
  ["not signed", () => new UnsecuredJWT({ rooms: ["*"], rights: ["read"] }).setSubject("ann").setExpirationTime("1h").encode()],
  [
    "without expiry",
    () => new SignJWT({ rooms: ["notes"], rights: ["read"] }).setProtectedHeader({ alg: "HS256" }).setSubject("ann").sign(key(SECRET)),
  ],
  [
    "without subject",
    () =>
      new SignJWT({ rooms: ["notes"], rights: ["read"] }).setProtectedHeader({ alg: "HS256" }).setExpirationTime("1h").sign(key(SECRET)),
  ],
  ["not valid yet", () => token().setNotBefore("1h").sign(key(SECRET))],
  ["with rooms that are no list", () => token({ rooms: "notes" }).sign(key(SECRET))],
  ["without rights", () => token({ rights: undefined }).sign(key(SECRET))],
  ["of a tenant that is no token", () => token({ tenant: "a.b" }).sign(key(SECRET))],
])("[JWT3] a token that is %s is refused, with a reason", async (_, make) => {
  const verdict = await jwtTokens(options).verify(await make());
  expect(verdict).toMatchObject({ kind: "refused" });
  expect(verdict.kind === "refused" && verdict.why.length).toBeGreaterThan(5);
});

test("[JWT14] a refusal because of a claim names the claim and its rule", async () => {
  const whyOf = async (made: SignJWT): Promise<unknown> => {
    const verdict = await jwtTokens(options).verify(await made.sign(key(SECRET)));
    return verdict.kind === "refused" && verdict.why;
  };
  expect(await whyOf(token().setSubject("a\u0000b"))).toBe(`claim sub: ${USER_ID_RULE}`);
  expect(await whyOf(token({ tenant: "a".repeat(65) }))).toBe(`claim tenant: ${TENANT_ID_RULE}`);
});

test("[JWT13] tokens of the previous secret are accepted beside those of the current one, and checked as strictly", async () => {
  const previous = "the secret that was valid before, just as long";
  const both = jwtTokens({ ...options, jwtSecretPrevious: previous });
  const kindOf = async (signed: Promise<string>) => (await both.verify(await signed)).kind;
  expect(await kindOf(token().sign(key(SECRET)))).toBe("valid");
  expect(await kindOf(token().sign(key(previous)))).toBe("valid");
  expect(await kindOf(token({}, date / 1000 - 60).sign(key(previous)))).toBe("expired");
  expect(await kindOf(token({}, "1h", { alg: "HS512" }).sign(key(previous.padEnd(64))))).toBe("refused");
  expect(await kindOf(token().sign(key("another secret, just as long as ours is")))).toBe("refused");
  expect((await jwtTokens(options).verify(await token().sign(key(previous)))).kind).toBe("refused");
});

test("[JWT4] issuer and audience are checked when they are configured", async () => {
  const strict = jwtTokens({ ...options, jwtIssuer: "https://id.example", jwtAudience: "coroom" });
  expect((await strict.verify(await token().sign(key(SECRET)))).kind).toBe("refused");
  expect((await strict.verify(await token().setIssuer("https://id.example").setAudience("coroom").sign(key(SECRET)))).kind).toBe("valid");
});

test("[JWT5] keys of a JWKS allow their own algorithms only, and a public key is never accepted as a shared secret", async () => {
  const tokens = jwtTokens({ ...options, jwtSecret: "", jwksFile });
  const header = { alg: "ES256", kid: "one" };
  expect((await tokens.verify(await token({}, "1h", header).sign(pair.privateKey))).kind).toBe("valid");
  const confused = await token({}, "1h", { alg: "HS256", kid: "one" }).sign(key(await exportSPKI(pair.publicKey)));
  expect((await tokens.verify(confused)).kind).toBe("refused");
  const stranger = await generateKeyPair("ES256");
  expect((await tokens.verify(await token({}, "1h", header).sign(stranger.privateKey))).kind).toBe("refused");
  expect((await tokens.verify(await token({}, "1h", { alg: "ES256", kid: "two" }).sign(pair.privateKey))).kind).toBe("refused");
});

test("[JWT6] keys that cannot be fetched are a failure and do not refuse the token", async () => {
  const tokens = jwtTokens({ ...options, jwtSecret: "", jwksUrl: "http://127.0.0.1:1/jwks.json" });
  expect(await tokens.verify(await of("one", pair.privateKey))).toEqual({ kind: "unchecked" });
});

test.each([
  ["an error", JSON.stringify({ message: "maintenance" })],
  ["an empty object", "{}"],
  ["no list of keys", JSON.stringify({ keys: null })],
  ["keys that are none", JSON.stringify({ keys: ["one"] })],
  ["no JSON", "<html>"],
])("[JWT9] a JWKS address that answers 200 with %s gives no keys, and does not refuse the token", async (_, body) => {
  const issuer = createServer((_request, response) => void response.setHeader("content-type", "application/json").end(body)).listen(
    0,
    "127.0.0.1",
  );
  await once(issuer, "listening");
  const tokens = jwtTokens({ ...options, jwtSecret: "", jwksUrl: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks.json` });
  expect(await tokens.verify(await of("one", pair.privateKey))).toEqual({ kind: "unchecked" });
  issuer.closeAllConnections();
  issuer.close();
});

test("[JWT10] a token that asks for an unknown feature is refused: the keys are not at fault", async () => {
  const tokens = jwtTokens({ ...options, jwtSecret: "", jwksFile });
  const header = Buffer.from(JSON.stringify({ "alg": "ES256", "kid": "one", "crit": ["made-up"], "made-up": 1 })).toString("base64url");
  const [, payload, signature] = (await of("one", pair.privateKey)).split(".");
  expect(await tokens.verify(`${header}.${payload}.${signature}`)).toMatchObject({ kind: "refused" });
});

/** A JWKS server to which keys can be added, and the clock by which its keys age. */
async function issuing(
  run: (issuer: {
    tokens: Tokens;
    add(kid: string): Promise<CryptoKey>;
    turn(ms: number): void;
    fetches(): number;
    waiting(): number;
    /** From now on the JWKS address answers with this status. */
    answer(status: number): void;
    readonly reports: string[];
    readonly logged: string[];
  }) => Promise<void>,
): Promise<void> {
  const keys: object[] = [];
  let [fetches, waiting, statusCode] = [0, 0, 200];
  const [reports, logged]: [string[], string[]] = [[], []];
  const issuer = createServer((_, response) => {
    fetches += 1;
    response.writeHead(statusCode, { "content-type": "application/json" }).end(JSON.stringify({ keys }));
  }).listen(0, "127.0.0.1");
  await once(issuer, "listening");
  vi.useFakeTimers({ toFake: ["Date"], now: date }); // The age of the keys follows Date.
  const turned = new FakeClock(date);
  const jwksUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks.json`;
  const tokens = tokensBy(
    { ...options, jwtSecret: "", jwksUrl },
    {
      clock: turned,
      log: { ...SILENT_LOG, warn: (_, text) => void logged.push(text) },
      onWaiting: (count) => (waiting = count),
      report: ({ state, forMs, reason }) => void reports.push(`${state} ${forMs} ${reason}`),
    },
  );
  const add = async (kid: string): Promise<CryptoKey> => {
    const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
    keys.push({ ...(await exportJWK(publicKey)), kid, alg: "ES256" });
    return privateKey;
  };
  const turn = (ms: number): void => {
    vi.setSystemTime(Date.now() + ms);
    turned.turn(ms);
  };
  try {
    const answer = (status: number): void => void (statusCode = status);
    await run({ tokens, add, turn, fetches: () => fetches, waiting: () => waiting, answer, reports, logged });
  } finally {
    vi.useRealTimers();
    issuer.closeAllConnections();
    issuer.close();
  }
}

const of = (kid: string, signer: CryptoKey): Promise<string> => token({}, "1h", { alg: "ES256", kid }).sign(signer);

test("[JWT7] tokens of a new key and of an invented key wait for the JWKS, and only the invented one is refused", () =>
  issuing(async ({ tokens, add, turn, fetches, waiting }) => {
    const first = await add("one");
    expect((await tokens.verify(await of("one", first))).kind).toBe("valid");
    const second = await add("two");
    const verdicts = [tokens.verify(await of("two", second)), tokens.verify(await of("made up", second))];
    await vi.waitUntil(() => waiting() === 2, 30_000);
    expect((await tokens.verify(await of("one", first))).kind, "whose key is known waits for nothing").toBe("valid");
    turn(3_000);
    expect((await Promise.all(verdicts)).map(({ kind }) => kind)).toEqual(["valid", "refused"]);
    expect([fetches(), waiting()]).toEqual([2, 0]);
    turn(60_000);
    expect((await tokens.verify(await of("three", first))).kind, "the keys are old: they are fetched for it at once").toBe("refused");
  }));

test("[JWT8] a token above the maximum number of tokens that wait for keys is not checked", () =>
  issuing(async ({ tokens, add, turn, waiting }) => {
    const first = await add("one");
    await tokens.verify(await of("one", first));
    const verdicts = ["a", "b"].map(async (kid) => (await tokens.verify(await of(kid, first))).kind);
    await vi.waitUntil(() => waiting() === 2, 30_000);
    expect((await tokens.verify(await of("c", first))).kind).toBe("unchecked");
    turn(3_000);
    expect(await Promise.all(verdicts)).toEqual(["refused", "refused"]);
  }));

test("[JWT12] a JWKS that fails is reported and logged once, however many tokens arrive, and again when it answers", () =>
  issuing(async ({ tokens, add, turn, answer, reports, logged }) => {
    const first = await add("one");
    expect((await tokens.verify(await of("one", first))).kind).toBe("valid");
    answer(503);
    turn(60_000);
    for (let client = 0; client < 20; client++) expect((await tokens.verify(await of(`new-${client}`, first))).kind).toBe("unchecked");
    expect((await tokens.verify(await of("one", first))).kind, "by keys that were fetched before").toBe("valid");
    const reason = "Expected 200 OK from the JSON Web Key Set HTTP response";
    expect([reports, logged.length]).toEqual([[`lost 0 ${reason}`], 1]);
    answer(200);
    turn(5_000);
    expect((await tokens.verify(await of("forged", first))).kind).toBe("refused");
    expect([reports.slice(1), logged.length]).toEqual([[`found 5000 ${reason}`], 1]);
  }));

test.each([
  ["is not there", undefined, /^COROOM_JWKS_FILE=.* cannot be read \(ENOENT\)/],
  ["is no JSON", "HUSH", /^COROOM_JWKS_FILE=.* contains no key set/],
  ["holds something else", '{"HUSH":1}', /^COROOM_JWKS_FILE=.* contains no key set/],
])("[JWT11] a key file that %s is reported by its setting, without its content", (_, text, message) => {
  const file = join(folder, "broken.json");
  rmSync(file, { force: true });
  if (text !== undefined) writeFileSync(file, text);
  const made = () => jwtTokens({ ...options, jwtSecret: "", jwksFile: file });
  expect(made).toThrow(SettingError);
  expect(made).toThrow(message);
  expect(made).not.toThrow(/HUSH/);
});
