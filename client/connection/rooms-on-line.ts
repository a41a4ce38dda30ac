/**
 * The rooms on a connection: who takes part for each, what was asked for and on which channel it is, so that every
 * frame reaches its room. A room that is left before it is joined is left on the server once it is. Whoever leaves may
 * have something to say before its LEAVE: its place is free at once, and whoever takes it joins behind that LEAVE.
 * Rules COH2, COH10 to COH13.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientKey, Position, RoomId } from "../../shared/ids.ts";
import type { Channel, ServerFrame } from "../../shared/wire/frames.ts";
import type { RoomFrame, RoomInput } from "../room/room-messages.ts";
import type { ControlFrame } from "./control-frames.ts";

/** A room on the connection. */
export interface Member {
  readonly room: RoomId;
  receive(input: RoomInput): void;
}

/** Where frames go out, and wait for their turn. */
export type RoomsOut = {
  send(frame: ControlFrame): void;
  hasJoin(room: RoomId): boolean;
  withdrawJoin(room: RoomId): void;
  withdrawFrom(channel: Channel): void;
};

/** `isAlone`: no earlier one of the room was sent and is unanswered, whose room would have to be left. */
type Request = { readonly member: Member; readonly isAlone: boolean };

type LineOpen = RoomInput & { kind: "line-open" };

export class RoomsOnLine {
  readonly #out: RoomsOut;
  readonly #members = new Map<RoomId, Member>();
  /** Members no more, and their LEAVE is still to come. */
  readonly #leaving = new Set<Member>();
  /** Of members that have left meanwhile too: their rooms are left once they are joined. */
  readonly #requests = new Map<number, Request>();
  readonly #channels = new Map<Channel, Member>();
  #lastRequest = 0;
  /** What rooms are told of a line that is open. */
  #opened: LineOpen | undefined;

  constructor(out: RoomsOut) {
    this.#out = out;
  }

  /** Throws where another takes part for the room: the application's mistake. */
  assertFree(member: Member): void {
    const there = this.#members.get(member.room);
    assert(
      there === undefined || there === member,
      `room ${JSON.stringify(member.room)} is on this connection already: one RoomConnection or provider a room`,
    );
  }

  enter(member: Member): void {
    this.assertFree(member);
    this.#members.set(member.room, member);
    this.#tellOpened(member);
  }

  /** `left` follows, once it has said all that it has to say. */
  leave(member: Member): void {
    if (this.#has(member)) this.#members.delete(member.room);
    this.#leaving.add(member);
    const saysLeave = this.#forgetChannels(member); // And what it asked for before that is left too.
    if (!saysLeave && !this.#isWaitingAlone(member)) return;
    this.#out.withdrawJoin(member.room);
    this.#forgetRequests(member.room);
  }

  left(member: Member): void {
    this.#leaving.delete(member);
    const next = this.#members.get(member.room);
    if (next !== undefined) this.#tellOpened(next);
  }

  /** Only the answer to the newest request of a room counts. */
  join(member: Member, clientKey: ClientKey, position: Position): void {
    if (this.#leaving.has(member)) return; // Its LEAVE comes next, and must be the last.
    const isAlone = this.#isAlone(member.room);
    this.#forgetRequests(member.room);
    this.#lastRequest += 1;
    this.#requests.set(this.#lastRequest, { member, isAlone });
    this.#out.send({ type: "join", request: this.#lastRequest, room: member.room, clientKey, position });
  }

  receiveOpened(opened: LineOpen): void {
    this.#opened = opened;
    for (const member of this.#members.values()) this.#tellOpened(member);
  }

  /** Nothing that was asked for or joined on it holds any more. */
  receiveLost(lost: RoomInput & { kind: "line-lost" }): void {
    this.#opened = undefined;
    this.#requests.clear();
    this.#channels.clear();
    for (const member of this.#members.values()) member.receive(lost);
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
    member.receive({ kind: "frame", frame });
  }

  /** Frames of a room just left may still come. */
  #receiveOnChannel(frame: RoomFrame & { channel: Channel }): void {
    this.#channels.get(frame.channel)?.receive({ kind: "frame", frame });
  }

  #tellOpened(member: Member): void {
    if (this.#opened !== undefined && ![...this.#leaving].some(({ room }) => room === member.room)) member.receive(this.#opened);
  }

  #has(member: Member): boolean {
    return this.#members.get(member.room) === member;
  }

  #forgetRequests(room: RoomId): void {
    for (const [request, { member }] of this.#requests) if (member.room === room) this.#requests.delete(request);
  }

  /** No JOIN of the room that was sent is unanswered. */
  #isAlone(room: RoomId): boolean {
    const request = [...this.#requests.values()].find(({ member }) => member.room === room);
    return request === undefined || (request.isAlone && this.#out.hasJoin(room));
  }

  /** All that was asked for it still waits, so that nothing is to be left. */
  #isWaitingAlone(member: Member): boolean {
    return [...this.#requests.values()].some((request) => request.member === member) && this.#isAlone(member.room);
  }

  /** False: it had none. */
  #forgetChannels(member: Member): boolean {
    const channels = [...this.#channels].filter(([, other]) => other === member);
    for (const [channel] of channels) this.#channels.delete(channel);
    return channels.length > 0;
  }
}
