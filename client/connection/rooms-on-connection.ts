/**
 * The rooms on a connection: their members, open JOIN requests and channels, so that each frame reaches its room. A
 * room that is left while its JOIN is open is left on the server once JOINED arrives. A member that leaves may still
 * send frames before LEAVE; the next member of the same room joins after that LEAVE. Rules COH2, COH10 to COH13.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientKey, Position, RoomId } from "../../shared/ids.ts";
import type { Channel, ServerFrame } from "../../shared/wire/frames.ts";
import type { RoomFrame, RoomSessionInput } from "../room/room-messages.ts";
import type { ControlFrame } from "./control-frames.ts";

/** A room on the connection. */
export interface ConnectedRoom {
  readonly room: RoomId;
  receiveInput(input: RoomSessionInput): void;
}

/** The queue in which control frames wait for their turn. */
type ControlQueue = {
  send(frame: ControlFrame): void;
  hasJoin(room: RoomId): boolean;
  withdrawJoin(room: RoomId): void;
  withdrawFrom(channel: Channel): void;
};

/** `isAlone`: no earlier JOIN of the room was sent and is unanswered. */
type Request = { readonly member: ConnectedRoom; readonly isAlone: boolean };

type ConnectionOpened = RoomSessionInput & { kind: "connection-open" };

export class RoomsOnConnection {
  readonly #out: ControlQueue;
  readonly #members = new Map<RoomId, ConnectedRoom>();
  /** Former members whose LEAVE is still to be sent. */
  readonly #leaving = new Set<ConnectedRoom>();
  /** Open requests, also of members that have left: their rooms are left once JOINED arrives. */
  readonly #requests = new Map<number, Request>();
  readonly #channels = new Map<Channel, ConnectedRoom>();
  #lastRequest = 0;
  /** The open connection's limits, as given to each room; undefined while there is none. */
  #opened: ConnectionOpened | undefined;

  constructor(out: ControlQueue) {
    this.#out = out;
  }

  /** False: another member has the room. The gateway admits a connection to a room once. */
  isFreeFor(member: ConnectedRoom): boolean {
    const there = this.#members.get(member.room);
    return there === undefined || there === member;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** The room that has been a member longest. */
  get first(): RoomId | undefined {
    return this.#members.keys().next().value;
  }

  enter(member: ConnectedRoom): void {
    assert(this.isFreeFor(member), "a connection has one member of a room");
    this.#members.set(member.room, member);
    this.#sendOpened(member);
  }

  /** Call `left` once the member has sent its last frames. */
  leave(member: ConnectedRoom): void {
    if (this.#has(member)) this.#members.delete(member.room);
    this.#leaving.add(member);
    const sendsLeave = this.#forgetChannels(member); // LEAVE also covers the member's earlier requests.
    if (!sendsLeave && !this.#isWaitingAlone(member)) return;
    this.#out.withdrawJoin(member.room);
    this.#forgetRequests(member.room);
  }

  left(member: ConnectedRoom): void {
    this.#leaving.delete(member);
    const next = this.#members.get(member.room);
    if (next !== undefined) this.#sendOpened(next);
  }

  /** Only the answer to the newest request of a room counts. */
  join(member: ConnectedRoom, clientKey: ClientKey, position: Position): void {
    if (this.#leaving.has(member)) return; // LEAVE must be this member's last frame.
    const isAlone = this.#isAlone(member.room);
    this.#forgetRequests(member.room);
    this.#lastRequest += 1;
    this.#requests.set(this.#lastRequest, { member, isAlone });
    this.#out.send({ type: "join", request: this.#lastRequest, room: member.room, clientKey, position });
  }

  receiveOpened(opened: ConnectionOpened): void {
    this.#opened = opened;
    for (const member of this.#members.values()) this.#sendOpened(member);
  }

  /** Requests and channels of a lost connection are invalid. */
  receiveLost(lost: RoomSessionInput & { kind: "connection-lost" }): void {
    this.#opened = undefined;
    this.#requests.clear();
    this.#channels.clear();
    for (const member of this.#members.values()) member.receiveInput(lost);
  }

  route(frame: ServerFrame): void {
    switch (frame.type) {
      case "welcome":
      case "pong":
      case "error":
      case "going-away":
      case "degraded":
      case "renewed":
      case "retry-later":
        return;
      case "joined":
      case "join-refused":
        return this.#receiveAnswer(frame);
      case "left":
        this.#out.withdrawFrom(frame.channel);
        this.#receiveOnChannel(frame);
        this.#channels.delete(frame.channel);
        return;
      default:
        return this.#receiveOnChannel(frame);
    }
  }

  #receiveAnswer(frame: RoomFrame & { type: "joined" | "join-refused" }): void {
    const member = this.#requests.get(frame.request)?.member;
    if (member === undefined) return;
    this.#requests.delete(frame.request);
    if (!this.#has(member)) {
      if (frame.type === "joined") this.#out.send({ type: "leave", channel: frame.channel });
      return;
    }
    if (frame.type === "joined") {
      this.#forgetChannels(member);
      this.#channels.set(frame.channel, member);
    }
    member.receiveInput({ kind: "frame", frame });
  }

  /** Frames of a room that the client has just left may still arrive. */
  #receiveOnChannel(frame: RoomFrame & { channel: Channel }): void {
    this.#channels.get(frame.channel)?.receiveInput({ kind: "frame", frame });
  }

  #sendOpened(member: ConnectedRoom): void {
    if (this.#opened !== undefined && ![...this.#leaving].some(({ room }) => room === member.room)) member.receiveInput(this.#opened);
  }

  #has(member: ConnectedRoom): boolean {
    return this.#members.get(member.room) === member;
  }

  #forgetRequests(room: RoomId): void {
    for (const [request, { member }] of this.#requests) if (member.room === room) this.#requests.delete(request);
  }

  /** True: no JOIN of the room was sent and is unanswered. */
  #isAlone(room: RoomId): boolean {
    const request = [...this.#requests.values()].find(({ member }) => member.room === room);
    return request === undefined || (request.isAlone && this.#out.hasJoin(room));
  }

  /** True: all its requests still wait in the queue, so the server need not receive a LEAVE. */
  #isWaitingAlone(member: ConnectedRoom): boolean {
    return [...this.#requests.values()].some((request) => request.member === member) && this.#isAlone(member.room);
  }

  /** False: the member had no channel. */
  #forgetChannels(member: ConnectedRoom): boolean {
    const channels = [...this.#channels].filter(([, other]) => other === member);
    for (const [channel] of channels) this.#channels.delete(channel);
    return channels.length > 0;
  }
}
