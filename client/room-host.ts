/**
 * A room as the application holds it, for payloads of any kind: feeds `room-session.ts`, carries out what it
 * decides, and tells what changed as events. `main.ts` makes it `RoomConnection`.
 */

import { assert, assertNever } from "../shared/assert.ts";
import { type ClientId, parseRoomId, type Position, type RoomId, type Seq } from "../shared/ids.ts";
import type { Rights, SavingState, TentativeEdit } from "../shared/wire/frames.ts";
import type { PresenceField } from "../shared/wire/presence.ts";
import { Alarm, earlier } from "./alarm.ts";
import type { LineStatus } from "./connection.ts";
import { ConnectionHost, type Token } from "./connection-host.ts";
import * as defaults from "./defaults.ts";
import { Events } from "./events.ts";
import type { RoomEdit } from "./inbox.ts";
import { Leaderboard } from "./leaderboard.ts";
import type { Participant, PresenceChange } from "./participants.ts";
import type { Clock, World } from "./ports.ts";
import { fieldsOf, type Presence } from "./presence-fields.ts";
import type { Problem, Refusal } from "./problems.ts";
import { type ModeFacts, type PresenceEffect, type PresenceInput, RoomPresence } from "./room-presence.ts";
import { type BoardsEffect, RoomBoards, type WatchInput } from "./room-boards.ts";
import type { RoomEffect, RoomInput } from "./room-messages.ts";
import { RoomSession } from "./room-session.ts";
import { Turns } from "./turns.ts";
import type { EditFormat } from "./unsent.ts";

/** `connection`: one that is shared with other rooms. Else the room has its own, made of url and token. */
export type Reach = { readonly url: string; readonly token: Token; readonly connection?: never } | { readonly connection: ConnectionHost; readonly url?: never; readonly token?: never };

/** How waiting edits are merged, and large ones cut. Without it they are sent as they are. */
export type RoomHostOptions = RoomOptions & { readonly format?: EditFormat };

export type RoomOptions = Reach & {
  readonly room: string;
  /** False: wait for `connect()`. */
  readonly connect?: boolean;
  /** False: each edit is sent by itself, even where several wait. */
  readonly mergeUnsent?: boolean;
  /** Edits sent and not acknowledged yet, at most; WELCOME may ask for fewer. */
  readonly inFlightEditsMax?: number;
};

/** disconnected: not asked to connect. stopped: refused for good. waiting: between two attempts. */
export type Status = LineStatus;

export type RoomEvents = {
  status: [{ status: Status }];
  /** Whether everything up to the head that the server told has been delivered. */
  synced: [boolean];
  /** Whether every edit made here is acknowledged. */
  saved: [boolean];
  /** How the room's log keeps up. */
  saving: [SavingState];
  /** The newest seq delivered. */
  seq: [Seq];
  /** Committed edits, in seq order without a hole; those of one frame together. */
  edits: [readonly RoomEdit[]];
  edit: [RoomEdit];
  /** Edits of others that the log does not hold yet. Each comes again as a committed edit. */
  tentative: [readonly TentativeEdit[]];
  /** Tentative edits that were shown here and never committed, however often they were sent in again: nobody else may have them. Send their payloads, or take them back. */
  unconfirmed: [readonly TentativeEdit[]];
  /** The room's whole state at this position: what was delivered before is part of it. */
  snapshot: [{ readonly position: Position; readonly payload: Uint8Array }];
  /** The server has lost edits that were delivered here. A snapshot or all its edits follow. */
  "rolled-back": [];
  /** Somebody came, went, or is another now: their name, role or rights. */
  participants: [ReadonlyMap<ClientId, Participant>];
  /** Whose presence changed, this client's own too; those who came and went among them. */
  presence: [PresenceChange];
  mode: [ModeFacts];
  refused: [Refusal];
  error: [Problem];
};

