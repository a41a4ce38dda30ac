/** Two gateways, each of which can lose NATS. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { SanctionsBus } from "../ports.ts";
import { BackboneStatus } from "../rooms/backbone-status.ts";
import { Sanctions } from "./sanctions.ts";
import { SanctionsHost } from "./sanctions-host.ts";

const acme = "acme" as TenantId;
const eve = "eve" as UserId;
const silent = (): void => {};
const log = { debug: silent, info: silent, warn: silent, error: silent, fatal: silent };
const ban = (user = eve): Sanction => ({
  target: { kind: "user", tenant: acme, user },
  level: "banned",
  until: 60_000 as UnixMillis,
  madeAt: 500 as UnixMillis,
  lifted: false,
  reason: "",
});

/** Connects all of its gateways. Messages to and from a gateway that has lost NATS are lost. */
class Bus {
  readonly clock = new FakeClock(1_000);
  readonly gateways: Gateway[] = [];
}

class Gateway {
  readonly backbone = new BackboneStatus();
  readonly published: Sanction[] = [];
  readonly host: SanctionsHost;
  readonly #bus: Bus;
  #deliver: (sanction: Sanction) => void = silent;
  #answer: () => readonly Sanction[] = () => [];

  constructor(bus: Bus) {
    this.#bus = bus;
    bus.gateways.push(this);
    const sanctionsBus: SanctionsBus = {
      publishSanction: (sanction) => {
        this.published.push(sanction);
        for (const other of this.#others) other.#deliver(sanction);
      },
      onSanction: (receive) => void (this.#deliver = receive),
      requestSanctions: async () => this.#others.flatMap((other) => other.#answer()),
      onRequest: (answer) => void (this.#answer = answer),
    };
    const deps = { clock: bus.clock, log, metrics: gatewayMetrics(new Registry()), backbone: this.backbone };
    this.host = new SanctionsHost(new Sanctions({ sanctionsMax: 10 }), sanctionsBus, undefined, deps);
    this.host.start(silent);
  }

  lose(): void {
    this.backbone.receiveLost(this.#bus.clock.now());
  }

  get #others(): Gateway[] {
    return this.backbone.isUp ? this.#bus.gateways.filter((other) => other !== this && other.backbone.isUp) : [];
  }
}

test.each([
  ["for several seconds", 3_000],
  ["for less than one check", 20],
])(
  "[SAN12] a gateway that loses NATS %s receives afterwards what was imposed meanwhile, and publishes what it imposed",
  async (_, gapMs) => {
    const bus = new Bus();
    const [one, other] = [new Gateway(bus), new Gateway(bus)];
    await bus.clock.advance(3_100);
    one.lose();
    const bob = "bob" as UserId;
    one.host.impose(ban(bob));
    other.host.impose(ban());
    await bus.clock.advance(gapMs);
    one.backbone.receiveFound();
    await bus.clock.advance(2_000);
    expect([one, other].map(({ host }) => [host.banOf(acme, eve)?.until, host.banOf(acme, bob)?.until])).toEqual([
      [60_000, 60_000],
      [60_000, 60_000],
    ]);
  },
);

test("[SAN13] after a loss a gateway publishes only what it imposed itself and others lack, so that gateways do not repeat what all know", async () => {
  const bus = new Bus();
  const [one, other] = [new Gateway(bus), new Gateway(bus)];
  await bus.clock.advance(3_000);
  other.host.impose(ban());
  one.host.impose(ban("bob" as UserId));
  for (const gateway of bus.gateways) gateway.lose(); // All of NATS is lost, so that the first gateway to return gets no answer.
  one.host.impose(ban("cy" as UserId));
  await bus.clock.advance(2_000);
  one.backbone.receiveFound();
  await bus.clock.advance(2_000);
  other.backbone.receiveFound();
  await bus.clock.advance(2_000);
  expect(other.host.banOf(acme, "cy" as UserId)).toBeDefined();
  expect(one.published.some(({ target }) => target.kind === "user" && target.user === eve)).toBe(false);
  expect(other.published.every(({ target }) => target.kind === "user" && target.user === eve)).toBe(true);
});
