/**
 * A room that grows from two people to two hundred and shrinks to thirty, over two gateways, while two people edit and
 * many move. After each change, everybody must have the correct list of participants and see the presence in their
 * view.
 */

import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Running } from "../../shared/process/lifecycle.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { decodePoint, encodePoint, encodeRectangle, type Point, type Rectangle } from "../../shared/wire/positions.ts";
import { CURSOR, VIEWPORT } from "../../shared/wire/presence.ts";
import { opsRoomSettings } from "../../cli/command-settings.ts";
import { describeRoom } from "../../cli/ops.ts";
import { makeToken } from "../../cli/token.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { startGateway } from "../../gateway/main.ts";
import { roomServerSettings } from "../../room-server/config.ts";
import { startRoomServer } from "../../room-server/main.ts";
import { type RealNats, startRealNats, until } from "../contract/real-nats.ts";
import { Onlooker } from "./onlooker.ts";
import { operationsEvents } from "./operations-events.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "canvas";
const environment = "growing";
/** Long limits: on a slow machine no presence is shed, and no process or silent client is treated as lost. */
const UNDISTURBED = {
  shedDelayMsMin: "60000",
  shedNatsLagMsMin: "60000",
  shareDelayMsMin: "60000",
  gatewaySilenceMsMax: "30000",
  silenceMsMax: "600000",
};
const MOVERS = 25;
/** Number of moves that a participant near the mover must see. */
const MOVES_SEEN = 10;
const EDIT_EVERY_MS = 200;
const MOVE_EVERY_MS = 100;
const TOGETHER = 20;

let nats: RealNats;
const running: Running[] = [];
const gateways: string[] = [];

beforeAll(async () => {
  nats = await startRealNats();
  const flags = {
    environment,
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    roomSecret: SECRET,
    drainMsMax: "0",
    modeMsMin: "200",
    ...UNDISTURBED,
  };
  const config = {
    ...readSettings({ ...sharedSettings, ...gatewaySettings, ...roomServerSettings }, { flags, env: {} }),
    serverSilenceMsMax: 10_000,
  };
  running.push(await startRoomServer(config, { log: SILENT_LOG, registry: new Registry() }));
  for (let count = 0; count < 2; count++) {
    const gateway = await startGateway(config, { log: SILENT_LOG, registry: new Registry() });
    running.push(gateway);
    gateways.push(`ws://127.0.0.1:${gateway.port}`);
  }
});
afterAll(async () => {
  for (const part of running.reverse()) await part.stop();
  await nats.stop();
});

/** A participant on the canvas, with a pointer and a view. */
class Dweller {
  readonly onlooker: Onlooker;
  readonly name: string;
  at: Point;
  readonly view: Rectangle;
  edits = 0;

  private constructor(onlooker: Onlooker, name: string, index: number) {
    this.onlooker = onlooker;
    this.name = name;
    this.at = { x: (index % 20) * 300, y: Math.floor(index / 20) * 300 };
    this.view = { x: this.at.x - 400, y: this.at.y - 300, width: 800, height: 600 };
    onlooker.show({ name: CURSOR, value: encodePoint(this.at) }, { name: VIEWPORT, value: encodeRectangle(this.view) });
  }

  static async enter(index: number): Promise<Dweller> {
    const name = `p${String(index).padStart(3, "0")}`;
    const token = await makeToken({ room: [ROOM], user: name, name, rights: ["read", "write"], tenant: "default", ttl: 3600 }, SECRET);
    return new Dweller(
      await Onlooker.enter({ urls: [gateways[index % gateways.length]!], token, room: ROOM, clientKey: `${name}-client-key` }),
      name,
      index,
    );
  }

  move(): void {
    this.at = { x: this.at.x + 7, y: this.at.y - 3 };
    this.onlooker.show({ name: CURSOR, value: encodePoint(this.at) });
  }

  edit(): void {
    this.edits += 1;
    this.onlooker.edit(this.edits, `${this.name} ${this.edits}`);
  }

  sees(point: Point): boolean {
    const { x, y, width, height } = this.view;
    return point.x >= x && point.x <= x + width && point.y >= y && point.y <= y + height;
  }

  /** The first error in this participant's view of the others, if any. */
  mistake(present: ReadonlyMap<string, Dweller>): string | undefined {
    if (
      this.onlooker.names().join() !==
      [...present.values()]
        .map(({ name }) => name)
        .sort()
        .join()
    )
      return `${this.name} lists ${this.onlooker.names().length} of ${present.size}`;
    const shown = this.onlooker.shown(CURSOR);
    for (const [client, { name, at }] of present) {
      const value = shown.get(client as never);
      const seen = value === undefined ? undefined : decodePoint(value);
      const isInView = this.sees(at) || (seen !== undefined && this.sees(seen));
      if (client !== this.onlooker.client && isInView && (seen?.x !== at.x || seen.y !== at.y))
        return `${this.name} sees ${name} at ${seen?.x},${seen?.y} and not at ${at.x},${at.y}`;
    }
    return undefined;
  }
}

