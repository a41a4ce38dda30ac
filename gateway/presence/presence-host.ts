/**
 * Holds the presence of the rooms that this gateway has members in, feeds each what happens and carries out what each
 * decides. On lines and timers of its own: edits never wait for it.
 */

import { Alarm, Alarms } from "../../shared/alarm.ts";
import { assertNever } from "../../shared/assert.ts";
import {
  decodePresenceAnswer,
  decodePresenceFromOwner,
  encodePresenceToOwner,
  type Member,
  type Standing,
} from "../../shared/bus/presence-messages.ts";
import type { ClientId, RoomKey } from "../../shared/ids.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import { encodeFrame, encodePresenceNewsFrame } from "../../shared/wire/codec.ts";
import type { Channel } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { Backbone, ConnectionId, PresenceRooms, Sockets, Topics } from "../ports.ts";
import { type PresenceEffect, type PresenceInput, type PresenceOptions, RoomPresence } from "./presence.ts";
import type { ReachTopic } from "./presence-reach.ts";
import type { HostDeps } from "../host-deps.ts";

export type PresenceHostPorts = { readonly sockets: Sockets; readonly topics: Topics; readonly rooms: PresenceRooms };
export type PresenceHostOptions = PresenceOptions & { readonly heartbeatMs: number };
export type PresenceHostDeps = HostDeps & {
  /** Nobody owns the room, or its owner does not answer. */
  readonly onOwnerMissing: (room: RoomKey) => void;
};

type Hosted = { readonly key: RoomKey; channel: Channel; readonly presence: RoomPresence; readonly alarm: Alarm };

const TICK = { kind: "tick" } as const;

export class PresenceHost implements Backbone {
  readonly #ports: PresenceHostPorts;
  readonly #options: PresenceHostOptions;
  readonly #deps: PresenceHostDeps;
  readonly #alarms: Alarms;
  readonly #rooms = new Map<RoomKey, Hosted>();
  /** Connections that are told no presence until they have taken what they were sent, whatever rooms they join meanwhile. */
  readonly #behind = new Set<ConnectionId>();
  /** Above all numbers used in rooms that are no longer held: an owner may still know them. */
  #lastNumber = 0;
  #shedLevel = 0;
  #stopBeating: () => void = () => {};
  #isStopped = false;

  constructor(ports: PresenceHostPorts, options: PresenceHostOptions, deps: PresenceHostDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#alarms = new Alarms(deps);
  }

  start(): void {
    this.#ports.rooms.sayAlive();
    this.#stopBeating = this.#deps.clock.after(this.#options.heartbeatMs, () => this.start());
  }

