/**
 * Core NATS. It delivers each publisher's messages in order, to all subscribers at the time when a message reaches the
 * server. A message is lost only if its connection breaks, or if its subject has no subscriber; then a publisher with a
 * reply subject receives "no responders". While the nodes of a cluster are cut off from each other, each side receives
 * only its own messages, and no client is informed. `sim-nats-connection.ts` is the client end for the adapters.
 */

import { decodeOwnerReply, decodeFromOwner, decodeToOwner } from "../../shared/bus/envelope.ts";
import { decodePresenceDown, decodePresenceUp } from "../../shared/bus/presence-batches.ts";
import { decodePresenceFromServer, decodePresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { roomOfSubject } from "../../shared/bus/subjects.ts";
import { decodeDelta } from "../../shared/wire/presence.ts";
import type { Trace } from "./trace.ts";

/** A message from JetStream has JSON, and one from NATS itself has a status. The adapters distinguish them by `code`. */
export type Delivered = {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply: string | undefined;
  readonly code: number | undefined;
  readonly headers?: ReadonlyMap<string, string> | undefined;
};
export type Published = {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply?: string | undefined;
  readonly headers?: ReadonlyMap<string, string> | undefined;
};

/** A subscription as the server knows it: its subject, queue group, node and delivery function. */
export type Interest = {
  readonly subject: string;
  readonly queue: string | undefined;
  readonly side: () => number;
  readonly deliver: (message: Delivered) => void;
};

/** A service inside the server that receives messages of a subject prefix, as JetStream does. */
export type Inside = { readonly prefix: string; receive(message: Published): void };

const NO_RESPONDERS = 503;
const JSON_OBJECT = "{".charCodeAt(0);
const NOTHING = new Uint8Array(0);

export class SimNats {
  readonly #trace: Trace;
  readonly #exact = new Map<string, Set<Interest>>();
  /** Subscriptions with wildcards, with the tokens of their subjects. */
  readonly #wildcards = new Map<Interest, readonly string[]>();
  readonly #inside: Inside[] = [];
  #turns = 0;
  #missedEver = 0;

  constructor(trace: Trace) {
    this.#trace = trace;
  }

  /** Count of messages that a subscriber missed because its node was cut off. */
  get missedEver(): number {
    return this.#missedEver;
  }

  addInside(inside: Inside): void {
    this.#inside.push(inside);
  }

  subscribe(interest: Interest): void {
    if (interest.subject.includes("*")) {
      this.#wildcards.set(interest, interest.subject.split("."));
      return;
    }
    const there = this.#exact.get(interest.subject);
    if (there === undefined) this.#exact.set(interest.subject, new Set([interest]));
    else there.add(interest);
  }

  unsubscribe(interest: Interest): void {
    this.#wildcards.delete(interest);
    this.#exact.get(interest.subject)?.delete(interest);
  }

  publish(message: Published, side = 0): void {
    const { subject, data, reply, headers } = message;
    const inside = this.#inside.find(({ prefix }) => subject.startsWith(prefix));
    if (inside !== undefined) {
      if (side === 0) inside.receive(message);
      else this.#missedEver += 1;
      return;
    }
    this.#trace.mixText(subject);
    this.#trace.detail(() => ({ text: describe(message), room: roomOfSubject(subject) }));
    const isDelivered = this.#deliver({ subject, data, reply, code: undefined, headers }, side);
    if (!isDelivered && reply !== undefined) this.#deliver({ subject: reply, data: NOTHING, reply: undefined, code: NO_RESPONDERS }, side);
  }

  /** The members of a queue group receive messages in turn. */
  #deliver(message: Delivered, side: number): boolean {
    const all = [...(this.#exact.get(message.subject) ?? [])];
    if (this.#wildcards.size > 0) {
      const tokens = message.subject.split(".");
      for (const [wildcard, wanted] of this.#wildcards) if (matches(wanted, tokens)) all.push(wildcard);
    }
    const interests = all.filter((interest) => interest.side() === side);
    this.#missedEver += all.length - interests.length;
    let queues: Map<string, Interest[]> | undefined;
    for (const interest of interests) {
      if (interest.queue === undefined) interest.deliver(message);
      else {
        queues ??= new Map();
        queues.set(interest.queue, [...(queues.get(interest.queue) ?? []), interest]);
      }
    }
    if (queues !== undefined) for (const members of queues.values()) members[this.#turns++ % members.length]!.deliver(message);
    return interests.length > 0;
  }
}

/** Describes a message for the trace, without its payloads. */
function describe({ subject, data }: Published): string {
  const message = subject.includes(".presence.")
    ? presenceIn(subject, data)
    : (decodeToOwner(data) ??
      decodePresenceToOwner(data) ??
      decodeFromOwner(data) ??
      decodeOwnerReply(data) ??
      (data[0] === JSON_OBJECT ? new TextDecoder().decode(data) : undefined));
  return `  ${subject} ${JSON.stringify(message, (key, value: unknown) => (value instanceof Uint8Array || key === "payload" ? undefined : value))}`;
}

function presenceIn(subject: string, data: Uint8Array): unknown {
  if (subject.includes(".presence.server."))
    return decodePresenceUp(data)?.entries.map(({ room, message }) => ({ room, ...decodePresenceToOwner(message) }));
  return decodePresenceDown(data)?.entries.map(({ room, message: bytes }) => {
    const message = decodePresenceFromServer(bytes);
    return { room, ...message, ...(message !== undefined && "delta" in message ? { delta: decodeDelta(message.delta) } : {}) };
  });
}

function matches(wanted: readonly string[], given: readonly string[]): boolean {
  return wanted.length === given.length && wanted.every((token, index) => token === "*" || token === given[index]);
}
