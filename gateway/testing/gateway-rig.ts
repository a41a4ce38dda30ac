/** Gateways on a real nats-server, and clients, for system tests. The rig stops everything that a test has started. */

import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

import { ensureOperationsStream } from "../../shared/io/nats-operations.ts";
import { type Subjects, subjectsOf } from "../../shared/bus/subjects.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { type RoomId, roomKey, type TenantId } from "../../shared/ids.ts";
import type { Running } from "../../shared/process/lifecycle.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { gatewaySettings } from "../config.ts";
import { startGateway } from "../main.ts";
import { FakeLog, FakeOwner } from "./fake-owner.ts";
import { WireClient } from "./wire-client.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
/** Longer than a pause of a process that plays all roles on a busy machine. */
const SERVER_SILENCE_MS_MAX = 3_000;
/** The operators' secret. */
export const OPERATOR = "what operators show";
export const ROOM = "notes";
export const TENANT = "acme";

/** Settings as flags. */
type Flags = Readonly<Record<string, string>>;

/** Call once in a file: registers vitest hooks. */
export function gatewayRig(name: string, settings: Flags = {}): GatewayRig {
  const rig = new GatewayRig(name, settings);
  beforeAll(() => rig.open());
  afterAll(() => rig.close());
  beforeEach(() => rig.begin());
  afterEach(() => rig.end());
  return rig;
}

class GatewayRig {
  readonly #name: string;
  readonly #settings: Flags;
  #runs = 0;
  #nats: RealNats | undefined;
  #connection: NatsConnection | undefined;
  #gateways = new Map<string, Running>();
  #clients: WireClient[] = [];
  #owners: FakeOwner[] = [];

  constructor(name: string, settings: Flags) {
    this.#name = name;
    this.#settings = settings;
  }

  async open(): Promise<void> {
    this.#nats = await startRealNats();
  }

  async close(): Promise<void> {
    await this.#nats?.stop();
  }

  async begin(): Promise<void> {
    this.#runs += 1;
    this.#connection = await connect({ servers: this.#nats!.url });
    [this.#gateways, this.#clients, this.#owners] = [new Map(), [], []];
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    for (const owner of this.#owners) owner.stop();
    await Promise.all([...this.#gateways.values()].map((gateway) => gateway.stop()));
    await this.#connection?.close();
  }

  /** Each test has its own. */
  get environment(): string {
    return `${this.#name}${this.#runs}`;
  }

  get subjects(): Subjects {
    return subjectsOf(this.environment);
  }

  get connection(): NatsConnection {
    return this.#connection!;
  }

  /** Returns the gateway's address. */
  async start(settings: Flags = {}, redisUrl = ""): Promise<string> {
    const flags = {
      environment: this.environment,
      natsUrl: this.#nats!.url,
      port: "0",
      jwtSecret: SECRET,
      operatorSecret: OPERATOR,
      drainMsMax: "0",
      clientAddressHeader: "x-forwarded-for",
      ...this.#settings,
      ...settings,
    };
    const config = {
      ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }),
      serverSilenceMsMax: SERVER_SILENCE_MS_MAX,
      redisUrl,
    };
    await ensureOperationsStream(this.connection, this.subjects, config); // As room servers and placement do.
    const gateway = await startGateway(config, { log: SILENT_LOG, registry: new Registry() });
    const address = `127.0.0.1:${gateway.port}`;
    this.#gateways.set(address, gateway);
    return address;
  }

  async stop(address: string): Promise<void> {
    const gateway = this.#gateways.get(address);
    this.#gateways.delete(address);
    await gateway?.stop();
  }

  /** Owner of ROOM in TENANT. */
  startOwner(log = new FakeLog()): FakeOwner {
    const owner = new FakeOwner(this.connection, this.subjects, log, roomKey(TENANT as TenantId, ROOM as RoomId), "rs-1");
    this.#owners.push(owner);
    return owner;
  }

  /** A socket that has sent nothing yet. `from`: its client address. */
  async connect(address: string, from = ""): Promise<WireClient> {
    const client = await WireClient.open(`ws://${address}/v1/connect`, from === "" ? {} : { "x-forwarded-for": from });
    this.#clients.push(client);
    return client;
  }

  async greet(
    address: string,
    user: string,
    { from = "", ...claims }: { from?: string; tenant?: string; rights?: string[]; rooms?: string[] } = {},
  ): Promise<WireClient> {
    const client = await this.connect(address, from);
    client.send({ type: "hello", version: 1, token: await tokenOf(user, claims), agent: "test" });
    return client;
  }
}

export function tokenOf(user: string, claims: object = {}, expires = "1h"): Promise<string> {
  return new SignJWT({ tenant: TENANT, rooms: ["*"], rights: ["read", "write"], ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setExpirationTime(expires)
    .sign(new TextEncoder().encode(SECRET));
}

export async function metric(address: string, sample: string): Promise<number> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  return Number(
    text
      .split("\n")
      .find((each) => each.startsWith(`${sample} `))
      ?.split(" ")[1] ?? 0,
  );
}

/** "welcome", or the close code. */
export async function outcomeOf(client: WireClient): Promise<"welcome" | number> {
  await client.until(() => client.closed !== undefined || client.received.some(({ type }) => type === "welcome"), "an answer");
  return client.closed?.code ?? "welcome";
}
