/**
 * Connections by the topics that they listen to. In uWebSockets.js a topic costs over a hundred bytes per listener
 * outside V8's heap, and as much again for a connection's first topic. Most rooms are quiet for minutes. So a topic is
 * created there only while frames are frequent or listeners are many; otherwise each listener is sent its own frame.
 */

import type { TemplatedApp, WebSocket } from "uWebSockets.js-glibc-2.36";

import type { ConnectionId } from "../../ports.ts";

type Socket = Pick<WebSocket<unknown>, "subscribe" | "unsubscribe" | "publish">;

export type TopicListenersPorts = {
  readonly app: Pick<TemplatedApp, "publish">;
  readonly open: ReadonlyMap<ConnectionId, Socket>;
  readonly send: (to: ConnectionId, frame: Uint8Array) => void;
  /** Called before a frame goes to a uWebSockets.js topic: frames that were sent earlier must not arrive after it. */
  readonly beforePublish: (topic: string, frame: Uint8Array) => void;
};

/** `frames` counts since the current window began. */
type Topic = { readonly listeners: Set<ConnectionId>; frames: number };

const WINDOW_MS = 10_000;
/** More frames than this in a window create a topic. A window without frames removes it. */
export const FRAMES_SENT_MAX = 16;
export const LISTENERS_SENT_MAX = 16;

export class TopicListeners {
  readonly #ports: TopicListenersPorts;
  readonly #stepsPerWindow: number;
  #steps = 0;
  readonly #topics = new Map<string, Topic>();
  /** Listeners of names that are not topics. */
  readonly #few = new Map<string, readonly ConnectionId[]>();
  /** Frames sent to them since the current window began. */
  readonly #sent = new Map<string, number>();

  constructor(ports: TopicListenersPorts, { stepMs }: { stepMs: number }) {
    this.#ports = ports;
    this.#stepsPerWindow = Math.ceil(WINDOW_MS / stepMs);
  }

  listen(connection: ConnectionId, name: string): void {
    const socket = this.#ports.open.get(connection);
    if (socket === undefined) return; // The connection has closed meanwhile.
    const topic = this.#topics.get(name);
    if (topic !== undefined) {
      topic.listeners.add(connection);
      socket.subscribe(name);
      return;
    }
    const few = this.#few.get(name) ?? NOBODY;
    if (few.includes(connection)) return;
    this.#few.set(name, few.concat([connection])); // push() would allocate space for sixteen more.
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

  /** `frame` must not change until the turn of the event loop ends. */
  publish(name: string, frame: Uint8Array, except: ConnectionId | undefined): void {
    const topic = this.#topics.get(name) ?? this.#sendToFew(name, frame, except);
    if (topic === undefined) return;
    topic.frames += 1;
    const { app, open, beforePublish } = this.#ports;
    beforePublish(name, frame);
    // uWebSockets.js publishes nothing for a socket that listens to nothing.
    const excepted = except !== undefined && topic.listeners.has(except) ? open.get(except) : undefined;
    if (excepted === undefined) app.publish(name, frame, true);
    else excepted.publish(name, frame, true); // A socket's publication goes to every listener but itself.
  }

  /** Every `stepMs`. */
  step(): void {
    this.#steps += 1;
    if (this.#steps % this.#stepsPerWindow !== 0) return;
    this.#sent.clear();
    for (const [name, topic] of this.#topics) {
      if (topic.frames === 0 && topic.listeners.size <= LISTENERS_SENT_MAX) this.#dissolve(name, topic); // No frame of it is on its way.
      topic.frames = 0;
    }
  }

  /** Returns the topic when frames came so often that the name became one: the frame is then published. */
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
