/**
 * Two rooms on one connection, one of them with two members, are left, wanted again and replaced at random, also from listeners, while connections
 * break and move. Every client that is wanted at the end is in its room.
 */

import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import type { RoomConnectionOptions } from "../room/room-events.ts";
import type { ModelServer } from "../testing/model-server.ts";
import { App, bytes, MINUTE, serverOn } from "../testing/test-page.ts";
import { ConnectionHost } from "./connection-host.ts";

const SEEDS = Array.from({ length: 40 }, (_, index) => 1000 + index);
const ROOMS = ["notes", "tasks", "notes"];
const EVENTS = ["edit", "status", "synced", "saved", "participants", "seq"] as const;
const STEPS = 40;
const ACTIONS_IN_LISTENERS_MAX = 12;
const LAST = 77;

/** A place in a room, and the client that occupies it. */
class Place {
  app: App;
  isWanted = true;
  readonly #take: () => App;

  constructor(take: () => App) {
    this.#take = take;
    this.app = take();
  }

  leave(): void {
    this.isWanted = false;
    this.app.host.disconnect();
  }

  enter(): void {
    this.isWanted = true;
    this.app.host.connect();
  }

  handOver(): void {
    this.isWanted = true;
    this.app.host.destroy();
    this.app = this.#take();
  }
}

class Page {
  readonly places: readonly Place[];
  readonly #prng: Prng;
  #actionsLeft = ACTIONS_IN_LISTENERS_MAX;
  #isActing = false;
  #taken = 0;

  constructor(server: ModelServer, prng: Prng) {
    const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
    this.#prng = prng;
    this.places = ROOMS.map(
      (room) =>
        new Place(() =>
          this.#listening(
            new App(server, 10 + this.#taken++, {
              connection,
              url: undefined,
              token: undefined,
              room,
            } as unknown as Partial<RoomConnectionOptions>),
          ),
        ),
    );
  }

  act(): void {
    this.#isActing = true;
    this.#actOn(this.places[this.#prng.below(ROOMS.length)]!);
    this.#isActing = false;
  }

  rest(): void {
    this.#actionsLeft = 0;
  }

  #listening(app: App): App {
    const { host } = app;
    for (const event of EVENTS) {
      host.on(event, () => {
        if (this.#isActing || this.#actionsLeft === 0 || !this.#prng.chance(0.15)) return;
        this.#actionsLeft -= 1;
        this.act();
      });
    }
    return app;
  }

  #actOn(place: Place): void {
    const actions = [
      () => place.leave(),
      () => place.enter(),
      () => {
        place.leave();
        place.enter();
      },
      () => place.handOver(),
      () => {
        place.leave();
        place.handOver();
      },
      () => place.app.host.send(bytes(this.#prng.below(LAST))),
    ];
    actions[this.#prng.below(actions.length)]!();
  }
}

async function run(seed: number): Promise<void> {
  const prng = new Prng(seed);
  const server = serverOn();
  const page = new Page(server, prng);
  const others = ROOMS.map((room, index) => new App(server, index + 2, { room }));
  const events = [
    () => page.act(),
    () => page.act(),
    () => others[prng.below(others.length)]!.host.send(bytes(1)),
    () => prng.chance(0.2) && server.cut(),
    () => prng.chance(0.2) && server.send({ type: "going-away", reconnectAfterMs: 5 }),
  ];
  for (let step = 0; step < STEPS; step++) {
    await server.clock.advance(prng.unit() * 20);
    events[prng.below(events.length)]!();
  }
  page.rest();
  await server.clock.advance(MINUTE);
  for (const other of others) other.host.send(bytes(LAST));
  await server.clock.advance(1_000);
  expect(
    page.places.map(({ app: { host, edits } }) => ({ status: host.status, hasEdit: edits.some((edit) => edit.endsWith(`:${LAST}`)) })),
  ).toEqual(page.places.map(({ isWanted }) => ({ status: isWanted ? "connected" : "disconnected", hasEdit: isWanted })));
  expect(
    page.places.filter(({ app, isWanted }) => isWanted && !app.host.saved),
    "all is sent",
  ).toEqual([]);
}

test.each(SEEDS)("[COH13] every wanted client is in its room at the end, after any sequence of events (seed %i)", run);
