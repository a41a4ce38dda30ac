/**
 * Who listens to what. A topic costs uWebSockets.js a good hundred bytes outside V8's heap for each that listens, and as
 * much again for the first of a connection: most of what a quiet connection took there. In most rooms nothing is said for
 * minutes. So a topic is made there while frames come often, or many listen; else each listener is sent its own.
 */

import type { TemplatedApp, WebSocket } from "uws-node20";

import type { ConnectionId } from "../ports.ts";

type Socket = Pick<WebSocket<unknown>, "subscribe" | "unsubscribe" | "publish">;

export type ListenersPorts = {
  readonly app: Pick<TemplatedApp, "publish">;
  readonly open: ReadonlyMap<ConnectionId, Socket>;
  readonly send: (to: ConnectionId, frame: Uint8Array) => void;
  /** The frame goes out to a topic of uWebSockets.js: whatever was sent before must not come after it. */
  readonly beforePublish: (topic: string, frame: Uint8Array) => void;
};

/** `frames`: since the last window began. */
type Topic = { readonly listeners: Set<ConnectionId>; frames: number };

const WINDOW_MS = 10_000;
/** More in one window, and there is a topic; with none in one there no longer is. */
export const FRAMES_SENT_MAX = 16;
export const LISTENERS_SENT_MAX = 16;

export class Listeners {
  readonly #ports: ListenersPorts;
  readonly #stepsPerWindow: number;
  #steps = 0;
  readonly #topics = new Map<string, Topic>();
  /** Of what is no topic. */
  readonly #few = new Map<string, readonly ConnectionId[]>();
  /** What was sent to those, since the last window began. */
  readonly #sent = new Map<string, number>();

  constructor(ports: ListenersPorts, { stepMs }: { stepMs: number }) {
    this.#ports = ports;
    this.#stepsPerWindow = Math.ceil(WINDOW_MS / stepMs);
  }

  listen(connection: ConnectionId, name: string): void {
    const socket = this.#ports.open.get(connection);
    if (socket === undefined) return; // Gone meanwhile.
    const topic = this.#topics.get(name);
    if (topic !== undefined) {
      topic.listeners.add(connection);
      socket.subscribe(name);
      return;
    }
    const few = this.#few.get(name) ?? NOBODY;
    if (few.includes(connection)) return;
    this.#few.set(name, few.concat([connection])); // push() would make room for sixteen more.
    if (few.length === LISTENERS_SENT_MAX) this.#makeTopic(name);
  }

  unlisten(connection: ConnectionId, name: string): void {
    const topic = this.#topics.get(name);
    if (topic !== undefined) {
      this.#ports.open.get(connection)?.unsubscribe(name);
      topic.listeners.delete(connection);
      if (topic.listeners.size === 0) this.#topics.delete(name);
      return;
    }
    const few = this.#few.get(name) ?? NOBODY;
    const place = few.indexOf(connection);
    if (place < 0) return;
    if (few.length === 1) this.#few.delete(name);
    else this.#few.set(name, few.toSpliced(place, 1));
  }

  /** `frame` must not change until the turn of the event loop has ended. */
  publish(name: string, frame: Uint8Array, except: ConnectionId | undefined): void {
    const topic = this.#topics.get(name) ?? this.#sendToFew(name, frame, except);
    if (topic === undefined) return;
    topic.frames += 1;
    const { app, open, beforePublish } = this.#ports;
    beforePublish(name, frame);
    // Of who listens to nothing uWebSockets.js publishes nothing to anybody.
    const excepted = except !== undefined && topic.listeners.has(except) ? open.get(except) : undefined;
    if (excepted === undefined) app.publish(name, frame, true);
    else excepted.publish(name, frame, true); // To everyone but itself.
  }

  /** Every `stepMs`. */
  step(): void {
    this.#steps += 1;
    if (this.#steps % this.#stepsPerWindow !== 0) return;
    this.#sent.clear();
    for (const [name, topic] of this.#topics) {
      if (topic.frames === 0 && topic.listeners.size <= LISTENERS_SENT_MAX) this.#dissolve(name, topic); // Nothing of it is on its way.
      topic.frames = 0;
    }
  }

  /** The topic that it is now, for the frame to be published to: frames came too often. */
  #sendToFew(name: string, frame: Uint8Array, except: ConnectionId | undefined): Topic | undefined {
    const few = this.#few.get(name);
    if (few === undefined) return undefined;
    const sent = (this.#sent.get(name) ?? 0) + 1;
    if (sent > FRAMES_SENT_MAX) return this.#makeTopic(name);
    this.#sent.set(name, sent);
    for (const connection of few) if (connection !== except) this.#ports.send(connection, frame);
    return undefined;
  }

  #makeTopic(name: string): Topic {
    const topic: Topic = { listeners: new Set(this.#few.get(name)), frames: 0 };
    this.#few.delete(name);
    this.#sent.delete(name);
    this.#topics.set(name, topic);
    for (const connection of topic.listeners) this.#ports.open.get(connection)?.subscribe(name);
    return topic;
  }

  #dissolve(name: string, { listeners }: Topic): void {
    this.#topics.delete(name);
    for (const connection of listeners) this.#ports.open.get(connection)?.unsubscribe(name);
    this.#few.set(name, [...listeners]);
  }
}

const NOBODY: readonly never[] = [];
