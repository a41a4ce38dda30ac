/**
 * A room as the application holds it, for payloads of any kind: feeds `room-session.ts`, carries out what it
 * decides, and tells what changed as events. `main.ts` makes it `RoomConnection`.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { type ClientId, parseRoomId, type RoomId, type Seq } from "../../shared/ids.ts";
import type { Rights, SavingState } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import { Alarm, earlier } from "../connection/alarm.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import type { Outage } from "../connection/connection-messages.ts";
import * as defaults from "../defaults.ts";
import { assertBytes, assertInFlight, assertOptions, assertReach, assertStore } from "../options.ts";
import { Events } from "../events.ts";
import { Leaderboard } from "../boards/leaderboard.ts";
import type { Participant } from "../presence/participants.ts";
import type { Clock, World } from "../ports.ts";
import { fieldsOf, type Presence } from "../presence/presence-fields.ts";
import { type Problem, type Refusal, storageFailed } from "./problems.ts";
import { type ModeFacts, type PresenceEffect, type PresenceInput, RoomPresence } from "../presence/room-presence.ts";
import { type BoardsEffect, RoomBoards, type WatchInput } from "../boards/room-boards.ts";
import type { RoomEvents, RoomHostOptions, Status } from "./room-events.ts";
import type { RoomEffect, RoomInput } from "./room-messages.ts";
import { RoomNews } from "./room-news.ts";
import { RoomSession } from "./room-session.ts";
import { type RoomStanding, standingOf } from "./room-status.ts";
import { StoreHost } from "../keeping/store-host.ts";
import { Turns } from "../connection/turns.ts";

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
  readonly #turns = new Turns<HostInput>((input) => this.#take(input));
  readonly #alarm: Alarm;
  readonly #events: Events<RoomEvents>;
  readonly #store: StoreHost | undefined;
  /** The newest snapshot's. */
  #download: AbortController | undefined;
  #flushing = false;
  /** Given to `send`, and waiting for their turn. */
  #queuedEdits = 0;
  /** As the application asked last: the session may still have to hear of it. */
  #isWanted = false;
  #isDestroyed = false;
  readonly #news: RoomNews;

  constructor(options: RoomHostOptions, world: World) {
    assertOptions(options, "url, token and room");
    const room = typeof options.room === "string" ? parseRoomId(options.room) : undefined;
    assert(room !== undefined, "`room` must be the room's id: a text of 1 to 128 characters, no control characters among them");
    assertReach(options);
    assertStore(options.store);
    assertInFlight(options.inFlightEditsMax);
    this.room = room;
    this.#clock = world.clock;
    const outbox = {
      ...defaults.OUTBOX,
      format: options.format,
      mergeUnsent: options.mergeUnsent ?? true,
      inFlightEditsMax: options.inFlightEditsMax ?? defaults.OUTBOX.inFlightEditsMax,
    };
    const keeping = { ...defaults.ROOM.keeping, isWanted: options.store !== undefined, keepsDocument: options.format !== undefined };
    this.#session = new RoomSession({ ...defaults.ROOM, outbox, keeping }, world.chance);
    this.#alarm = new Alarm(world.clock, () => this.receive({ kind: "tick" }));
    this.#events = new Events(world.reportError);
    this.leaderboard = new Leaderboard((board, shown) => this.#turns.receive({ kind: "watch-board", board, shown }), world);
    this.#ownsConnection = options.connection === undefined;
    this.#connection = options.connection ?? new ConnectionHost(options, world);
    if (options.connect ?? true) this.#connection.assertFree(this);
    this.#connection.on("status", this.#receiveLineStatus);
    this.#connection.on("refused", this.#tellRefused);
    this.#connection.on("error", this.#tellProblem);
    this.#news = new RoomNews(this, this.#events);
    const stored = { server: this.#connection.server, room, condense: options.format?.condense ?? options.format?.merge };
    this.#store = options.store && new StoreHost(options.store, stored, (input) => this.receive(input));
    if (options.connect ?? true) this.connect();
  }

  get status(): Status {
    return this.#standing.status;
  }

  /** Why there is no connection, or the room is not joined, and when it is tried again; undefined: it does not wait. */
  get outage(): Outage | undefined {
    return this.#standing.outage;
  }

  /** Everything up to the head that the server told on joining has been delivered. */
  get synced(): boolean {
    return this.#session.synced;
  }

  /** Every edit made here is acknowledged, and all that it may build upon: the server's log has it. */
  get saved(): boolean {
    return this.unsavedEdits === 0 && !this.#session.buildsOnTentative;
  }

  /** Every edit made here is acknowledged or kept on this device, and builds upon nothing that may be lost. */
  get stored(): boolean {
    return this.#queuedEdits === 0 && this.#session.stored && !this.#session.buildsOnTentative;
  }

  /** How the room's log keeps up. */
  get saving(): SavingState {
    return this.#session.saving;
  }

  /** How many edits made here are not acknowledged yet. */
  get unsavedEdits(): number {
    return this.#session.unsavedEdits + this.#queuedEdits;
  }

  /** @internal The payloads of edits that are not acknowledged yet, but for those whose turn has still to come. */
  get waiting(): readonly Uint8Array[] {
    return this.#session.waiting;
  }

  /** The newest edit delivered; 0: none yet. */
  get seq(): Seq {
    return this.#session.position.seq;
  }

  /** As others see this client. Undefined before the first join. */
  get client(): ClientId | undefined {
    return this.#session.client;
  }

  /** As the token has them; none before the first join. */
  get rights(): Rights {
    return this.#session.rights;
  }

  /** The largest payload in bytes that the server takes, as far as is known. */
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
    if (this.#isDestroyed) return;
    this.#connection.assertFree(this);
    this.#isWanted = true;
    this.receive({ kind: "enter" });
    this.#connection.enter(this);
    this.#connection.connect();
  }

  /** Leaves the room. Edits not sent yet are kept for the next `connect()`. */
  disconnect(): void {
    this.#isWanted = false;
    this.#connection.leave(this);
    this.receive({ kind: "leave" });
    if (this.#ownsConnection && !this.#isWanted) this.#connection.disconnect(); // Whoever was told may have asked for it again.
  }

  /** Leaves for good and tells nobody anything any more. */
  destroy(): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.leaderboard.end();
    this.disconnect();
    this.#connection.off("status", this.#receiveLineStatus);
    this.#connection.off("refused", this.#tellRefused);
    this.#connection.off("error", this.#tellProblem);
    this.#events.clear();
    this.#store?.leave();
    this.receive({ kind: "tick" }); // Ends it behind what waits its turn, once what was made last is kept.
  }

  /** Sends an edit, now or when it can be. The payload is the room's from here on: do not change it. */
  send(payload: Uint8Array): void {
    assertBytes(payload);
    if (this.#isDestroyed) return;
    this.#queuedEdits += 1;
    this.receive({ kind: "edit", payload });
    this.#flushSoon();
  }

  /** @internal For the awareness: fields as they are on the wire. */
  show(fields: readonly PresenceField[]): void {
    if (this.#isDestroyed) return;
    this.#turns.receive({ kind: "show", fields });
    this.#flushSoon();
  }

  /** @internal For the connection. */
  receive(input: RoomInput): void {
    this.#turns.receive(input);
  }

  get #standing(): RoomStanding {
    return standingOf(this.#session, this.#connection, this.#clock.now());
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

  #take(input: HostInput): void {
    if (input.kind === "line-status") return this.#news.tell();
    if (input.kind === "edit") this.#queuedEdits -= 1;
    const now = this.#clock.now();
    if (input.kind === "leave" || input.kind === "line-lost") this.#download?.abort(); // The next join says what is needed.
    const isRestoring = this.#session.keeping.isOpening;
    if (input.kind !== "show") for (const effect of this.#boards.receive(input)) this.#carryOut(effect);
    if (input.kind === "watch-board") return;
    if (input.kind !== "show") for (const effect of this.#session.receive(input, now)) this.#carryOut(effect);
    for (const effect of this.#presence.receive(input, now)) this.#carryOut(effect);
    if (input.kind === "leave") this.#connection.left(this);
    // Now that it is known what is kept of it.
    if (isRestoring && !this.#session.keeping.isOpening && this.#isWanted) this.#connection.enter(this);
    this.#news.tell();
    if (this.#isDestroyed && this.#queuedEdits === 0 && this.#session.keeping.isDone) return this.#end();
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
      case "restored":
        return this.#events.emit("restored", effect.edits);
      case "keep":
        return this.#store?.keep(effect.write, effect.change);
      case "forget-room":
        return this.#store?.forget((cause) => this.#tellProblem(storageFailed(cause)));
      case "close-store":
        return this.#store?.close();
      case "refused":
        this.#download?.abort();
        if (this.#ownsConnection) this.#connection.disconnect();
        return this.#tellRefused(effect.refusal);
      case "problem":
        return this.#tellProblem(effect.problem);
      default:
        return assertNever(effect);
    }
  }

  #end(): void {
    this.#alarm.setFor(undefined);
    this.#store?.close();
  }

  async #fetchSnapshot(): Promise<void> {
    this.#download?.abort();
    const download = new AbortController();
    this.#download = download;
    const answer = await this.#connection.fetchSnapshot(this.room, download.signal);
    if (!download.signal.aborted) this.receive({ kind: "snapshot", answer });
  }

  readonly #tellRefused = (refusal: Refusal): void => this.#events.emit("refused", refusal);
  readonly #tellProblem = (problem: Problem): void => this.#events.emit("error", problem);

  readonly #receiveLineStatus = (): void => this.#turns.receive({ kind: "line-status" });
}

/** `line-status`: the connection's has changed. */
type HostInput = PresenceInput | WatchInput | { kind: "line-status" };
