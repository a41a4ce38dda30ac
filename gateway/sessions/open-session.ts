/**
 * A session with a valid token: the rooms that it may join, its rights, and the meaning of each frame. Rights come from
 * the token and from sanctions, and both may change while the connection is open.
 */

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import {
  type ClientId,
  type ClientKey,
  type Millis,
  type RoomId,
  type RoomKey,
  roomOf,
  type TenantId,
  type UserId,
} from "../../shared/ids.ts";
import { channelOf } from "../../shared/wire/codec.ts";
import type { Channel, Frame, LeftReason, Limits, Rights } from "../../shared/wire/frames.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { ConnectionRates } from "../limits/connection-rates.ts";
import { type RoomAdmission, admit, type Identity, READ_ONLY, type Restriction } from "./identity.ts";
import {
  badFrame,
  joinRefused,
  nack,
  outOfTurn,
  type SessionRefusal,
  ROOM_DELETED,
  type SessionEffect,
  tooFast,
} from "./session-effects.ts";
import {
  askFor,
  endedOn,
  findRoom,
  joinedOn,
  NO_ROOMS,
  type JoinedRoom,
  type SessionRoom,
  type SessionRooms,
  withEnded,
  withJoined,
  withRefused,
} from "./session-rooms.ts";

export type OpenSessionOptions = {
  readonly limits: Limits;
  readonly roomsMax: number;
  /** Derives the client id from the user and the client's key, so that no client can use the id of another. */
  readonly clientIdOf: (tenant: TenantId, user: UserId, key: ClientKey) => ClientId;
  /** The restriction of a user in a room, regardless of the token. */
  readonly restrictionOn: (tenant: TenantId, user: UserId, room: RoomKey | undefined) => Restriction | undefined;
};

export type JoinFrame = Frame & { type: "join" };
type JoinConfirmation = { readonly room: RoomKey; readonly channel: Channel; readonly client: ClientId };
export type Reply = SessionEffect[] | SessionRefusal;

/** A room in which the connection may write, and the time since which it is in the room. */
type WritableRoom = { readonly room: RoomKey; readonly since: Millis };

/** Room servers make no longer ones. */
const MAC_BYTES_MAX = 64;

export class OpenSession {
  readonly #options: OpenSessionOptions;
  #rooms: SessionRooms = NO_ROOMS;
  #identity: Identity;
  #isRenewing = false;

  constructor(options: OpenSessionOptions, identity: Identity) {
    this.#options = options;
    this.#identity = identity;
  }

  /** Used by the session's state union. */
  get kind(): "open" {
    return "open";
  }

  get identity(): Identity {
    return this.#identity;
  }

  /** Including rooms that have not admitted the session yet. */
  get rooms(): RoomKey[] {
    return this.#rooms.rooms.map(({ room }) => room);
  }