  /** For good. What owners and clients still say meets no room, and sets no timer. */
  stop(): void {
    this.#isStopped = true;
    this.#stopBeating();
    for (const { alarm } of this.#rooms.values()) alarm.callOff();
    this.#rooms.clear();
  }

  receiveEntry(room: RoomKey, channel: Channel, connection: ConnectionId, member: Member): void {
    if (this.#isStopped) return;
    const hosted = this.#rooms.get(room) ?? this.#open(room, channel);
    hosted.channel = channel;
    this.#feed(hosted, { kind: "enter", connection, member });
    if (this.#behind.has(connection)) this.#feed(hosted, { kind: "behind", connection });
  }

  /** `rooms`: those that it is in. One that is gone was either keeping up or is told of once more, as such. */
  receivePace(connection: ConnectionId, pace: "behind" | "keeping-up", rooms: readonly RoomKey[]): void {
    if (pace === "behind") this.#behind.add(connection);
    else this.#behind.delete(connection);
    for (const room of rooms) this.receive(room, { kind: pace, connection });
  }

  receive(room: RoomKey, input: PresenceInput): void {
    const hosted = this.#rooms.get(room);
    if (hosted !== undefined) this.#feed(hosted, input);
  }

  /** An edit, or anything else that shows that somebody is there. Nearly always of an editor, of whom that is known. */
  receiveInput(room: RoomKey, connection: ConnectionId): void {
    const hosted = this.#rooms.get(room);
    if (hosted?.presence.receiveInput(connection, this.#deps.clock.now()) === true) hosted.alarm.setFor(hosted.presence.dueAt);
  }

  receiveFields(room: RoomKey, connection: ConnectionId, fields: readonly PresenceField[]): void {
    this.#deps.metrics.presenceFrames.inc();
    this.receive(room, { kind: "fields", connection, fields });
  }

  receiveFromOwner(room: RoomKey, bytes: Uint8Array): void {
    const message = decodePresenceFromOwner(bytes);
    if (message === undefined) return this.#deps.metrics.unreadable.inc();
    this.receive(room, { kind: "from-owner", message });
  }

  receiveAnswer(room: RoomKey, bytes: Uint8Array): void {
    const answer = decodePresenceAnswer(bytes);
    if (answer === undefined) return this.#deps.metrics.unreadable.inc();
    this.receive(room, { kind: "answer", answer });
  }

  receiveNoResponders(room: RoomKey): void {
    this.receive(room, { kind: "no-responders" });
    this.#deps.onOwnerMissing(room);
  }

  /** Whether the client is in the room, over whichever gateway, as far as its owner has told this one. */
  knows(room: RoomKey, client: ClientId): boolean {
    return this.#rooms.get(room)?.presence.knows(client) === true;
  }

  /** Undefined: it has no members here, or only just, so its owner has told this gateway nothing. */
  isFullFor(room: RoomKey, client: ClientId): boolean | undefined {
    return this.#rooms.get(room)?.presence.isFullFor(client);
  }

  /** How far down the drop order this gateway is. */
  receiveShed(level: number): void {
    this.#shedLevel = level;
    for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "shed", level });
  }

  receiveBackboneLost(): void {
    for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "detached" });
  }

  receiveBackboneFound(): void {
    for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "attached" });
  }

  #open(key: RoomKey, channel: Channel): Hosted {
    const presence = new RoomPresence(this.#options, this.#lastNumber, this.#deps.clock.now());
    const alarm = new Alarm(() => this.#feed(hosted, TICK), this.#alarms);
    const hosted: Hosted = { key, channel, presence, alarm };
    this.#rooms.set(key, hosted);
    this.#feed(hosted, { kind: "shed", level: this.#shedLevel });
    this.#ports.rooms.follow(key).then(
      () => {
        if (this.#rooms.get(key) === hosted) this.#feed(hosted, { kind: "attached" });
      },
      // The line was lost: `receiveBackboneFound` attaches the room with all others.
      (cause: unknown) => this.#deps.log.debug({ room: key, cause }, "a room's presence is followed once NATS is back"),
    );
    return hosted;
  }

  #feed(hosted: Hosted, input: PresenceInput): void {
    for (const effect of hosted.presence.receive(input, this.#deps.clock.now())) this.#carryOut(hosted, effect);
    if (hosted.presence.isDone) this.#close(hosted);
    else hosted.alarm.setFor(hosted.presence.dueAt);
  }

  #close({ key, presence, alarm }: Hosted): void {
    this.#lastNumber = Math.max(this.#lastNumber, presence.lastNumber);
    alarm.callOff();
    this.#rooms.delete(key);
    this.#ports.rooms.unfollow(key);
  }

  #carryOut({ key, channel }: Hosted, effect: PresenceEffect): void {
    const { sockets, topics, rooms } = this.#ports;
    const { metrics } = this.#deps;
    switch (effect.kind) {
      case "tell":
        return rooms.tell(key, encodePresenceToOwner(effect.message));
      case "publish": {
        const frame = encodePresenceNewsFrame(channel, effect.news);
        metrics.presenceNews.inc();
        metrics.presenceNewsBytes.inc(frame.byteLength);
        return topics.publishTo(topicOf(channel, effect.topic), frame, effect.except);
      }
      case "send": {
        const frame = encodePresenceNewsFrame(channel, effect.news);
        metrics.presenceNewsBytes.inc(frame.byteLength);
        return sockets.send(effect.to, frame);
      }
      case "listen":
        return topics.listenTo(effect.connection, topicOf(channel, effect.topic));
      case "unlisten":
        return topics.unlistenTo(effect.connection, topicOf(channel, effect.topic));
      case "publish-mode":
        return topics.publishTo(topicOf(channel, "everybody"), modeFrame(channel, effect.standing), undefined);
      case "welcome": {
        const frames = [encodePresenceNewsFrame(channel, effect.whole), modeFrame(channel, effect.standing)];
        for (const connection of effect.connections) for (const frame of frames) sockets.send(connection, frame);
        return;
      }
      case "refuse": {
        metrics.presenceRefused.inc({ limit: "bytes" });
        const message = `what one participant shows may have ${this.#options.memberBytesMax} bytes in ${this.#options.memberFieldsMax} fields: show less`;
        return sockets.send(effect.connection, encodeFrame({ type: "error", code: CLOSE.frameTooLarge.code, message }));
      }
      case "owner-silent":
        return this.#deps.onOwnerMissing(key);
      case "synced":
        return metrics.presenceSyncs.inc();
      default:
        return assertNever(effect);
    }
  }
}

/** Beside the channel's own topic, which is its edits'. */
function topicOf(channel: Channel, topic: ReachTopic): string {
  return `${channel}p/${topic}`;
}

function modeFrame(channel: Channel, standing: Standing): Uint8Array {
  return encodeFrame({ type: "mode", channel, ...standing });
}
