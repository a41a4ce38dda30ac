/** The class `RoomConnection`: one room, for payloads of any format. Carries out the effects of `room-session.ts`. */

import { assertNever } from "../../shared/assert.ts";
import type { ClientId, Position, RoomId, Seq } from "../../shared/ids.ts";
import type { Channel, ClientFrame, Rights, SavingState } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import type { Outage, SocketClose } from "../connection/connection-messages.ts";
import { WakeTimer, earlier, Turns } from "../connection/turns.ts";
import * as defaults from "../defaults.ts";
import { Events } from "../events.ts";
import { assertBytes, checkedRoomOf } from "../options.ts";
import type { StoreHost } from "../persistence/store-host.ts";
import type { ClientWorld } from "../ports.ts";
import type { Participant } from "../presence/participants.ts";
import { fieldsOf, type Presence, type PresenceOf } from "../presence/presence-fields.ts";
import { type ModeFacts, type PresenceSessionEffect, type PresenceSessionInput, PresenceSession } from "../presence/room-presence.ts";
import type { Outbox } from "./outbox.ts";
import type { Problem, Refusal } from "./problems.ts";
import type { RoomEvents, RoomConnectionOptions, Status } from "./room-events.ts";
import type { RoomPart, RoomSessionEffect, RoomSessionInput } from "./room-messages.ts";
import { RoomSession } from "./room-session.ts";
import { SnapshotDownload } from "./snapshot-download-host.ts";
import { type ReportedStatus, reportedStatusOf, RoomStatusReporter } from "./room-status.ts";

export class RoomConnection {
  /** Id of the room. */
  readonly room: RoomId;
  /** This client's presence. `set` changes the named fields; null removes a field. Throws for a reserved or invalid name. */
  readonly presence = { set: <Fields extends object>(presence: PresenceOf<Fields>): void => this.show(fieldsOf(presence as Presence)) };
  #connection: ConnectionHost;
  readonly #ownsConnection: boolean;
  readonly #session: RoomSession;
  readonly #presence = new PresenceSession(defaults.PRESENCE);
  readonly #world: ClientWorld;
  readonly #parts = new Map<MakePart<RoomPart>, RoomPart>();
  readonly #turns = new Turns<HostInput>((input) => this.#takeInput(input));
  readonly #alarm: WakeTimer;
  readonly #events: Events<RoomEvents>;
  /** @internal For the provider. */
  readonly store: StoreHost | undefined;
  readonly #download: SnapshotDownload;
  #isFlushing = false;
  /** Edits passed to `send` whose input is still queued. */
  #queuedEdits = 0;
  /** The application's last request; its input may still be queued. */
  #isWanted = false;
  #isDestroyed = false;
  readonly #reporter: RoomStatusReporter;

