/**
 * Tests the two parts of presence, the owner's and several gateways', over an unreliable network. Each message is lost,
 * duplicated or delayed, as the seed decides. Users join, leave, change gateways and show fields; gateways die, owners
 * change, rooms change their mode, and gateways shed clients. At the end messages arrive again, and then each client
 * must know the true state. In a large room this includes only cursors in the viewport.
 */

import {
  decodePresenceFromServer,
  decodePresenceToOwner,
  encodePresenceFromServer,
  encodePresenceToOwner,
  type PresenceFromServer,
  type PresenceToOwner,
} from "../../shared/bus/presence-messages.ts";
import { Prng } from "../../shared/collections/prng.ts";
import type { ClientId, Epoch, GatewayId, Millis, ServerId, UserId } from "../../shared/ids.ts";
import { encodePoint, encodeRectangle } from "../../shared/wire/positions.ts";
import { CURSOR, VIEWPORT } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../../gateway/ports.ts";
import {
  PresenceRelay,
  type PresenceRelayEffect as GatewayEffect,
  type PresenceRelayInput as GatewayInput,
} from "../../gateway/presence/presence-relay.ts";
import {
  OwnerPresence,
  type OwnerPresenceEffect as OwnerEffect,
  type OwnerPresenceInput as OwnerInput,
} from "../../room-server/presence/presence.ts";
import type { DeltaMoments } from "../../room-server/presence/presence-ticks.ts";
import { bytesOf, SimOnlooker, textOf } from "./onlooker.ts";

type Gateway = {
  readonly id: GatewayId;
  readonly presence: PresenceRelay;
  readonly onlookers: Map<ConnectionId, SimOnlooker>;
  alive: boolean;
};
type Person = {
  readonly client: ClientId;
  readonly names: Set<string>;
  readonly shows: Map<string, string>;
  at: { gateway: Gateway; connection: ConnectionId } | undefined;
};

type LossyRun = { readonly people: number; readonly gateways: number; readonly wrong: readonly string[] };

const FAULTY_MS = 6_000;
const HEALING_MS = 20_000;
const STEP_MS = 40;
const FIELDS = ["name", "color", "tool", CURSOR, CURSOR, CURSOR, VIEWPORT];
/** A low limit, so that rooms become large with few users. */
const SMALL_STEPS = { flatParticipantsMax: 2, flatAgainParticipants: 1, modeMsMin: 500 };
const USUAL_STEPS = { flatParticipantsMax: 50, flatAgainParticipants: 40, modeMsMin: 5_000 };
const SHED_LEVEL_MAX = 6;
const TICK_MS = 50;
const MOMENTS: DeltaMoments = {
  next: (now) => (Math.ceil(now / TICK_MS) * TICK_MS) as Millis,
  after: (now, ticks) => ((Math.floor(now / TICK_MS) + ticks) * TICK_MS) as Millis,
};

export class LossyPresence {
  readonly #prng: Prng;
  readonly #loss: number;
  readonly #steps: typeof SMALL_STEPS;
  #now = 1_000 as Millis;
  #queue: { at: number; run: () => void }[] = [];
  #isLossy = true;
  #gateways: Gateway[] = [];
  #owner: OwnerPresence;
  #epoch = 1 as Epoch;
  #server = "server-1" as ServerId;
  /** Servers that have ended. */
  readonly #gone = new Set<ServerId>();
  readonly #people: Person[];
  #named = 0;
  #connections = 0;

