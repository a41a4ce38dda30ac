/** One user's tab: the real client on a simulated socket, a user who types, and the state that the judge checks. */

import type { Socket, SocketListener, ClientWorld } from "../../client/ports.ts";
import { DeviceStore } from "../../client/persistence/device-store.ts";
import { ConnectionHost } from "../../client/connection/connection-host.ts";
import { RoomConnection } from "../../client/room/room-connection-host.ts";
import { type ClientKey, type RoomId, roomKey, type RoomKey, type TenantId } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { Device } from "./device.ts";
import { type Internet, TabSnapshots } from "./tab-snapshots.ts";
import { COME_BACK_MS, isForATime, isPassing } from "./kicked.ts";
import type { CheckedTab } from "./judge.ts";
import { beginsWith } from "./lost-ends.ts";
import { concatenated, keystroke, keystrokeEdits, keystrokesIn, pastedText } from "./keystrokes.ts";
import type { SimProcess } from "./sim-process.ts";
import type { SimConnection } from "./sim-sockets.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import type { World } from "./world.ts";
import { SteadyTime } from "../../client/io/system.ts";

/** A page that several rooms share, each with a tab of its own. */
type Page = { readonly process: SimProcess; readonly user: string; readonly host: ConnectionHost; readonly first: Tab };
type TabOptions = {
  /** Keeps the tab's unsaved edits. Undefined: nothing is kept. */
  readonly device?: Device | undefined;
  /** Another room may open on the tab's connection. */
  readonly sharesConnection?: boolean;
  /** The tab has its room on this page's connection. */
  readonly page?: Page | undefined;
};

export class Tab implements CheckedTab {
  readonly name: string;
  readonly author: number;
  readonly room: RoomKey;
  readonly process: SimProcess;
  readonly #world: World;
  readonly #internet: Internet;
  readonly #snapshots: TabSnapshots;
  readonly page: Page | undefined;
  readonly #prng: Prng;
  readonly #roomId: RoomId;
  readonly #mergeUnsent: boolean;
  #host: RoomConnection;
  #connection: SimConnection | undefined;
  #keys = 0;
  #deliveredSeq = 0;
  content: Uint8Array = new Uint8Array(0);
  typed = 0;
  #shows: { typed: number; tool: string | null } = { typed: 0, tool: "pen" };
  isOffline = false;
  #isToldDeleted = false;
  /** Edits that were shown as tentative, and not reported as unconfirmed. */
  #tentative: TentativeEdit[] = [];
  readonly device: Device | undefined;
  readonly #store: ReturnType<Device["storeOf"]> | undefined;

  constructor(world: World, internet: Internet, author: number, roomId: RoomId, { device, sharesConnection, page }: TabOptions) {
    this.name = `tab-${author}`;
    this.author = author;
    this.room = roomKey("acme" as TenantId, roomId);
    this.process = page?.process ?? world.process(this.name);
    this.#world = world;
    this.#internet = internet;
    this.#prng = world.chance(this.name);
    this.#snapshots = new TabSnapshots(world, internet, { process: this.process, prng: this.#prng });
    this.#roomId = roomId;
    this.#mergeUnsent = this.#prng.chance(0.5);
    this.device = device;
    this.#store = device?.storeOf(this.process);
    this.page = page ?? (sharesConnection === true ? this.#newPage() : undefined);
    this.#host = this.#open();
    world.judge.receiveTab(author, this.user);
  }

  get unsaved(): number {
    return this.#host.unsavedEdits;
  }

  /** State of the log, as the room announced it. */
  get saving(): RoomConnection["saving"] {
    return this.#host.saving;
  }

  showsTentative(author: number, index: number): boolean {
    return this.#tentative.some(({ payload }) => keystrokesIn(payload).some((one) => one.author === author && one.index === index));
  }

  get isConnected(): boolean {
    return this.#host.status === "connected";
  }

  get isSynced(): boolean {
    return this.#host.synced;
  }

  /** The last seq that the tab received. */
  get position(): number {
    return this.#deliveredSeq;
  }

  get connection(): SimConnection | undefined {
    return this.isGuest ? this.page!.first.connection : this.#connection?.isOpen === true ? this.#connection : undefined;
  }

  /** The tab knows that its room is deleted. From then on it saves nothing and shows nothing as saved. */
  get isToldDeleted(): boolean {
    return this.#isToldDeleted;
  }

  /** Whether the tab received the log up to its last edit, and has saved its own ones. Does not compare their bytes. */
  get isAtHead(): boolean {
    if (this.isBanned) return this.connection === undefined;
    const room = this.#world.judge.room(this.room);
    if (room.isDeleted) return this.#isToldDeleted;
    for (const [author, typed] of this.device?.promised ?? []) if (room.accountedFor(author) < typed) return false;
    return (
      this.#host.status === "connected" &&
      this.#host.synced &&
      this.#host.rights.write &&
      this.#host.saved &&
      this.#host.saving === "saved" &&
      this.#deliveredSeq === room.head &&
      room.accountedFor(this.author) === this.typed &&
      this.#isEveryTentativeSettled
    );
  }

  /** Whether each tentative edit is in the log by now, or was reported as unconfirmed. */
  get #isEveryTentativeSettled(): boolean {
    return this.#tentative.every(({ payload }) => this.#world.judge.isAccountedFor(this.room, payload));
  }

