/**
 * The rooms on a connection: who takes part for each, what was asked for and on which channel it is, so that every
 * frame reaches its room. A room that is left before it is joined is left on the server once it is. Rules COH2, COH10, COH11.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientKey, Position, RoomId } from "../../shared/ids.ts";
import type { Channel, ClientFrame, ServerFrame } from "../../shared/wire/frames.ts";
import type { RoomFrame, RoomInput } from "../room/room-messages.ts";

/** A room on the connection. */
export interface Member {
  readonly room: RoomId;
  receive(input: RoomInput): void;
}

export class RoomsOnLine {
  readonly #send: (frame: ClientFrame) => void;
  readonly #members = new Map<RoomId, Member>();
  /** Of members that have left meanwhile too: their rooms are left once they are joined. */
  readonly #requests = new Map<number, Member>();
  readonly #channels = new Map<Channel, Member>();
  #lastRequest = 0;

  constructor(send: (frame: ClientFrame) => void) {
    this.#send = send;
  }

  /** Throws where another takes part for the room: the application's mistake. */
  assertFree(member: Member): void {
    const there = this.#members.get(member.room);
    assert(there === undefined || there === member, `room ${JSON.stringify(member.room)} is on this connection already: one RoomConnection or provider a room`);
  }

  enter(member: Member): void {
    this.assertFree(member);
    this.#members.set(member.room, member);
  }

  leave(member: Member): void {
    if (this.#has(member)) this.#members.delete(member.room);
    if (this.#forgetChannels(member)) this.#forgetRequests(member.room); // It says LEAVE, and what it asked for before that is left too.
  }

  /** Only the answer to the newest request of a room counts. */
  join(member: Member, clientKey: ClientKey, position: Position): void {
    if (!this.#has(member)) return; // It leaves: its LEAVE comes next, and must be the last.
    this.#forgetRequests(member.room);
    this.#lastRequest += 1;
    this.#requests.set(this.#lastRequest, member);
    this.#send({ type: "join", request: this.#lastRequest, room: member.room, clientKey, position });
  }

  tell(input: RoomInput): void {
    for (const member of this.#members.values()) member.receive(input);
  }

  /** Nothing that was asked for or joined on it holds any more. */
  forgetLine(): void {
    this.#requests.clear();
    this.#channels.clear();
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
        this.#receiveOnChannel(frame);
        this.#channels.delete(frame.channel);
        return;
      default:
        return this.#receiveOnChannel(frame);
    }
  }

  #receiveAnswer(frame: RoomFrame & { type: "joined" | "join-refused" }): void {
    const member = this.#requests.get(frame.request);
    if (member === undefined) return;
    this.#requests.delete(frame.request);
    if (!this.#has(member)) {
      if (frame.type === "joined") this.#send({ type: "leave", channel: frame.channel });
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

  #has(member: Member): boolean {
    return this.#members.get(member.room) === member;
  }

  #forgetRequests(room: RoomId): void {
    for (const [request, member] of this.#requests) if (member.room === room) this.#requests.delete(request);
  }

  /** False: it had none. */
  #forgetChannels(member: Member): boolean {
    const channels = [...this.#channels].filter(([, other]) => other === member);
    for (const [channel] of channels) this.#channels.delete(channel);
    return channels.length > 0;
  }
}
