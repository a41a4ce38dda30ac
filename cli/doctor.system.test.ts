/** `coroom doctor` beside real engines: each problem is named by the part that has it. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import { BUS_VERSION } from "../shared/bus/bus-version.ts";
import { NATS_ROLES } from "../shared/bus/permissions.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { joinBus } from "../shared/io/bus-announcements.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { startTestNats, startTestRedis } from "../test/contract/test-engines.ts";
import { redisUserLine } from "../engines/redis-server.ts";
import { gatewayRig, OPERATOR } from "../gateway/testing/gateway-rig.ts";
import { doctor } from "./doctor.ts";
import { withUser } from "./local-addresses.ts";
import { natsUsers } from "./local-engines.ts";
import { localSecrets } from "./secrets.ts";
import { startSettings } from "./settings.ts";

/** No server listens there. */
const NOBODY = "127.0.0.1:1";

const rig = gatewayRig("doctor");
let folder: string;
let nats: RealNats;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-doctor-"));
  nats = await startRealNats();
});
afterAll(async () => {
  await nats.stop();
  rmSync(folder, { recursive: true });
});

async function examine(settings: Readonly<Record<string, string>>): Promise<{ lines: readonly string[]; error: unknown }> {
  const lines: string[] = [];
  const config = readSettings(startSettings, { flags: { dataDir: join(folder, "data"), port: "1", ...settings }, env: {} });
  const error: unknown = await doctor(config, (line) => void lines.push(line)).then(
    () => undefined,
    (refusal: unknown) => refusal,
  );
  return { lines, error };
}

test("[DCTR1] a NATS that answers is well, and a Redis that does not is a problem of Redis", async () => {
  const { lines, error } = await examine({ natsUrl: nats.url, redisUrl: `redis://${NOBODY}` });
  expect(lines.find((line) => line.includes("NATS"))).toMatch(/^ok +NATS +.* answers in \d+ ms$/);
  expect(lines.find((line) => line.includes("Redis"))).toMatch(/^PROBLEM +Redis +does not answer .*COROOM_REDIS_URL$/);
  expect(error).toMatchObject({ message: "1 problem found; each line above states what to do" });
});

test("[DCTR2] a NATS that does not answer is a problem of NATS, and the other parts are still checked", async () => {
  const { lines, error } = await examine({ natsUrl: `nats://${NOBODY}` });
  expect(lines.filter((line) => line.startsWith("PROBLEM"))).toEqual([
    expect.stringMatching(/^PROBLEM +NATS +no NATS server answers at .*COROOM_NATS_URL/),
  ]);
  expect(lines.at(-1)).toMatch(/^warning +gateway +nothing answers/);
  expect(error).toMatchObject({ message: "1 problem found; each line above states what to do" });
});

test("[DCTR6] a damaged certificate and an unreadable data folder are problems, and the other parts are still checked", async () => {
  const dataDir = mkdtempSync(join(folder, "unreadable-"));
  mkdirSync(join(dataDir, "redis-url"));
  const { lines } = await examine({ dataDir, natsUrl: nats.url, natsCert: "package.json", natsKey: "package.json" });
  expect(lines.find((line) => line.includes("TLS"))).toMatch(/^PROBLEM +TLS +COROOM_NATS_CERT=package\.json has no readable certificate/);
  expect(lines.find((line) => line.includes("Redis"))).toMatch(
    /^PROBLEM +Redis +cannot read .*redis-url \(EISDIR\)\. Run this command as the user who started the system, or set COROOM_DATA_DIR/,
  );
  expect(lines.at(-1)).toMatch(/^warning +gateway +nothing answers/);
});