  constructor(seed: number) {
    this.#prng = new Prng(seed);
    this.#loss = this.#prng.unit() * 0.6;
    this.#steps = seed % 2 === 0 ? SMALL_STEPS : USUAL_STEPS;
    this.#owner = this.#newOwner();
    for (let count = 2 + this.#prng.below(2); count > 0; count--) this.#gateways.push(this.#newGateway());
    this.#people = Array.from({ length: 3 + this.#prng.below(4) }, (_, index) => ({
      client: `client-${index}-aaaaaaa`.slice(0, 16) as ClientId,
      names: new Set(),
      shows: new Map(),
      at: undefined,
    }));
  }

  run(): LossyRun {
    for (let at = 0; at < FAULTY_MS; at += STEP_MS) {
      this.#runUntil((this.#now + STEP_MS) as Millis);
      this.#act();
    }
    this.#isLossy = false;
    for (const gateway of this.#gateways) {
      this.#feedGateway(gateway, { kind: "attached" });
      this.#feedGateway(gateway, { kind: "shed", level: 0 });
      this.#leaveStale(gateway);
    }
    this.#runUntil((this.#now + HEALING_MS) as Millis);
    const here = this.#people.filter(({ at }) => at !== undefined);
    return {
      people: here.length,
      gateways: this.#gateways.length,
      wrong: this.#gateways.flatMap(({ id, onlookers }) =>
        [...onlookers.values()].flatMap((onlooker) =>
          onlooker.wrongAbout(here, this.#personOf(onlooker.client).shows).map((wrong) => `on ${id} ${wrong}`),
        ),
      ),
    };
  }

  #act(): void {
    const dice = this.#prng.unit();
    const person = this.#pick(this.#people);
    if (dice < 0.15) this.#connect(person);
    else if (dice < 0.22) this.#disconnect(person);
    else if (dice < 0.6) this.#show(person);
    else if (dice < 0.64) for (const gateway of this.#gateways) this.#leaveStale(gateway);
    else if (dice < 0.65) this.#killGateway();
    else if (dice < 0.67) this.#changeOwner();
    else if (dice < 0.69) this.#feedGateway(this.#pick(this.#gateways), { kind: "detached" });
    else if (dice < 0.75) for (const gateway of this.#gateways) this.#feedGateway(gateway, { kind: "attached" });
    else if (dice < 0.78) this.#feedGateway(this.#pick(this.#gateways), { kind: "shed", level: this.#prng.below(SHED_LEVEL_MAX + 1) });
  }

  /** The former gateway may still treat the user as connected. */
  #connect(person: Person): void {
    const gateway = this.#pick(this.#gateways);
    const connection = ++this.#connections as ConnectionId;
    person.at = { gateway, connection };
    gateway.onlookers.set(connection, new SimOnlooker(person.client));
    this.#feedGateway(gateway, {
      kind: "enter",
      connection,
      member: { client: person.client, user: "u" as UserId, name: person.client, canWrite: true, spectator: false },
    });
    const fields = [...person.names].map((name) => ({ name, value: bytesOf(person.shows.get(name) ?? "") }));
    if (fields.length > 0) this.#feedGateway(gateway, { kind: "fields", connection, fields });
  }

  #disconnect(person: Person): void {
    if (person.at === undefined) return;
    const { gateway, connection } = person.at;
    person.at = undefined;
    for (const other of this.#gateways)
      for (const [stale, { client }] of other.onlookers) if (client === person.client && stale !== connection) this.#leave(other, stale);
    this.#leave(gateway, connection);
  }

  #leave(gateway: Gateway, connection: ConnectionId): void {
    gateway.onlookers.delete(connection);
    this.#feedGateway(gateway, { kind: "leave", connection });
  }

  #leaveStale(gateway: Gateway): void {
    for (const [connection, { client }] of gateway.onlookers) {
      const { at } = this.#personOf(client);
      if (at?.gateway !== gateway || at.connection !== connection) this.#leave(gateway, connection);
    }
  }

  #show(person: Person): void {
    if (person.at === undefined) return;
    const name = this.#pick(FIELDS);
    const value = this.#prng.chance(0.2) ? "" : textOf(this.#valueOf(name));
    person.names.add(name);
    if (value === "") person.shows.delete(name);
    else person.shows.set(name, value);
    this.#feedGateway(person.at.gateway, { kind: "fields", connection: person.at.connection, fields: [{ name, value: bytesOf(value) }] });
  }

  #valueOf(name: string): Uint8Array {
    const [x, y, size] = [this.#prng.below(400), this.#prng.below(400), this.#prng.below(200)];
    if (name === CURSOR) return encodePoint({ x, y });
    return name === VIEWPORT ? encodeRectangle({ x, y, width: size, height: size }) : new TextEncoder().encode(String(x));
  }

  #killGateway(): void {
    const gateway = this.#pick(this.#gateways);
    gateway.alive = false;
    for (const person of this.#people) if (person.at?.gateway === gateway) person.at = undefined;
    this.#gateways[this.#gateways.indexOf(gateway)] = this.#newGateway();
    this.#after(2_000, () => this.#feedOwner(this.#owner, { kind: "gateway-lost", gateway: gateway.id }));
    // By now the delayed messages of the gateway have arrived, and it has been silent since.
    this.#after(4_000, () => this.#feedOwner(this.#owner, { kind: "gateway-lost", gateway: gateway.id }));
  }

  /** Either the former server has ended, or it still runs without owning the room. Gateways may learn of the new owner from the log. */
  #changeOwner(): void {
    if (this.#prng.chance(0.5)) this.#gone.add(this.#server);
    this.#epoch = (this.#epoch + 1) as Epoch;
    this.#server = `server-${this.#epoch}` as ServerId;
    this.#owner = this.#newOwner();
    const [server, epoch] = [this.#server, this.#epoch];
    for (const gateway of this.#gateways) this.#send(() => this.#feedGateway(gateway, { kind: "owner", server, epoch }));
  }

  #newOwner(): OwnerPresence {
    const options = {
      participantsMax: 100,
      presenceBytesMax: 100_000,
      presenceGatherMs: 80,
      gatewaySilenceMsMax: 2_000,
      presenceSilenceMsMax: 12_000,
      beaconMs: 1_000,
      beaconsWhenQuiet: 3,
      ...this.#steps,
    };
    const owner = new OwnerPresence(this.#epoch, options, MOMENTS, this.#now);
    this.#after(0, () => this.#tickOwner(owner));
    return owner;
  }

  #newGateway(): Gateway {
    const id = `gateway-${++this.#named}` as GatewayId;
    const options = {
      gateway: id,
      repeatMs: 500,
      keepaliveMs: 5_000,
      spectatorAfterMs: 1_000,
      memberBytesMax: 1_000,
      memberFieldsMax: 10,
      flushMs: 15,
      ownerSilenceMsMax: 2_000,
    };
    const gateway: Gateway = { id, presence: new PresenceRelay(options, 0, this.#now), onlookers: new Map(), alive: true };
    this.#after(10, () => this.#feedGateway(gateway, { kind: "attached" }));
    return gateway;
  }

  #feedOwner(owner: OwnerPresence, input: OwnerInput): void {
    if (owner !== this.#owner) return;
    for (const effect of owner.receivePresenceInput(input, this.#now)) this.#carryOutOwner(effect);
    this.#tickOwner(owner);
  }

  #tickOwner(owner: OwnerPresence): void {
    const { dueAt } = owner;
    if (owner !== this.#owner || dueAt === undefined) return;
    this.#after(Math.max(1, dueAt - this.#now), () => {
      if (owner === this.#owner && (owner.dueAt ?? Number.POSITIVE_INFINITY) <= this.#now) this.#feedOwner(owner, { kind: "tick" });
    });
  }

  #carryOutOwner(effect: OwnerEffect): void {
    if (effect.kind === "broadcast") for (const gateway of effect.to) this.#sendToGateway(gateway, this.#server, effect.message);
    else if (effect.kind === "answer") this.#sendToGateway(effect.gateway, this.#server, effect.answer);
  }

  #sendToGateway(id: GatewayId, server: ServerId, given: PresenceFromServer): void {
    const sent = encodePresenceFromServer(given);
    const gateway = this.#gateways.find((each) => each.id === id);
    if (gateway === undefined) return;
    this.#send(() => {
      const message = decodePresenceFromServer(sent)!;
      if (message.kind === "not-owner") this.#feedGateway(gateway, { kind: "not-owner", server });
      else if (message.kind === "delta" || message.kind === "head") this.#feedGateway(gateway, { kind: "from-owner", server, message });
      else this.#feedGateway(gateway, { kind: "answer", server, answer: message });
    });
  }

  /** NATS reports a message to a server that has ended; a server without the room reports the message itself. */
  #receiveAt(server: ServerId, gateway: Gateway, message: PresenceToOwner): void {
    if (this.#gone.has(server)) this.#send(() => this.#feedGateway(gateway, { kind: "server-gone", server }));
    else if (server === this.#server) this.#feedOwner(this.#owner, message);
    else this.#sendToGateway(gateway.id, server, { kind: "not-owner" });
  }

  #feedGateway(gateway: Gateway, input: GatewayInput): void {
    if (!gateway.alive) return;
    for (const effect of gateway.presence.receiveInput(input, this.#now)) this.#carryOutGateway(gateway, effect);
    const at = dueAtOf(gateway);
    if (at === Number.POSITIVE_INFINITY) return;
    this.#after(Math.max(1, at - this.#now), () => {
      if (dueAtOf(gateway) <= this.#now) this.#feedGateway(gateway, { kind: "tick" });
    });
  }

  #carryOutGateway(gateway: Gateway, effect: GatewayEffect): void {
    switch (effect.kind) {
      case "send-to-server": {
        const sent = encodePresenceToOwner(effect.message);
        this.#send(() => this.#receiveAt(effect.server, gateway, decodePresenceToOwner(sent)!));
        return;
      }
      case "ask-owner": {
        const sent = encodePresenceToOwner(effect.message);
        this.#send(() => this.#feedOwner(this.#owner, decodePresenceToOwner(sent)!));
        return;
      }
      case "publish":
        for (const [connection, onlooker] of gateway.onlookers)
          if (onlooker.topics.has(effect.topic) && connection !== effect.except) onlooker.receiveDelta(effect.delta);
        return;
      case "send":
        return gateway.onlookers.get(effect.to)!.receiveDelta(effect.delta);
      case "listen":
        return void gateway.onlookers.get(effect.connection)?.topics.add(effect.topic);
      case "unlisten":
        return void gateway.onlookers.get(effect.connection)?.topics.delete(effect.topic);
      case "welcome":
        for (const connection of effect.connections) gateway.onlookers.get(connection)?.welcome(effect.snapshot);
        return;
      default:
    }
  }

  #send(deliver: () => void): void {
    if (this.#isLossy && this.#prng.chance(this.#loss)) return;
    const copies = this.#isLossy && this.#prng.chance(0.2) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++)
      this.#after(1 + (this.#isLossy ? this.#prng.below(this.#prng.chance(0.1) ? 1_500 : 60) : 0), deliver);
  }

  #after(delayMs: number, run: () => void): void {
    this.#queue.push({ at: this.#now + delayMs, run });
  }

  #runUntil(end: Millis): void {
    for (;;) {
      const next = this.#queue.reduce<{ at: number; run: () => void } | undefined>(
        (first, entry) => (first === undefined || entry.at < first.at ? entry : first),
        undefined,
      );
      if (next === undefined || next.at > end) break;
      this.#queue.splice(this.#queue.indexOf(next), 1);
      this.#now = Math.max(this.#now, next.at) as Millis;
      next.run();
    }
    this.#now = end;
  }

  #personOf(client: ClientId): Person {
    return this.#people.find((person) => person.client === client)!;
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#prng.below(items.length)]!;
  }
}

function dueAtOf({ presence }: Gateway): number {
  return Math.min(presence.dueAt, presence.fieldsDueAt);
}