export class RoomHost {
  readonly room: RoomId;
  /** What this client shows of itself. A field that is not named stays as it is, one that is null is taken back. */
  readonly presence = { set: (presence: Presence): void => this.show(fieldsOf(presence)) };
  /** Who is most active in the room. */
  readonly leaderboard: Leaderboard;
  readonly #connection: ConnectionHost;
  readonly #ownsConnection: boolean;
  readonly #clock: Clock;
  readonly #session: RoomSession;
  readonly #presence = new RoomPresence(defaults.PRESENCE);
  readonly #boards = new RoomBoards();
  readonly #turns = new Turns<PresenceInput | WatchInput>((input) => this.#take(input));
  readonly #alarm: Alarm;
  readonly #events: Events<RoomEvents>;
  #flushing = false;
  #told: { status: Status; synced: boolean; saved: boolean; saving: SavingState; seq: Seq };

  constructor(options: RoomHostOptions, world: World) {
    const room = parseRoomId(options.room);
    assert(room !== undefined, "a room's id has 1 to 128 characters and no control characters");
    this.room = room;
    this.#clock = world.clock;
    const outbox = { ...defaults.OUTBOX, format: options.format, mergeUnsent: options.mergeUnsent ?? true, inFlightEditsMax: options.inFlightEditsMax ?? defaults.OUTBOX.inFlightEditsMax };
    this.#session = new RoomSession({ ...defaults.ROOM, outbox }, world.chance);
    this.#alarm = new Alarm(world.clock, () => this.receive({ kind: "tick" }));
    this.#events = new Events(world.reportError);
    this.leaderboard = new Leaderboard((board, shown) => this.#turns.receive({ kind: "watch-board", board, shown }), world.reportError);
    this.#ownsConnection = options.connection === undefined;
    this.#connection = options.connection ?? new ConnectionHost(options, world);
    this.#connection.on("status", this.#tellChanges);
    this.#connection.on("refused", this.#tellRefused);
    this.#connection.on("error", this.#tellProblem);
    this.#told = this.#facts();
    if (options.connect ?? true) this.connect();
  }

  get status(): Status {
    const { status } = this.#session;
    if (status === "disconnected" || status === "stopped" || this.#connection.status === "connected") return status;
    return this.#connection.status;
  }

  get synced(): boolean {
    return this.#session.synced;
  }

  get saved(): boolean {
    return this.#session.unsavedEdits === 0;
  }

  get saving(): SavingState {
    return this.#session.saving;
  }

  /** How many edits made here are not acknowledged yet. */
  get unsavedEdits(): number {
    return this.#session.unsavedEdits;
  }

  get seq(): Seq {
    return this.#session.position.seq;
  }

  /** As others see this client. Undefined before the first join. */
  get client(): ClientId | undefined {
    return this.#session.client;
  }

  get rights(): Rights {
    return this.#session.rights;
  }

  /** The largest payload that the server takes, as far as is known. */
  get editBytesMax(): number | undefined {
    return this.#session.editBytesMax;
  }

  /** Who is in the room, this client among them; a view that goes along. */
  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#presence.participants;
  }

  /** Undefined until the server has told it. */
  get mode(): ModeFacts | undefined {
    return this.#presence.mode;
  }

  on<Name extends keyof RoomEvents>(name: Name, listener: (...args: RoomEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  once<Name extends keyof RoomEvents>(name: Name, listener: (...args: RoomEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  off<Name extends keyof RoomEvents>(name: Name, listener: (...args: RoomEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Joins the room and stays in it; after a refusal, or while waiting to try again, tries at once. */
  connect(): void {
    this.receive({ kind: "enter" });
    this.#connection.enter(this);
    this.#connection.connect();
  }

  /** Leaves the room. Edits not sent yet are kept for the next `connect()`. */
  disconnect(): void {
    this.receive({ kind: "leave" });
    this.#connection.leave(this);
    if (this.#ownsConnection) this.#connection.disconnect();
  }

  /** Leaves for good and tells nobody anything any more. */
  destroy(): void {
    this.disconnect();
    this.#connection.off("status", this.#tellChanges);
    this.#connection.off("refused", this.#tellRefused);
    this.#connection.off("error", this.#tellProblem);
    this.#events.clear();
  }

  /** Sends an edit, now or when it can be. The payload is the room's from here on: do not change it. */
  send(payload: Uint8Array): void {
    this.receive({ kind: "edit", payload });
    this.#flushSoon();
  }

  /** For the awareness: fields as they are on the wire. */
  show(fields: readonly PresenceField[]): void {
    this.#turns.receive({ kind: "show", fields });
    this.#flushSoon();
  }

  /** For the connection. */
  receive(input: RoomInput): void {
    this.#turns.receive(input);
  }

  /** What is made at once goes out together. */
  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#clock.soon(() => {
      this.#flushing = false;
      this.receive({ kind: "tick" });
    });
  }

  #take(input: PresenceInput | WatchInput): void {
    const now = this.#clock.now();
    if (input.kind !== "show") for (const effect of this.#boards.receive(input)) this.#carryOut(effect);
    if (input.kind === "watch-board") return;
    if (input.kind !== "show") for (const effect of this.#session.receive(input, now)) this.#carryOut(effect);
    for (const effect of this.#presence.receive(input, now)) this.#carryOut(effect);
    this.#tellChanges();
    if (!this.#flushing) this.#alarm.setFor(earlier(this.#session.dueAt(now), this.#presence.dueAt(now)));
  }

  #carryOut(effect: RoomEffect | PresenceEffect | BoardsEffect): void {
    switch (effect.kind) {
      case "join":
        return this.#connection.join(this, effect.clientKey, effect.position);
      case "send":
        return this.#connection.send(effect.frame);
      case "fetch-snapshot":
        void this.#fetchSnapshot();
        return;
      case "deliver":
        this.#events.emit("edits", effect.edits);
        if (this.#events.has("edit")) for (const edit of effect.edits) this.#events.emit("edit", edit);
        return;
      case "show-tentative":
        return this.#events.emit("tentative", effect.edits);
      case "unconfirmed":
        return this.#events.emit("unconfirmed", effect.edits);
      case "load-snapshot":
        return this.#events.emit("snapshot", { position: effect.position, payload: effect.payload });
      case "log-rolled-back":
        return this.#events.emit("rolled-back");
      case "tell-participants":
        return this.#events.emit("participants", this.participants);
      case "tell-presence":
        return this.#events.emit("presence", effect.change);
      case "tell-mode":
        return this.#events.emit("mode", effect.mode);
      case "tell-board":
        return this.leaderboard.receive(effect.board, effect.facts);
      case "refused":
        if (this.#ownsConnection) this.#connection.disconnect();
        return this.#tellRefused(effect.refusal);
      case "problem":
        return this.#tellProblem(effect.problem);
      default:
        return assertNever(effect);
    }
  }

  async #fetchSnapshot(): Promise<void> {
    this.receive({ kind: "snapshot", answer: await this.#connection.fetchSnapshot(this.room) });
  }

  readonly #tellRefused = (refusal: Refusal): void => this.#events.emit("refused", refusal);
  readonly #tellProblem = (problem: Problem): void => this.#events.emit("error", problem);

  readonly #tellChanges = (): void => {
    const before = this.#told;
    const now = this.#facts();
    this.#told = now;
    if (now.seq !== before.seq) this.#events.emit("seq", now.seq);
    if (now.status !== before.status) this.#events.emit("status", { status: now.status });
    if (now.saving !== before.saving) this.#events.emit("saving", now.saving);
    if (now.synced !== before.synced) this.#events.emit("synced", now.synced);
    if (now.saved !== before.saved) this.#events.emit("saved", now.saved);
  };

  #facts(): { status: Status; synced: boolean; saved: boolean; saving: SavingState; seq: Seq } {
    const { status, synced, saved, saving, seq } = this;
    return { status, synced, saved, saving, seq };
  }
}