test("[GROW1] a room of 2, 60, 200 and 30 people changes its mode once each way, loses no edit and lists everybody correctly", async () => {
  const present = new Map<string, Dweller>();
  let isStill = false;
  const all = (): Dweller[] => [...present.values()];
  const moving = setInterval(() => {
    if (!isStill) for (const dweller of all().slice(0, MOVERS)) dweller.move();
  }, MOVE_EVERY_MS);
  const editing = setInterval(() => {
    for (const dweller of all().slice(0, 2)) dweller.edit();
  }, EDIT_EVERY_MS);

  const grow = async (size: number): Promise<void> => {
    while (present.size < size) {
      const first = present.size;
      const entered = await Promise.all(
        Array.from({ length: Math.min(TOGETHER, size - first) }, (_, index) => Dweller.enter(first + index)),
      );
      for (const dweller of entered) present.set(dweller.onlooker.client, dweller);
    }
  };
  const shrink = (size: number): void => {
    for (const [client, dweller] of [...present].slice(size)) {
      present.delete(client);
      dweller.onlooker.leave();
    }
  };
  const settle = async (): Promise<void> => {
    isStill = true;
    let mistake: string | undefined;
    const isRight = (): boolean => all().every((dweller) => (mistake = dweller.mistake(present)) === undefined);
    await until(isRight, `everybody of ${present.size} to know the truth`).catch((cause: unknown) => {
      throw new Error(mistake, { cause });
    });
    isStill = false;
  };

  try {
    await grow(2);
    await settle();
    await grow(60);
    await settle();
    await grow(200);
    await settle();
    await expectMovesByView(all());
    shrink(30);
    await settle();
    await until(() => all().every(({ onlooker }) => onlooker.modes().length === 3), "everybody to receive both mode changes");
    await settle();
  } finally {
    clearInterval(moving);
    clearInterval(editing);
  }

  const [ann, bob, ...others] = all();
  for (const { onlooker } of [ann!, bob!]) expect(onlooker.modes()).toEqual(["flat", "hierarchical", "flat"]);
  const reader = others[0]!.onlooker.connection;
  await until(() => reader.committed().size === ann!.edits + bob!.edits, "every edit");
  const seqs = [...reader.committed().keys()].sort((a, b) => a - b);
  expect(seqs.at(-1)).toBe(seqs.length + seqs[0]! - 1);
  for (const { name, edits } of [ann!, bob!]) {
    const payloads = [...reader.committed()]
      .sort(([a], [b]) => a - b)
      .map(([, payload]) => payload)
      .filter((payload) => payload.startsWith(name));
    expect(payloads).toEqual(Array.from({ length: edits }, (_, index) => `${name} ${index + 1}`));
  }
  expect((await operationsEvents(nats.url, environment, "mode_transition", 2)).map(({ from, to, cause }) => [from, to, cause])).toEqual([
    ["flat", "hierarchical", expect.stringMatching(/^(grew|new-owner)$/)], // All 60 may be in the owner's first message about the room.
    ["hierarchical", "flat", "shrank"],
  ]);
  const lines: string[] = [];
  await describeRoom(readSettings(opsRoomSettings, { flags: { environment, natsUrl: nats.url, room: ROOM }, env: {} }), (line) =>
    lines.push(line),
  );
  expect(lines).toEqual(expect.arrayContaining(["mode flat", "participants 30", expect.stringMatching(/^epoch [1-9]\d*$/)]));
  expect(lines.filter((line) => line.startsWith("gateway ")).map((line) => line.split(" ")[3])).toEqual(["15", "15"]);
  for (const { onlooker } of all()) onlooker.leave();
});

/** Checks that a participant who looks at the mover receives its moves, and one who looks elsewhere does not. */
async function expectMovesByView(dwellers: readonly Dweller[]): Promise<void> {
  const [mover, near, far] = [dwellers[0]!, dwellers[1]!, dwellers.at(-1)!];
  const knows = ({ onlooker }: Dweller): Uint8Array | undefined => onlooker.shown(CURSOR).get(mover.onlooker.client);
  const [nearKnew, farKnew] = [new Set<string>(), new Set<string>()];
  await until(
    () => (nearKnew.add(String(knows(near))), farKnew.add(String(knows(far))), nearKnew.size > MOVES_SEEN),
    "somebody near to see some moves",
  );
  expect(farKnew.size, "occasional snapshots only").toBeLessThan(MOVES_SEEN / 2);
}
