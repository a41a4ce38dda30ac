import { expect, test } from "vitest";

import {
  findingLine,
  judgeCertificate,
  judgeClock,
  judgeDisk,
  judgeOpenFiles,
  judgeNats,
  judgeRedis,
  judgeSecrets,
  judgeServices,
  judgeStorage,
  judgeStream,
} from "./findings.ts";

const GIB = 1_024 ** 3;
const SECRETS = { jwtSecret: "", roomSecret: "", internalSecret: "", operatorSecret: "", metricsSecret: "" };
const [long, other] = ["a".repeat(32), "b".repeat(32)];

test("[DCT1] every finding that is not well states what to do", () => {
  const stream = { name: "log", replicas: 3, bytesMax: 1, hasLeader: true, lagging: [] };
  const cases: [ReturnType<typeof judgeClock>, string, RegExp][] = [
    [judgeClock(12), "ok", /by 12 ms/],
    [judgeClock(-4_000), "warning", /4000 ms behind the nats-server's\. Run NTP/],
    [judgeClock(40_000), "problem", /ahead of/],
    [judgeDisk("data", 40 * GIB, 100 * GIB), "ok", /40\.0 GiB of 100\.0 GiB/],
    [judgeDisk("data", 5 * GIB, 100 * GIB), "warning", /Free space/],
    [judgeDisk("data", 0.1 * GIB, 100 * GIB), "problem", /free space now/],
    [judgeStorage(GIB, -1), "ok", /no limit; max_file_store/],
    [judgeStorage(0.9 * GIB, GIB), "warning", /90%.*Raise the limit/],
    [judgeStorage(GIB, GIB), "problem", /100%/],
    [judgeStream(stream, { logReplicas: 3 }), "ok", /3 replicas/],
    [judgeStream({ ...stream, hasLeader: false }, { logReplicas: 3 }), "problem", /no leader/],
    [judgeStream({ ...stream, bytesMax: -1 }, { logReplicas: 3 }), "problem", /no size limit.*Raise max_file_store/],
    [judgeStream({ ...stream, lagging: ["nats-2"] }, { logReplicas: 3 }), "warning", /nats-2/],
    [judgeStream({ ...stream, replicas: 1 }, { logReplicas: 3 }), "warning", /COROOM_LOG_REPLICAS is 3/],
    [judgeOpenFiles(1_024, { roles: ["gateway"], connectionsMax: 10_000 }), "warning", /11000 needed.*ulimit -n/],
    [judgeOpenFiles(1_024, { roles: ["placement"], connectionsMax: 10_000 }), "ok", /1024/],
    [judgeCertificate("COROOM_TLS_CERT_FILE", 0, 1), "problem", /expired/],
    [judgeCertificate("COROOM_TLS_CERT_FILE", 5 * 86_400_000, 1), "warning", /in 4 days/],
    [judgeNats("n", "2.11.0", 2), "ok", /^n 2\.11\.0 answers in 2 ms$/],
    [judgeNats("n", "2.9.25", 2), "problem", /needs 2\.11\.0 or newer\. Upgrade it/],
    [judgeRedis("6.0.16", "noeviction", true), "problem", /needs 6\.2\.0 or newer\. Upgrade it/],
    [judgeRedis("10.0.0", "noeviction", true), "ok", /answers$/],
    [judgeRedis("8.0", "allkeys-lru", true), "problem", /noeviction/],
    [judgeRedis("8.0", "noeviction", false), "warning", /appendonly/],
    [judgeRedis(undefined, undefined, undefined), "ok", /answers/],
  ];
  for (const [finding, state, text] of cases) expect([finding.state, finding.text]).toEqual([state, expect.stringMatching(text)]);
  expect(findingLine(judgeClock(12))).toBe("ok       clock        differs from the nats-server's by 12 ms");
});

test("[DCT5] each role that sends no heartbeats is a finding, and placement alone stops nobody's work", () => {
  const well = { roomServers: 2, documents: 1, hasPlacementLeader: true };
  const found = (services: Partial<typeof well>): readonly string[] =>
    judgeServices({ ...well, ...services }).map(({ about, state }) => `${about} ${state}`);
  expect(found({})).toEqual(["roles ok"]);
  expect(found({ roomServers: 0 })).toEqual(["room servers problem"]);
  expect(found({ documents: 0, hasPlacementLeader: false })).toEqual(["documents problem", "placement warning"]);
});

test("[DCT2] secrets that are short, or equal to another, are named", () => {
  expect(judgeSecrets(SECRETS).map(({ state }) => state)).toEqual(["ok"]);
  expect(judgeSecrets({ ...SECRETS, jwtSecret: long, roomSecret: other })).toMatchObject([
    { state: "ok", text: expect.stringContaining("2 of 5") },
  ]);
  expect(judgeSecrets({ ...SECRETS, jwtSecret: long, roomSecret: long, operatorSecret: "short" }).map(({ text }) => text)).toEqual([
    expect.stringMatching(/^COROOM_OPERATOR_SECRET has fewer than 32/),
    expect.stringMatching(/^COROOM_ROOM_SECRET equals another/),
  ]);
});