test("[DCTR3] a gateway with another secret than coroom token uses here is a problem of tokens, which names what to set", async () => {
  const { jwtSecret } = localSecrets(join(folder, "data"));
  const tokensAt = async (address: string, more: Readonly<Record<string, string>> = {}): Promise<string | undefined> => {
    const { lines } = await examine({ natsUrl: nats.url, port: address.split(":")[1]!, ...more });
    expect(lines.find((line) => / gateway +/.test(line))).toMatch(/is ready$/);
    return lines.find((line) => /^\S+ +tokens /.test(line));
  };
  rig.startOwner();
  const [same, other] = [await rig.start({ jwtSecret }), await rig.start()];
  await until(
    async () => (await fetch(`http://${other}/readyz`)).ok && (await fetch(`http://${same}/readyz`)).ok,
    "the gateways are ready",
  );
  expect(await tokensAt(same)).toMatch(/^ok +tokens +.* accepts tokens of coroom token/);
  expect(await tokensAt(other)).toMatch(/^PROBLEM +tokens +.* refuses tokens of coroom token \([^{}]*signature.*COROOM_JWT_SECRET/);
  expect(await tokensAt(other, { jwtSecret: "a secret of at least 32 bytes, for tests only" })).toMatch(/^ok/);
  expect(await tokensAt(other, { jwksUrl: "http://127.0.0.1:2/keys" }), "coroom token has no key of a JWKS").toBeUndefined();
});

test("[DCTR7] a ready gateway beside no document service is a problem of the document service", async () => {
  rig.startOwner();
  const address = await rig.start();
  await until(async () => (await fetch(`http://${address}/readyz`)).ok, "the gateway is ready");
  const reported = async (operatorSecret: string): Promise<readonly string[]> => {
    const { lines } = await examine({ natsUrl: nats.url, port: address.split(":")[1]!, operatorSecret });
    return lines.filter((line) => /^\S+ +(documents|placement|room servers|roles) /.test(line));
  };
  expect(await reported(OPERATOR)).toEqual([
    expect.stringMatching(/^PROBLEM +documents +no document service sends heartbeats, so clients that open a document wait/),
    expect.stringMatching(/^warning +placement +no process leads/),
  ]);
  expect(await reported("another secret of operators, long enough"), "doctor cannot ask").toEqual([]);
});

test("[DCTR4] the settings of a local system with a JWKS are well: it needs no secret for tokens", async () => {
  const { lines } = await examine({ natsUrl: nats.url, jwksUrl: "http://127.0.0.1:2/keys" });
  expect(lines[0]).toMatch(/^ok +settings +fit together/);
});

test("[DCTR5] doctor of a release that would not start beside a running process shows the reason", async () => {
  const settings = { natsUrl: nats.url, environment: "dctr5" };
  const ofRelease = async (): Promise<string | undefined> => (await examine(settings)).lines.find((line) => line.includes(" release "));
  expect(await ofRelease()).toMatch(/^ok +release +\S+ \(bus version \d+\) works with the stored data and all running processes$/);
  const connection = await connectNats({ servers: nats.url, name: "another release" });
  const bus = { version: BUS_VERSION + 2, oldest: BUS_VERSION + 1 };
  const other = { id: "other", roles: ["gateway"], host: "web-7", pid: 4711, release: "9.0.0", bus };
  await joinBus(connection, subjectsOf("dctr5"), other, { clock: systemClock, log: SILENT_LOG });
  expect(await ofRelease()).toMatch(/^PROBLEM +release +.* cannot run beside gateway on web-7, process 4711, of release 9\.0\.0/);
  await closeNats(connection);
  expect(await ofRelease()).toMatch(/^ok/);
});

test("[DCTR8] doctor with the NATS user of a role examines JetStream and the release, and names a user that does not fit", async () => {
  const users = natsUsers({ environment: "dctr8", logPartitions: 1 }, (role) => `password of ${role}`);
  const engine = await startTestNats({ dataDir: join(folder, "nats with users"), users });
  const natsLines = async (user: (typeof NATS_ROLES)[number], roles: string): Promise<readonly string[]> => {
    const natsUrl = withUser(engine.url, user, `password of ${user}`);
    const { lines } = await examine({ natsUrl, roles, environment: "dctr8" });
    return lines.filter((line) => / (?:NATS|JetStream|release|log) /.test(line));
  };
  try {
    for (const role of NATS_ROLES) {
      const own = role === "operator" ? "engines,gateway" : role;
      expect(
        (await natsLines(role, own)).map((line) => line.slice(0, 18).trim()),
        role,
      ).toEqual(["ok       NATS", "ok       JetStream", "ok       release", "ok       log"]);
    }
    expect(await natsLines("gateway", "room-server")).toEqual([
      expect.stringMatching(/^ok +NATS/),
      expect.stringMatching(/^PROBLEM +NATS +does not allow a subject that room-server needs .*coroom nats-users/),
    ]);
  } finally {
    await engine.stop();
  }
});

test("[DCTR10] a NATS user of an earlier release, which may not ask the running processes, is a problem of NATS", async () => {
  const earlier = natsUsers({ environment: "dctr10", logPartitions: 1 }, (role) => `password of ${role}`).map((user) => {
    const { publish, subscribe } = user.permissions;
    const without = (subjects: readonly string[]): readonly string[] => subjects.filter((subject) => subject !== "dctr10.processes");
    return { ...user, permissions: { ...user.permissions, publish: without(publish), subscribe: without(subscribe) } };
  });
  const engine = await startTestNats({ dataDir: join(folder, "nats with earlier users"), users: earlier });
  try {
    const natsUrl = withUser(engine.url, "room-server", "password of room-server");
    const { lines } = await examine({ natsUrl, roles: "room-server", environment: "dctr10" });
    expect(lines.filter((line) => / (?:NATS|release) +/.test(line))).toEqual([
      expect.stringMatching(/^ok +NATS/),
      expect.stringMatching(/^PROBLEM +NATS +does not allow a subject that room-server needs .*dctr10\.processes.*coroom nats-users/),
    ]);
  } finally {
    await engine.stop();
  }
});

test("[DCTR9] a log without a size limit, for which JetStream has too little storage, is a problem of the log", async () => {
  const engine = await startTestNats({ dataDir: join(folder, "nats without storage"), fileBytesMax: 3 * 1024 ** 2 });
  try {
    const connection = await connectNats({ servers: engine.url, name: "a room server" });
    await ensureLogStreams(connection, subjectsOf("dctr9"), { partitions: 1, replicas: 1, bytesMax: 0 });
    await closeNats(connection);
    const { lines } = await examine({ natsUrl: engine.url, environment: "dctr9" });
    expect(lines.find((line) => line.includes("dctr9_log_0"))).toMatch(/^PROBLEM +dctr9_log_0 +has no size limit.*Raise max_file_store/);
  } finally {
    await engine.stop();
  }
});

test("[DCTR11] a Redis user without a command that its role needs is a problem of Redis, which names the command", async () => {
  const engine = await startTestRedis({ dataDir: join(folder, "redis of an earlier release") });
  const admin = new Redis(engine.url);
  try {
    const redisOf = async (role: "gateway" | "leaderboard"): Promise<string | undefined> => {
      const redisUrl = withUser(engine.url, role, "hidden");
      const { lines } = await examine({ natsUrl: nats.url, redisUrl, roles: role, environment: "dctr11" });
      return lines.find((line) => / Redis /.test(line));
    };
    for (const role of ["gateway", "leaderboard"] as const)
      await admin.call("ACL", "SETUSER", ...redisUserLine(role, "dctr11", ">hidden").split(" ").slice(1));
    expect(await redisOf("leaderboard")).toMatch(/^ok/);
    expect(await redisOf("gateway")).toMatch(/^ok/);
    await admin.call("ACL", "SETUSER", "gateway", "-hlen");
    await admin.call("ACL", "SETUSER", "leaderboard", "-unlink", "-@sortedset");
    expect(await redisOf("gateway")).toMatch(
      /^PROBLEM +Redis +does not allow commands that gateway needs in dctr11 \(hlen\)\. .*coroom redis-users/,
    );
    expect(await redisOf("leaderboard")).toMatch(/needs in dctr11 \(unlink, zadd\)/);
  } finally {
    admin.disconnect();
    await engine.stop();
  }
});

test("[DCTR12] a Redis that is a replica is a problem of Redis, with the remedy", async () => {
  const engine = await startTestRedis({ dataDir: join(folder, "redis that is a replica") });
  const admin = new Redis(engine.url);
  try {
    await admin.replicaof("127.0.0.1", 9); // No server listens there.
    const { lines } = await examine({ natsUrl: nats.url, redisUrl: engine.url });
    expect(lines.find((line) => / Redis /.test(line))).toMatch(/^PROBLEM +Redis +Redis is a replica, .*REPLICAOF NO ONE/);
  } finally {
    admin.disconnect();
    await engine.stop();
  }
});

test("[DCTR13] a PostgreSQL that does not answer is a problem of the store, and the line states what to do", async () => {
  const { lines } = await examine({
    natsUrl: nats.url,
    snapshotsStore: "postgres",
    postgresUrl: `postgres://coroom:secret@${NOBODY}/rooms`,
  });
  expect(lines.find((line) => line.includes("PostgreSQL"))).toMatch(
    /^PROBLEM +store +the PostgreSQL server at 127\.0\.0\.1:1\/rooms does not answer .*: start it, or set COROOM_POSTGRES_URL to one that runs/,
  );
});
