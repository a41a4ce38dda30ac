/**
 * The way of records and outcomes into the rooms of a pass, and of the rooms' effects out of it. A room is made with its
 * first record; until new activities are sure to get numbers above what the room has counted, it waits.
 */

import { isDeletedRecord } from "../../shared/bus/record.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import { ActivitiesEnd, type ActivitiesEndEffect } from "./activities-end.ts";
import { BoardRoom, type BoardRoomOptions } from "./board-room.ts";
import type { BoardRoomInput } from "./board-room-messages.ts";
import type { Source } from "./instants.ts";
import type { PassEffect } from "./pass-messages.ts";
import type { PassRooms } from "./pass-rooms.ts";
import { decodeReceived } from "./received.ts";

/** What the pass does with what its rooms say. */
export type RoomFeedPass = {
  readonly effect: (effect: PassEffect) => void;
  readonly fail: (message: string) => void;
  readonly setAside: (room: RoomKey, cause: unknown) => void;
  /** The room received an outcome. */
  readonly settle: (room: BoardRoom) => void;
  readonly isOver: () => boolean;
};

export class RoomFeed {
  readonly activitiesEnd = new ActivitiesEnd<BoardRoom>();
  /** Of the input that the pass receives. */
  now = 0 as Millis;
  readonly #rooms: PassRooms;
  readonly #options: BoardRoomOptions;
  readonly #pass: RoomFeedPass;

  constructor(rooms: PassRooms, options: BoardRoomOptions, pass: RoomFeedPass) {
    this.#rooms = rooms;
    this.#options = options;
    this.#pass = pass;
  }

  newRoom(key: RoomKey): BoardRoom {
    return new BoardRoom(key, this.#options);
  }

  receiveRecord(source: Source, stored: StoredRecord): void {
    const { room, streamSeq, bytes } = stored;
    if (source === "edits" && isDeletedRecord(bytes)) return this.feed(this.#room(room), { kind: "deleted", streamSeq });
    const decoded = decodeReceived(source, stored);
    if (decoded.kind === "unreadable") this.#pass.effect({ kind: "record-undecodable", source, stored });
    if (decoded.kind !== "received") return;
    this.#rooms.receiveEntries(decoded.received.entries);
    this.feed(this.#room(room), { kind: "received", received: decoded.received });
  }

  feed(room: BoardRoom, input: BoardRoomInput): void {
    for (const effect of room.receive(input, this.now)) {
      switch (effect.kind) {
        case "confirm-activities":
          if (!this.#pass.isOver()) this.confirmActivities(this.activitiesEnd.confirm(room, effect.counted));
          break;
        case "set-aside":
          this.#pass.setAside(room.key, effect.cause);
          break;
        case "fail":
          this.#pass.fail(effect.message);
          break;
        case "counted":
        case "edits-missing":
          this.#pass.effect({ ...effect, room: room.key });
          break;
        case "boards-removed":
          this.#pass.effect(effect);
          break;
        default:
          this.#pass.effect({ kind: "room", room, request: effect });
      }
    }
    this.#rooms.settle(room);
  }

  confirmActivities(effects: readonly ActivitiesEndEffect<BoardRoom>[]): void {
    for (const effect of effects) {
      if (effect.kind !== "confirmed") {
        this.#pass.effect(effect);
        continue;
      }
      this.feed(effect.waiter, { kind: "activities-confirmed" });
      this.#pass.settle(effect.waiter);
    }
  }

  #room(key: RoomKey): BoardRoom {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const room = this.newRoom(key);
    this.#rooms.add(room);
    this.feed(room, { kind: "open" });
    return room;
  }
}