  get state(): string {
    const { head, logged, order, lost, isDeleted } = this.#world.judge.room(this.room);
    const { status, synced, unsavedEdits, saving } = this.#host;
    const inLog = (author: number): number => logged.get(author) ?? 0;
    const room = isDeleted ? ` in a deleted room${this.#isToldDeleted ? "" : " that it takes for a living one"}` : "";
    const strange = beginsWith(order, this.content) ? "" : ", with edits that the log does not have";
    const kept = [...(this.device?.promised ?? [])].map(([author, typed]) => `kept of tab-${author} ${typed}, in the log ${inLog(author)}`);
    return [
      `${this.name} ${status}${room}`,
      synced ? "synced" : "not synced",
      saving,
      `at ${this.#deliveredSeq} of ${head}${strange}`,
      `typed ${this.typed}`,
      `unsaved ${unsavedEdits}`,
      `in the log ${inLog(this.author)}${lost.hasAny ? ", which has lost its end" : ""}`,
      ...(this.#isEveryTentativeSettled ? [] : ["shows tentative edits that the log does not have"]),
      ...kept,
    ].join(", ");
  }

  /** A gateway knows a ban of this tab's user. */
  get isBanned(): boolean {
    return this.#world.bans?.holds(this.user) === true;
  }

  /** Describes a difference between the presence that the tab received and the true presence. Undefined: no difference. */
  wrongAbout(tabs: readonly Tab[]): string | undefined {
    if (this.#world.judge.room(this.room).isDeleted || this.isBanned) return undefined;
    const described = (of: readonly (readonly [string, unknown])[]): string =>
      JSON.stringify(of.map(([name, fields]) => `${name} ${JSON.stringify(fields)}`).sort());
    const received = described(
      [...this.#host.participants.values()].map(
        ({ name, fields }) => [name, { typed: fields["typed"], tool: fields["tool"] ?? null }] as const,
      ),
    );
    const truth = described(
      tabs.filter(({ room, isBanned }) => room === this.room && !isBanned).map(({ user, shows }) => [user, shows] as const),
    );
    return received === truth ? undefined : `${this.name} received ${received}, but the room has ${truth}`;
  }

  get user(): string {
    return this.page?.user ?? this.device?.user ?? `user-${this.author}`;
  }

  get shows(): object {
    return this.#shows;
  }

  type(): void {
    this.#send(() => keystroke({ author: this.author, index: this.typed }));
  }

  /** `groups`: length of the text. */
  paste(groups: number): void {
    this.#send(() => {
      const text = pastedText({ author: this.author, index: this.typed }, groups);
      this.#world.judge.receivePasted(text);
      return text;
    });
  }

  #send(edit: () => Uint8Array): void {
    if (this.#isToldDeleted) return;
    this.process.run(() => {
      this.#host.send(edit());
      this.typed += 1;
      this.#shows = { typed: this.typed, tool: this.#prng.chance(0.3) ? null : "pen" };
      this.#host.presence.set(this.#shows);
    });
  }