  constructor(options: RoomConnectionOptions, world: ClientWorld) {
    this.room = checkedRoomOf(options);
    this.#world = world;
    const { format, since, store, mergeUnsent = true, inFlightEditsMax = defaults.OUTBOX.inFlightEditsMax } = options;
    const outbox = { ...defaults.OUTBOX, format, mergeUnsent, inFlightEditsMax };
    const persistence = store && ((edits: Outbox) => store.persistence(edits, format !== undefined));
    this.#session = new RoomSession({ ...defaults.ROOM, outbox, persistence, since }, world.chance);
    this.#download = new SnapshotDownload(this.room, world, (answer) => this.receiveInput({ kind: "snapshot", answer }));
    this.#alarm = new WakeTimer(world.clock, () => this.receiveInput({ kind: "tick" }));
    this.#events = new Events(world.reportError);
    this.#ownsConnection = options.connection === undefined;
    this.#connection = options.connection ?? new ConnectionHost(options, world);
    this.#listen(this.#connection, "on");
    this.#reporter = new RoomStatusReporter(this, this.#events);
    const stored = { server: this.#connection.server, room: this.room, condense: format?.condense ?? format?.merge };
    this.store = store?.host(stored, (input) => this.receiveInput(input), this.#emitProblem);
    if (options.connect ?? true) this.connect();
  }

  /** State of the connection to the room. */
  get status(): Status {
    return this.#reported.status;
  }

  /** Why the room is not joined, and when the next attempt follows. Undefined unless the client waits for an attempt. */
  get outage(): Outage | undefined {
    return this.#reported.outage;
  }

  /** True: everything up to the head at the time of joining has been delivered. */
  get synced(): boolean {
    return this.#session.synced;
  }

  /** True: every edit made here, and everything it may build on, is in the server's log. */
  get saved(): boolean {
    return this.unsavedEdits === 0 && !this.#session.buildsOnTentative;
  }

  /** True: every edit made here is acknowledged or stored on this device, and builds on nothing that may be lost. */
  get stored(): boolean {
    return this.#queuedEdits === 0 && this.#session.stored && !this.#session.buildsOnTentative;
  }

  /** State of the room's log: `saved`, `saving` (slow) or `refusing` (accepts no edits). */
  get saving(): SavingState {
    return this.#session.saving;
  }

  /** Number of edits made here that are not acknowledged yet. */
  get unsavedEdits(): number {
    return this.#session.unsavedEdits + this.#queuedEdits;
  }

  /** @internal For the public classes, which reject late calls. */
  get isDestroyed(): boolean {
    return this.#isDestroyed;
  }

  /** @internal Payloads of unacknowledged edits, except those whose input is still queued. */
  get waiting(): readonly Uint8Array[] {
    return this.#session.waiting;
  }

  /** Seq of the newest delivered edit; 0: none yet. */
  get seq(): Seq {
    return this.#session.position.seq;
  }

  /** Position of the newest delivered edit: its epoch and seq. For the option `since` of a later room. */
  get position(): Position {
    return this.#session.position;
  }

  /** This client's id, as others see it. Undefined before the first join. */
  get client(): ClientId | undefined {
    return this.#session.client;
  }

  /** This client's rights in the room. None before the first join. */
  get rights(): Rights {
    return this.#session.rights;
  }

  /** Maximum payload in bytes that the server accepts, as far as known. */
  get editBytesMax(): number | undefined {
    return this.#session.editBytesMax;
  }

  /** A live map of the participants in the room, including this client. */
  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#presence.participants;
  }

  /** Undefined before the first MODE frame of the server. */
  get mode(): ModeFacts | undefined {
    return this.#presence.mode;
  }

  /** Calls the listener at each event of this name. {@link RoomEvents} lists names and arguments. */
  on<Name extends keyof RoomEvents>(name: Name, listener: (...args: RoomEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  /** Calls the listener at the next event of this name, once. */
  once<Name extends keyof RoomEvents>(name: Name, listener: (...args: RoomEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  /** Removes the listener. Without effect if it was not added. */
  off<Name extends keyof RoomEvents>(name: Name, listener: (...args: RoomEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /**
   * Joins the room and stays in it. After a refusal, or while it waits to reach the server, tries at once. If another
   * member has the room on a shared connection, this one uses an additional connection.
   */
  connect(): void {
    if (this.#isDestroyed) return;
    this.#isWanted = true;
    this.receiveInput({ kind: "enter" });
    this.inTurn(() => this.#takePlace()?.connect());
  }

  /** Leaves the room. Unsent edits are kept for the next `connect()`. */
  disconnect(): void {
    this.#isWanted = false;
    this.#connection.leave(this);
    this.receiveInput({ kind: "leave" });
    // In turn, because edits and LEAVE may still wait. A listener may have called `connect()` again.
    this.inTurn(() => this.#ownsConnection && !this.#isWanted && this.#connection.disconnect());
  }

  /** Leaves permanently. No event is emitted any more. */
  destroy(): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    for (const part of this.#parts.values()) part.end();
    this.disconnect();
    this.#listen(this.#connection, "off");
    this.#events.clear();
    this.store?.leave();
    this.receiveInput({ kind: "tick" }); // Ends the room after all queued inputs, once its last edits are stored.
  }

  /** Sends an edit as soon as possible. `payload`: a Uint8Array, not to be changed afterwards. Throws for anything else. */
  send(payload: Uint8Array): void {
    assertBytes(payload);
    if (this.#isDestroyed) return;
    this.#queuedEdits += 1;
    this.receiveInput({ kind: "edit", payload });
    this.#flushSoon();
  }

  /** @internal For the awareness: encoded fields. */
  show(fields: readonly PresenceField[]): void {
    if (this.#isDestroyed) return;
    this.#turns.add({ kind: "show", fields });
    this.#flushSoon();
  }

  /** @internal For other entry points: the part that `make` returns, made once for the room. */
  part<Part extends RoomPart>(make: MakePart<Part>): Part {
    const channel = this.#session.joinState.joined?.channel;
    const part = this.#parts.get(make) ?? make(this, this.#world, { connection: this.#connection, channel });
    this.#parts.set(make, part);
    if (this.#isDestroyed) part.end();
    return part as Part;
  }

  /** @internal For parts: runs after the inputs that wait. */
  inTurn(run: () => void): void {
    this.#turns.add({ kind: "run", run });
  }

  /** @internal For parts: call it in turn only, because the room may lose its channel. */
  sendFrame(frame: ClientFrame): void {
    this.#connection.send(frame);
  }

  /** @internal Input of the connection and of the store. */
  receiveInput(input: RoomSessionInput): void {
    this.#turns.add(input);
  }

  get #reported(): ReportedStatus {
    return reportedStatusOf(this.#session.joinState, this.#connection, this.#world.clock.now());
  }

  /** Edits made in one task are sent together. */
  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#world.clock.soon(() => {
      this.#isFlushing = false;
      this.receiveInput({ kind: "tick" });
    });
  }

  #takeInput(input: HostInput): void {
    if (input.kind === "run") return input.run();
    if (input.kind === "edit") this.#queuedEdits -= 1;
    const now = this.#world.clock.now();
    if (input.kind === "leave" || input.kind === "connection-lost") this.#download.abort(); // The next join shows what is needed.
    const isRestoring = this.#session.keeping?.isOpening;
    if (input.kind !== "show") {
      for (const part of this.#parts.values()) part.receiveInput?.(input);
      for (const effect of this.#session.receiveInput(input, now)) this.#carryOut(effect);
    }
    for (const effect of this.#presence.receiveInput(input, now)) this.#carryOut(effect);
    if (input.kind === "leave") this.#connection.left(this);
    // The stored content is known now, so the room can be joined.
    if (isRestoring === true && !this.#session.keeping?.isOpening && this.#isWanted) this.#takePlace();
    this.#reporter.report();
    if (this.#isDestroyed && this.#queuedEdits === 0 && this.#session.keeping?.isDone !== false) {
      this.#alarm.setFor(undefined);
      return this.store?.close();
    }
    if (!this.#isFlushing) this.#alarm.setFor(earlier(this.#session.dueAt(now), this.#presence.dueAt(now)));
  }

  #carryOut(effect: RoomSessionEffect | PresenceSessionEffect): void {
    switch (effect.kind) {
      case "join":
        return this.#connection.join(this, effect.clientKey, effect.position);
      case "send":
        for (const part of this.#parts.values()) part.receiveSent?.(effect.frame);
        return this.#connection.send(effect.frame);
      case "fetch-snapshot":
        return this.#download.begin(this.#connection);
      case "deliver":
        this.#events.emit("edits", effect.edits);
        if (this.#events.has("edit")) for (const edit of effect.edits) this.#events.emit("edit", edit);
        return;
      case "show-tentative":
        return this.#events.emit("tentative", effect.edits);
      case "unconfirmed":
        return this.#events.emit("unconfirmed", effect.edits);
      case "load-snapshot":
        return this.#events.emit("snapshot", { position: effect.position, last: effect.last, payload: effect.payload });
      case "log-rolled-back":
        return this.#events.emit("rolled-back");
      case "emit-participants":
        return this.#events.emit("participants", this.participants);
      case "emit-presence":
        return this.#events.emit("presence", effect.change);
      case "emit-mode":
        return this.#events.emit("mode", effect.mode);
      case "restored":
        return this.#events.emit("restored", effect.edits);
      case "keep":
        return this.store?.keep(effect.write, effect.change);
      case "forget-room":
        return this.store?.forget();
      case "close-store":
        return this.store?.close();
      case "refused":
        this.#download.abort();
        if (this.#ownsConnection) this.#connection.disconnect();
        return this.#emitRefused(effect.refusal);
      case "problem":
        return this.#emitProblem(effect.problem);
      default:
        return assertNever(effect);
    }
  }

  /** Runs after the frames of an earlier stay in the room, which belong to the connection of that stay. */
  #takePlace(): ConnectionHost | undefined {
    if (!this.#isWanted) return undefined;
    const connection = this.#connection.connectionFor(this);
    if (connection !== this.#connection) {
      this.#listen(this.#connection, "off");
      this.#listen(connection, "on");
      this.#connection = connection;
    }
    connection.enter(this);
    return connection;
  }

  #listen(connection: ConnectionHost, change: "on" | "off"): void {
    connection[change]("status", this.#receiveConnectionStatus);
    connection[change]("refused", this.#emitRefused);
    connection[change]("error", this.#emitProblem);
    connection[change]("close", this.#emitClose);
  }

  readonly #emitRefused = (refusal: Refusal): void => this.#events.emit("refused", refusal);
  readonly #emitClose = (close: SocketClose | null): void => this.#events.emit("connection-close", close);
  readonly #emitProblem = (problem: Problem): void => this.#events.emit("error", problem);
  readonly #receiveConnectionStatus = (): void => this.inTurn(() => this.#reporter.report());
}

type HostInput = PresenceSessionInput | { kind: "run"; run: () => void };
/** `connection`: one of the room's server, with its token. `channel`: set if the room is joined already. */
export type RoomLink = { readonly connection: ConnectionHost; readonly channel: Channel | undefined };
export type MakePart<Part> = (room: RoomConnection, world: ClientWorld, link: RoomLink) => Part;
