/**
 * A late room server throttles its most expensive room step by step. Each step is visible: less presence, then later
 * acks, then no new members on any gateway. No edit is refused. A server that is on time again undoes all steps.
 */

import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import { type Epoch, type Seq, START } from "../../shared/ids.ts";
import type { Running } from "../../shared/process/lifecycle.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR } from "../../shared/wire/presence.ts";
import { makeToken } from "../../cli/token.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { startGateway } from "../../gateway/main.ts";
import { WireClient } from "../../gateway/testing/wire-client.ts";
import { roomServerSettings } from "../../room-server/config.ts";
import { startRoomServer } from "../../room-server/main.ts";
import { type RealNats, startRealNats, until } from "../contract/real-nats.ts";
import { Onlooker } from "./onlooker.ts";
import { operationsEvents } from "./operations-events.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "hot";
const environment = "budget";
const STEPS_MS_MAX = 150_000;
/** The process blocks for most of each period, so that everything in it is late. */
const [HEAT_EVERY_MS, HEAT_MS] = [500, 430];
/** About 300 KiB per second: a room that uses little of a core is not throttled. */
const [EDIT_EVERY_MS, EDIT_TEXT] = [50, "x".repeat(15_000)];
const LATE_MS = 300;
const REFUSED = { type: "join-refused", reason: "unavailable", message: expect.stringContaining("more load than its server can carry") };

let nats: RealNats;
const running: Running[] = [];
const gateways: string[] = [];
const registry = new Registry();
const gatewayRegistries: Registry[] = [];

beforeAll(async () => {
  nats = await startRealNats();
  const flags = {
    environment,
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    roomSecret: SECRET,
    drainMsMax: "0",
    shareDelayMsMin: String(LATE_MS),
    shareCalmMs: "1000",
    shedDelayMsMin: "60000",
    shedNatsLagMsMin: "60000",
    gatewaySilenceMsMax: "30000",
    editsPerSecond: "100",
    editBurst: "1000",
  };
  const config = {
    ...readSettings({ ...sharedSettings, ...gatewaySettings, ...roomServerSettings }, { flags, env: {} }),
    serverSilenceMsMax: 10_000,
  };
  running.push(await startRoomServer(config, { log: SILENT_LOG, registry }));
  for (let count = 0; count < 2; count++) {
    const gatewayRegistry = new Registry();
    const gateway = await startGateway(config, { log: SILENT_LOG, registry: gatewayRegistry });
    running.push(gateway);
    gatewayRegistries.push(gatewayRegistry);
    gateways.push(`ws://127.0.0.1:${gateway.port}`);
  }
});
afterAll(async () => {
  for (const part of running.reverse()) await part.stop();
  await nats.stop();
});

function tokenOf(name: string): Promise<string> {
  return makeToken({ room: [ROOM], user: name, name, rights: ["read", "write"], tenant: "default", ttl: 3600 }, SECRET);
}

/** Whether a client may join over that gateway: a new client, or, with a position, a former member. */
async function mayEnter(gateway: string, name: string, position = START): Promise<boolean> {
  const client = await WireClient.greet(`${gateway}/v1/connect`, await tokenOf(name));
  void client.join(ROOM, `${name}-client-key`, position).catch(() => {}); // A refusal is read below.
  await client.until(() => client.received.some(({ type }) => type === "joined" || type === "join-refused"), "an answer");
  const answer = client.received.find(({ type }) => type === "joined" || type === "join-refused")!;
  if (answer.type === "join-refused") expect(answer).toMatchObject(REFUSED);
  client.close();
  return answer.type === "joined";
}

test(
  "[BUD1] a room over its budget loses presence, then acks are delayed, then new members are refused; no edit is refused, and all steps are undone",
  { timeout: 600_000 },
  async () => {
    const ann = await Onlooker.enter({ urls: [gateways[0]!], token: await tokenOf("ann"), room: ROOM, clientKey: "ann-client-key" });
    const shed = (): number[] => ann.connection.received.flatMap((frame) => (frame.type === "mode" ? [frame.shed] : []));
    let [edits, x] = [0, 0];
    const begun = performance.now();
    const acting = setInterval(() => {
      ann.show({ name: CURSOR, value: encodePoint({ x: (x += 1), y: 0 }) });
      // By time, because a blocked process runs few ticks.
      for (const due = Math.floor((performance.now() - begun) / EDIT_EVERY_MS); edits < due;) ann.edit((edits += 1), EDIT_TEXT);
    }, 50);
    const heat = setInterval(() => {
      for (const until = performance.now() + HEAT_MS; performance.now() < until;);
    }, HEAT_EVERY_MS);

    try {
      await until(() => shed().at(-1) === 8, "the last step", STEPS_MS_MAX);
      expect(await registry.metrics()).toMatch(/^coroom_room_server_rooms_held_back\{level="5"\} 1$/m);
      // A gateway that admitted a stranger too early follows the room's presence for a moment. That presence decides
      // meanwhile, and ignores positions.
      let attempts = 0;
      await until(
        async () => {
          attempts += 1;
          if (await mayEnter(gateways[1]!, `stranger-${attempts}`)) return false;
          return mayEnter(gateways[1]!, "somebody-back", { epoch: 1 as Epoch, seq: 1 as Seq });
        },
        "a gateway without members to refuse strangers and to admit a former member",
        STEPS_MS_MAX,
      );
      expect(await mayEnter(gateways[0]!, "another")).toBe(false);
      const again = await Onlooker.enter({ urls: [gateways[0]!], token: await tokenOf("ann"), room: ROOM, clientKey: "ann-client-key" });
      again.leave(); // A member may join again.
      expect(await gatewayRegistries[1]!.metrics()).toMatch(/^coroom_gateway_limits_reached_total\{limit="room-budget"\} [1-9]/m);
    } finally {
      clearInterval(heat);
    }
    await until(
      () => {
        if (!ann.isConnected) throw new Error(`ann's connection was closed: ${JSON.stringify(ann.connection.closed)}`);
        return shed().at(-1) === 0;
      },
      "everything to be given back",
      STEPS_MS_MAX,
    );
    clearInterval(acting);
    await until(() => mayEnter(gateways[1]!, "latecomer"), "a new member to be admitted", STEPS_MS_MAX);

    const down = shed().slice(0, shed().indexOf(8) + 1);
    expect(down, "two steps may be announced as one").toEqual([...down].sort((a, b) => a - b));
    await until(
      () => ann.connection.received.flatMap((frame) => (frame.type === "ack" ? [frame.counter + frame.count - 1] : [])).at(-1) === edits,
      "every edit to be acknowledged",
    );
    expect(ann.connection.received.filter(({ type }) => type === "nack")).toEqual([]);
    const events = await operationsEvents(nats.url, environment, "room_budget", 10);
    expect(events.map(({ from, to }) => [from, to])).toEqual(
      expect.arrayContaining([
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 4],
        [4, 5],
        [5, 4],
        [4, 3],
        [3, 2],
        [2, 1],
        [1, 0],
      ]),
    );
    ann.leave();
  },
);