  leave(): void {
    this.process.run(() => this.#host.disconnect());
  }

  comeBack(): void {
    this.process.run(() => this.#host.connect());
  }

  /** Another tab opened the page. */
  get isGuest(): boolean {
    return this.page !== undefined && this.page.first !== this;
  }

  #token(): string | (() => Promise<string>) {
    return this.#world.tokens?.fetchFor(this.user, this.process) ?? this.user;
  }

  #newPage(): Page {
    const options = { url: "ws://sim", token: this.#token() };
    return { process: this.process, user: this.user, host: new ConnectionHost(options, this.#clientWorld()), first: this };
  }

  /** Closes the tab. Its unsaved edits are lost, except those that its device keeps. */
  close(): void {
    if (this.isGuest) return this.process.run(() => this.#host.destroy());
    if (this.device !== undefined && this.#host.stored) this.device.promised.set(this.author, this.typed);
    this.process.die();
    this.#store?.die();
    this.#connection?.break();
  }

  #open(): RoomConnection {
    const host = new RoomConnection(
      {
        ...(this.page === undefined ? { url: "ws://sim", token: this.#token() } : { connection: this.page.host }),
        room: this.#roomId,
        format: keystrokeEdits,
        mergeUnsent: this.#mergeUnsent,
        ...(this.#store === undefined ? {} : { store: new DeviceStore(this.#store) }),
      },
      this.#clientWorld(),
    );
    const { judge, trace } = this.#world;
    host.presence.set(this.#shows);
    host.on("edits", (edits) => {
      judge.receiveDelivered(this, this.#deliveredSeq, edits);
      this.#deliveredSeq = edits.at(-1)!.seq;
      this.content = concatenated([this.content, ...edits.map(({ payload }) => payload)]);
      trace.note(`${this.name} is given seq ${edits[0]!.seq} to ${this.#deliveredSeq}`, this.room);
    });
    host.on("tentative", (edits) => {
      judge.receiveTentative(this, edits);
      this.#tentative.push(...edits);
    });
    host.on("unconfirmed", (edits) => {
      const isUnconfirmed = ({ client, counter }: TentativeEdit): boolean =>
        edits.some((edit) => edit.client === client && edit.counter === counter);
      this.#tentative = this.#tentative.filter((edit) => !isUnconfirmed(edit));
      trace.note(`${this.name} receives that ${edits.length} edits are unconfirmed`, this.room);
    });
    host.on("snapshot", ({ position, payload }) => {
      judge.receiveSnapshot(this, this.#deliveredSeq, position.seq);
      this.#deliveredSeq = position.seq;
      this.content = payload ?? new Uint8Array(0);
      trace.note(`${this.name} begins at a snapshot at seq ${position.seq}`, this.room);
    });
    let isUnproven = false; // Kept edits are of this log, but this cannot be proved after a trim.
    host.on("restored", () => (isUnproven = true));
    host.on("edits", () => (isUnproven = false));
    host.on("rolled-back", () => {
      if (!isUnproven) judge.receiveRolledBack(this);
      isUnproven = false;
      this.#deliveredSeq = 0;
      this.content = new Uint8Array(0);
      trace.note(`${this.name} received that the log was rolled back`, this.room);
    });
    host.on("refused", (refusal) => {
      if (isForATime(refusal, this.user, this.#world)) {
        trace.note(`${this.name} may not be in the room for a time`, this.room);
        return void this.process.clock.after(COME_BACK_MS, () => this.comeBack());
      }
      if (refusal.kind !== "room-refused" || refusal.reason !== "deleted")
        return judge.fail(`${this.name} is refused for good: ${refusal.kind}: ${refusal.message}`, this.room);
      judge.receiveToldDeleted(this);
      this.#isToldDeleted = true;
      trace.note(`${this.name} received that the room is deleted`, this.room);
    });
    host.on("error", ({ kind, message }) => {
      if (!isPassing(kind, this.user, this.#world)) judge.fail(`${this.name} meets a problem: ${kind}: ${message}`, this.room);
    });
    host.on("status", ({ status }) => {
      trace.note(`${this.name} is ${status}`, this.room);
      if (status === "connected" && this.#world.bans?.isKnownEverywhere(this.user) === true)
        judge.fail(`${this.name} is admitted, and all gateways know the ban of its user`, this.room);
      if (this.#world.planted?.tabForgets?.(status) === true) this.process.clock.after(0, () => this.#forgetOutbox(host));
    });
    host.on("saving", (saving) => trace.note(`${this.name} shows "${saving}"`, this.room));
    return host;
  }

  /** Effect of a planted bug: drops the unsaved edits, and joins the room as a new client. */
  #forgetOutbox(host: RoomConnection): void {
    if (host !== this.#host) return;
    host.destroy();
    this.#deliveredSeq = 0;
    this.content = new Uint8Array(0);
    this.#host = this.#open();
  }

  #clientWorld(): ClientWorld {
    const { clock } = this.process;
    const time = new SteadyTime();
    return {
      clock: { now: () => time.at(clock.wallNow()), after: clock.after, soon: (run) => void clock.after(0, run) },
      chance: {
        unit: () => this.#prng.unit() ** this.#world.size.patience,
        clientKey: () => `${this.name}-key-${++this.#keys}` as ClientKey,
      },
      openSocket: (_, listener) => this.#openSocket(listener),
      fetchSnapshot: (url) => this.#snapshots.fetch(url, this.isOffline),
      reportError: (error) => this.#world.judge.fail(`${this.name} throws: ${String(error)}`, this.room),
    };
  }

  /** Connects to a random gateway. If it does not accept, the socket closes. */
  #openSocket(listener: SocketListener): Socket {
    let connection: SimConnection | undefined;
    let closed = false;
    this.process.clock.after(this.#world.latencyMs(), () => {
      if (closed) return;
      const listeners = this.#internet.listeners();
      connection = this.isOffline ? undefined : listeners[this.#prng.below(listeners.length)]?.connect(this.process, listener);
      this.#connection = connection;
      if (connection === undefined) listener.closed(1006);
    });
    return {
      send: (bytes) => connection?.send(bytes),
      close: () => {
        closed = true;
        connection?.close();
      },
    };
  }
}
