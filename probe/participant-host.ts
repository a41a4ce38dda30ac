/**
 * A participant that uses the SDK like any application, with its own connection, tokens and reconnects. It observes the
 * frames on the socket and the attempts to connect. If an address does not connect, it uses the next one, like a load
 * balancer. Rules PPA1 and PPA2.
 */

import { assert } from "../shared/assert.ts";
import type { ClientId, Millis } from "../shared/ids.ts";
import type { Log } from "../shared/process/log.ts";
import type { Clock } from "../shared/time/clock.ts";
import { FrameType } from "../shared/wire/frames.ts";
import type { Point } from "../shared/wire/positions.ts";
import { type ServerAddress, serverAddressOf, snapshotUrl } from "../client/options.ts";
import type { OpenSocket, SocketListener, ClientWorld } from "../client/ports.ts";
import { RoomConnection } from "../client/room/room-connection-host.ts";
import { ConnectionWatch } from "./connection-watch.ts";
import type { Finding } from "./findings.ts";
import { SIDE } from "./pointer-ledger.ts";
import type { ProbeParticipant, ParticipantListener } from "./ports.ts";

type ParticipantOptions = {
  readonly room: string;
  readonly gateways: readonly string[];
  /** Index of the gateway that it tries first. */
  readonly first: number;
  readonly token: () => Promise<string>;
  readonly seesPresence: boolean;
};
type ParticipantDeps = {
  readonly clock: Clock;
  readonly world: Omit<ClientWorld, "reportError">;
  readonly log: Log;
  readonly record: (finding: Finding) => void;
};

/** The close code that a broken network causes. */
const BROKEN = 1006;

export class ParticipantHost implements ProbeParticipant {
  readonly #options: ParticipantOptions;
  readonly #deps: ParticipantDeps;
  readonly #listener: ParticipantListener;
  readonly #addresses: readonly ServerAddress[];
  readonly #room: RoomConnection;
  #addressIndex: number;
  /** Number of connections, attempts included. */
  #connectionCount = 0;
  #cutConnection: () => void = () => {};
  #isHere = false;
  /** The time at which it was last in the room. Undefined: it never was, or is now. */
  #wentAt: Millis | undefined;
  #isRefused = false;

  constructor(options: ParticipantOptions, listener: ParticipantListener, deps: ParticipantDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#listener = listener;
    this.#addresses = options.gateways.map(serverAddressOf);
    this.#addressIndex = options.first % this.#addresses.length;
    const { world, log } = deps;
    this.#room = new RoomConnection(
      { url: options.gateways[this.#addressIndex]!, room: options.room, token: options.token, mergeUnsent: false, connect: false },
      {
        ...world,
        openSocket: this.#openSocket,
        fetchSnapshot: (_, token, signal) => world.fetchSnapshot(snapshotUrl(this.#address, options.room), token, signal),
        reportError: (error) => log.error({ cause: error }, "a probe cannot measure what it received"),
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
    this.#cutConnection();
  }

  comeBack(): void {
    if (!this.#isRefused) return;
    this.#isRefused = false;
    this.#room.connect();
  }

  leave(): void {
    this.#room.destroy();
  }

  get #address(): ServerAddress {
    const address = this.#addresses[this.#addressIndex];
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
      this.#deps.log.warn(facts, `a probe has a problem: ${problem.message}`);
    });
    room.on("refused", ({ kind, message }) => {
      this.#isRefused = true;
      this.#deps.record({ kind: "refused" });
      this.#deps.log.error({ room: room.room, kind }, `a probe was rejected: ${message}`);
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
    // The connection to a closing gateway may still be open, but a load balancer opens no new connections to it.
    if (this.#connectionCount > 0) this.#takeNextAddress();
    const watch = new ConnectionWatch(clock.now());
    const watched = this.#watched(watch, listener);
    const socket = world.openSocket(this.#address.socket, watched);
    this.#connectionCount += 1;
    this.#cutConnection = () => {
      this.#cutConnection = () => {};
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
        this.#receiveEnd(watch, BROKEN); // No other event reports an attempt that timed out.
      },
    };
  };

  #watched(watch: ConnectionWatch, listener: SocketListener): SocketListener {
    const { clock } = this.#deps;
    const { seesPresence } = this.#options;
    return {
      opened: () => {
        watch.receiveOpened();
        listener.opened();
      },
      received: (bytes) => {
        this.#record(watch.receiveReceived(bytes, clock.now()));
        if (seesPresence || bytes[0] !== FrameType["presence-delta"]) listener.received(bytes);
      },
      closed: (code, why) => {
        this.#receiveEnd(watch, code);
        listener.closed(code, why);
      },
    };
  }

  #receiveEnd(watch: ConnectionWatch, code: number): void {
    if (watch.isClosed) return;
    this.#connectionCount -= 1;
    const findings = watch.receiveClosed(code);
    if (findings.length > 0) this.#takeNextAddress();
    this.#record(findings);
  }

  #takeNextAddress(): void {
    this.#addressIndex = (this.#addressIndex + 1) % this.#addresses.length;
  }

  #record(findings: readonly Finding[]): void {
    for (const finding of findings) this.#deps.record(finding);
  }
}
