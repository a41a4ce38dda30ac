/** Edits and presence use separate NATS connections: edits arrive while presence is held completely. */

import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

import { afterAll, beforeAll, expect, test } from "vitest";

import { RoomConnection } from "../../client/index.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

const PEOPLE = 20;
const MOVE_MS = 20;
const EDITS = 50;
/** Bytes that the flood adds to each move. */
const PADDING = "x".repeat(4_000);

/** A proxy between the processes and nats-server. It holds the connections that processes name as presence connections. */
class PresenceValve {
  readonly #listener: Server;
  readonly #presence = new Set<Socket>();
  readonly #sockets = new Set<Socket>();
  #isHeld = false;

  private constructor(natsUrl: string) {
    const { port, hostname } = new URL(natsUrl);
    this.#listener = createServer((client) => this.#join(client, connect(Number(port), hostname)));
  }

  static async start(natsUrl: string): Promise<PresenceValve> {
    const valve = new PresenceValve(natsUrl);
    await new Promise<void>((resolve) => valve.#listener.listen(0, "127.0.0.1", resolve));
    return valve;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  get connections(): number {
    return this.#presence.size / 2;
  }

  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#presence) socket.pause();
  }

  release(): void {
    this.#isHeld = false;
    for (const socket of this.#presence) socket.resume();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#listener.close(resolve));
  }

  #join(client: Socket, server: Socket): void {
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on("data", (bytes) => void to.write(bytes));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        this.#presence.delete(from);
      });
    }
    let greeting = "";
    const findName = (bytes: Buffer): void => {
      greeting += bytes.toString("latin1");
      if (!greeting.includes("\r\n")) return;
      client.off("data", findName);
      if (!/"name":"[^"]* presence"/.test(greeting)) return;
      for (const socket of [client, server]) this.#presence.add(socket);
      if (this.#isHeld) this.hold();
    };
    client.on("data", findName);
  }
}

let cluster: SystemCluster;
let valve: PresenceValve;

beforeAll(async () => {
  const natsUrlOf = async (_: unknown, [server]: readonly string[]): Promise<string> => (valve ??= await PresenceValve.start(server!)).url;
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1, natsUrlOf });
});
afterAll(async () => {
  await cluster.stop();
  await valve.stop();
});

test("[PFL1] edits are saved and delivered while a flood of presence does not get through", async () => {
  const join = (user: string): RoomConnection =>
    new RoomConnection({ url: cluster.gateways[0]!.url, token: () => cluster.token("*", user), room: "notes" });
  const people = Array.from({ length: PEOPLE }, (_, index) => join(`user-${index}`));
  const [ann, ben] = people as [RoomConnection, RoomConnection];
  let received = 0;
  ben.on("edits", (edits) => void (received += edits.length));
  await eventually("all to be shown to all", () => people.every(({ synced, participants }) => synced && participants.size === PEOPLE));
  expect(valve.connections).toBe(2);

  let moves = 0;
  const move = (): void => {
    moves += 1;
    for (const person of people) person.presence.set({ cursor: { x: moves, y: 0 }, padding: PADDING });
  };
  const annAsBenSees = (): number | undefined => ben.participants.get(ann.client!)?.cursor?.x;
  const flood = setInterval(move, MOVE_MS);
  await eventually("moves to be shown", () => annAsBenSees() !== undefined);
  valve.hold();
  await eventually("moves to be held back", () => annAsBenSees()! < moves - 20);
  const before = annAsBenSees();
  for (let edit = 1; edit <= EDITS; edit++) {
    ann.send(new TextEncoder().encode(`edit ${edit}`));
    await eventually(`edit ${edit} to be saved and delivered`, () => ann.saved && received === edit);
  }
  expect(annAsBenSees()).toBe(before); // Presence was held all the time.

  valve.release();
  clearInterval(flood);
  await eventually("everybody and the last move to be shown", () => ben.participants.size === PEOPLE && annAsBenSees() === moves);
  for (const person of people) person.destroy();
});
