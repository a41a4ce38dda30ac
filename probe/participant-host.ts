/**
 * A participant with the SDK, as any application has it: its own line, tokens, reconnects. Between it and the socket
 * stands a look at what goes over the line, and at how lines come about.
 *
 * Of several addresses it takes the next where one gives it no line, as a balancer would. Rules PPA1 and PPA2.
 */

import { type Address, addressOf, snapshotUrl } from "../client/connection/address.ts";
import type { OpenSocket, SocketListener, World } from "../client/ports.ts";
import { RoomHost } from "../client/room/room-host.ts";
import { assert } from "../shared/assert.ts";
import type { Clock } from "../shared/clock.ts";
import type { ClientId, Millis } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { FrameType } from "../shared/wire/frames.ts";
import type { Point } from "../shared/wire/positions.ts";
import type { Finding } from "./findings.ts";
import { LineWatch } from "./line-watch.ts";
import { SIDE } from "./pointer-ledger.ts";
import type { Participant, ParticipantListener } from "./ports.ts";

export type ParticipantOptions = {
  readonly room: string;
  readonly gateways: readonly string[];
  /** Which of them it comes to first. */
  readonly first: number;
  readonly token: () => Promise<string>;
  readonly seesPresence: boolean;
};
export type ParticipantDeps = {
  readonly clock: Clock;
  readonly world: Omit<World, "reportError">;
  readonly log: Log;
  readonly record: (finding: Finding) => void;
};

/** As the network would say it. */
const BROKEN = 1006;

export class ParticipantHost implements Participant {
  readonly #options: ParticipantOptions;
  readonly #deps: ParticipantDeps;
  readonly #listener: ParticipantListener;
  readonly #addresses: readonly Address[];
  readonly #room: RoomHost;
  #address: number;
  /** That are asked for, or stand. */
  #lines = 0;
  #cutLine: () => void = () => {};
  #isHere = false;
  /** When it was in the room last; undefined: it never was, or is. */
  #wentAt: Millis | undefined;
  #isRefused = false;

  constructor(options: ParticipantOptions, listener: ParticipantListener, deps: ParticipantDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#listener = listener;
    this.#addresses = options.gateways.map(addressOf);
    this.#address = options.first % this.#addresses.length;
    const { world, log } = deps;
    this.#room = new RoomHost(
      { url: options.gateways[this.#address]!, room: options.room, token: options.token, mergeUnsent: false, connect: false },
      {
        ...world,
        openSocket: this.#openSocket,
        fetchSnapshot: (_, token, signal) => world.fetchSnapshot(snapshotUrl(this.#here, options.room), token, signal),
        reportError: (error) => log.error({ cause: error }, "a probe could not count what it saw"),
      },
    );
    this.#listen();
    this.#room.connect();
  }

  get client(): ClientId | undefined {
    return this.#room.client;
  }

  get unsavedEdits(): number {
    return this.#room.unsavedEdits;
  }

  send(payload: Uint8Array): void {
    this.#room.send(payload);
  }

  pointAt(cursor: Point): void {
    this.#room.presence.set({ cursor, viewport: { x: 0, y: 0, width: SIDE, height: SIDE } });
  }

  cut(): void {
    this.#cutLine();
  }

  comeBack(): void {
    if (!this.#isRefused) return;
    this.#isRefused = false;
    this.#room.connect();
  }

  leave(): void {
    this.#room.destroy();
  }

  get #here(): Address {
    const address = this.#addresses[this.#address];
    assert(address !== undefined, "a probe has at least one gateway");
    return address;
  }

  #listen(): void {
    const room = this.#room;
    const look = (): void => this.#receiveIsHere(room.status === "connected" && room.synced);
    room.on("status", look);
    room.on("synced", look);
    room.on("edits", (edits) => this.#listener.delivered(edits));
    room.on("snapshot", ({ position }) => this.#listener.snapshot(position.seq));
    room.on("rolled-back", () => this.#listener.rolledBack());
    room.on("presence", ({ entered, changed }) => {
      for (const client of [...entered, ...changed]) {
        const cursor = client === room.client ? undefined : room.participants.get(client)?.cursor;
        if (cursor !== undefined) this.#listener.pointed(client, cursor);
      }
    });
    room.on("error", (problem) => {
      const facts = { room: room.room, kind: problem.kind, ...("cause" in problem ? { cause: problem.cause } : {}) };
      this.#deps.log.warn(facts, `a probe was told: ${problem.message}`);
    });
    room.on("refused", ({ kind, message }) => {
      this.#isRefused = true;
      this.#deps.record({ kind: "refused" });
      this.#deps.log.error({ room: room.room, kind }, `a probe is refused: ${message}`);
    });
  }

  #receiveIsHere(isHere: boolean): void {
    if (isHere === this.#isHere) return;
    this.#isHere = isHere;
    const now = this.#deps.clock.now();
    if (!isHere) {
      this.#wentAt = now;
      return this.#listener.went();
    }
    if (this.#wentAt !== undefined) this.#deps.record({ kind: "returned", ms: now - this.#wentAt });
    this.#wentAt = undefined;
    this.#listener.came();
  }

  readonly #openSocket: OpenSocket = (_, listener) => {
    const { clock, world } = this.#deps;
    if (this.#lines > 0) this.#takeNextAddress(); // One stands, whose gateway goes away: a balancer gives another no line there.
    const watch = new LineWatch(clock.now());
    const watched = this.#watched(watch, listener);
    const socket = world.openSocket(this.#here.socket, watched);
    this.#lines += 1;
    this.#cutLine = () => {
      this.#cutLine = () => {};
      socket.close();
      watched.closed(BROKEN);
    };
    return {
      send: (bytes) => {
        this.#record(watch.receiveSent(bytes, clock.now()));
        socket.send(bytes);
      },
      close: () => {
        socket.close();
        this.#receiveEnd(watch, BROKEN); // Where it did not come about in time, nobody else tells.
      },
    };
  };

  #watched(watch: LineWatch, listener: SocketListener): SocketListener {
    const { clock } = this.#deps;
    const { seesPresence } = this.#options;
    return {
      opened: () => {
        watch.receiveOpened();
        listener.opened();
      },
      received: (bytes) => {
        this.#record(watch.receiveReceived(bytes, clock.now()));
        if (seesPresence || bytes[0] !== FrameType["presence-news"]) listener.received(bytes);
      },
      closed: (code, why) => {
        this.#receiveEnd(watch, code);
        listener.closed(code, why);
      },
    };
  }

  #receiveEnd(watch: LineWatch, code: number): void {
    if (watch.isClosed) return;
    this.#lines -= 1;
    const findings = watch.receiveClosed(code);
    if (findings.length > 0) this.#takeNextAddress();
    this.#record(findings);
  }

  #takeNextAddress(): void {
    this.#address = (this.#address + 1) % this.#addresses.length;
  }

  #record(findings: readonly Finding[]): void {
    for (const finding of findings) this.#deps.record(finding);
  }
}