  /** Rooms in which the session may write. */
  get writing(): WritableRoom[] {
    return this.#rooms.rooms.flatMap((room) =>
      room.channel !== undefined && room.rights.write ? [{ room: room.room, since: room.joinedAt }] : [],
    );
  }

  /** Undefined: the session is not in the room. */
  rightsIn(room: RoomKey): Rights | undefined {
    const joined = findRoom(this.#rooms, room);
    return joined?.channel === undefined ? undefined : joined.rights;
  }

  receiveFrame(frame: Frame, rates: ConnectionRates, now: Millis): Reply {
    switch (frame.type) {
      case "edit":
        return this.#receiveEdit(frame, rates, now);
      case "presence":
        return this.#inRoom(frame, ({ room }) => [
          { kind: "presence", room, fields: frame.fields.map(({ name, value }) => ({ name, value: value.slice() })) },
        ]);
      case "join":
        return rates.mayCatchUp(now) ? this.receiveJoin(frame) : tooFast("catch-ups");
      case "renew":
        if (this.#isRenewing) return [];
        this.#isRenewing = true;
        return [{ kind: "verify", token: frame.token }];
      case "leave":
        return this.#inRoom(frame, (joined) => {
          this.#rooms = withEnded(this.#rooms, joined.room, this.#options.roomsMax);
          return [
            { kind: "leave", room: joined.room },
            { kind: "send", frame: { type: "left", channel: frame.channel, reason: "asked" } },
          ];
        });
      case "resubmit":
        return this.#inRoom(frame, ({ room, rights }) => {
          const { edit } = frame;
          const tooLarge = edit.payload.byteLength > this.#options.limits.editBytesMax || edit.mac.byteLength > MAC_BYTES_MAX;
          if (!rights.write || tooLarge) return []; // No answer: a NACK always refers to the receiver's own edits.
          return [{ kind: "resubmit", room, edit: { ...edit, mac: edit.mac.slice(), payload: edit.payload.slice() } }];
        });
      case "replay-request":
        return this.#inRoom(frame, ({ room }) =>
          rates.mayCatchUp(now) ? [{ kind: "replay", room, after: frame.after, through: frame.through }] : tooFast("catch-ups"),
        );
      case "watch-board":
        return this.#inRoom(frame, ({ room }) => {
          const { user, name } = this.#identity;
          const { channel, role, window, shown } = frame;
          return [{ kind: "watch-board", request: { user, name, room, channel, role, window, shown } }];
        });
      case "ping":
        return [{ kind: "send", frame: { type: "pong", nonce: frame.nonce } }];
      case "part": // Valid parts are joined before (partial-frames.ts).
        return badFrame(
          `a part of a frame has at least ${PART_BYTES_MIN} bytes of the frame, except the last one, and the frame itself is no PART`,
        );
      default:
        return outOfTurn(frame, "it has no place in an open session");
    }
  }

  /**
   * Call for each presence frame before it is decoded, because its fields are the larger part of its cost. Undefined: the
   * frame is within the rate.
   */
  takePresence(bytes: Uint8Array, rates: ConnectionRates, now: Millis): Reply | undefined {
    const taken = rates.takePresence(now);
    if (taken === "taken") return undefined;
    const channel = channelOf(bytes);
    if (taken === "too-fast" || channel === undefined) return tooFast("presence");
    return this.#inRoom({ channel }, () => [
      { kind: "presence-passed-over" },
      { kind: "send", frame: { type: "presence-again", channel } },
    ]);
  }

  receiveJoin(frame: JoinFrame): SessionEffect[] {
    const admission = this.#admit(frame.room);
    if (admission.kind === "refused") return [joinRefused(frame.request, "not-allowed", admission.why, admission.retryAfterMs)];
    const { room } = admission;
    const asked = askFor(this.#rooms, room, frame.request, this.#options.roomsMax);
    if (asked === undefined)
      return [joinRefused(frame.request, "too-many-rooms", `a connection joins ${this.#options.roomsMax} rooms at most: leave one first`)];
    this.#rooms = asked;
    const { tenant, user } = this.#identity;
    return [
      {
        kind: "join",
        room,
        request: frame.request,
        client: this.#options.clientIdOf(tenant, user, frame.clientKey),
        position: frame.position,
      },
    ];
  }

  /** Returns the rights, which may have changed since JOIN. */
  receiveJoined(joined: JoinConfirmation, now: Millis): Rights {
    const admission = this.#admit(roomOf(joined.room));
    const rights = admission.kind === "admitted" ? admission.rights : READ_ONLY;
    this.#rooms = withJoined(this.#rooms, { ...joined, rights }, now);
    return rights;
  }

  receiveJoinRefused(room: RoomKey): void {
    this.#rooms = withRefused(this.#rooms, room);
  }

  /** `identity`: of the new token; undefined if the keys to check it are not available. */
  receiveRenewal(identity: Identity | undefined, now: Millis): Reply {
    this.#isRenewing = false;
    if (identity !== undefined && (identity.tenant !== this.#identity.tenant || identity.user !== this.#identity.user))
      return { kind: "refused", close: "unauthorized", message: "the new token is of another user or tenant: connect again with it" };
    this.#identity = identity ?? this.#identity;
    const renewed: SessionEffect = { kind: "send", frame: { type: "renewed", tokenExpiresInMs: this.tokenLeftMs(now) } };
    return identity === undefined ? [renewed] : [renewed, ...this.receiveRestriction()];
  }

  tokenLeftMs(now: Millis): number {
    return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(this.#identity.expiresAt - now)));
  }

  /**
   * Leaves rooms whose rights have changed through the token or a sanction. A member who is banned from the room receives
   * `rights-changed`, so that the answer to its next JOIN gives the reason and the time to retry.
   */
  receiveRestriction(): SessionEffect[] {
    return this.#rooms.rooms.flatMap((room) => {
      const admission = this.#admit(roomOf(room.room));
      if (admission.kind === "refused")
        return this.#takeAway(room, admission.retryAfterMs === 0 ? "rights-revoked" : "rights-changed", admission);
      const isAsBefore = room.channel === undefined || room.rights.write === admission.rights.write;
      return isAsBefore ? [] : this.#takeAway(room, "rights-changed");
    });
  }

  /** The room is deleted, or the user has to leave it. */
  receiveRemoval(room: RoomKey, reason: "deleted" | "rights-revoked"): SessionEffect[] {
    return this.#takeAway(findRoom(this.#rooms, room), reason);
  }

  #receiveEdit(frame: Frame & { type: "edit" }, rates: ConnectionRates, now: Millis): Reply {
    const { channel, counter, ackedThrough, parentSeq, payload } = frame;
    const seen = joinedOn(this.#rooms, channel) ?? endedOn(this.#rooms, channel); // Ignored edits cost time too.
    if (seen !== undefined && !rates.takeEdit(counter, seen, now)) return tooFast("edits");
    return this.#inRoom(frame, ({ room, client, rights }) => {
      // The owner would accept one such edit and answer no other one.
      if (counter >= ONLY_EDIT_COUNTER_MIN) return badFrame("a counter is 2^32 or more: number the edits of a room 1, 2, 3, …");
      if (!rights.write) return [nack(channel, counter, "read-only")];
      if (payload.byteLength > this.#options.limits.editBytesMax) return [nack(channel, counter, "too-large")];
      return [
        {
          kind: "edit",
          room,
          edit: { author: { user: this.#identity.user, client }, counter, ackedThrough, parentSeq, payload: payload.slice() },
        },
      ];
    });
  }

  #admit(room: RoomId): RoomAdmission {
    const { tenant, user } = this.#identity;
    return admit(this.#identity, room, (key) => this.#options.restrictionOn(tenant, user, key));
  }

  /** A frame for a room that the session has left or lost is ignored: the client may not have received LEFT yet. */
  #inRoom({ channel }: { channel: Channel }, receive: (joined: JoinedRoom) => Reply): Reply {
    const joined = joinedOn(this.#rooms, channel);
    if (joined !== undefined) return receive(joined);
    return endedOn(this.#rooms, channel) === undefined ? badFrame("a frame names a channel that is not joined: JOIN the room first") : [];
  }

  /** Undefined: the session neither is in the room nor has asked for it. */
  #takeAway(
    taken: SessionRoom | undefined,
    reason: LeftReason,
    { why, retryAfterMs } = { why: "the right to this room was taken away", retryAfterMs: 0 },
  ): SessionEffect[] {
    if (taken === undefined) return [];
    const { room, request, channel } = taken;
    this.#rooms = withEnded(this.#rooms, room, this.#options.roomsMax);
    const refused = (): SessionEffect =>
      reason === "deleted" ? joinRefused(request, "deleted", ROOM_DELETED) : joinRefused(request, "not-allowed", why, retryAfterMs);
    const answer: SessionEffect = channel === undefined ? refused() : { kind: "send", frame: { type: "left", channel, reason } };
    return [{ kind: "leave", room }, answer];
  }
}
