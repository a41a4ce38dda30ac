/**
 * One run of a room server. It assembles the parts as `room-server/main.ts` does, on a simulated NATS connection, with
 * the real adapters of core NATS.
 */

import { sendServerHeartbeats, LISTEN_HEARTBEATS, listenToPeers } from "../../room-server/ownership/heartbeat-host.ts";
import { roomHostOptions } from "../../room-server/config.ts";
import type { RoomHandovers } from "../../room-server/ownership/handovers-host.ts";
import { LoadMeter } from "../../room-server/load/load-meter.ts";
import { datedEpochs } from "../../room-server/io/dated-epochs.ts";
import { hmacSeal } from "../../room-server/io/hmac.ts";
import { jetstreamAppend } from "../../room-server/io/jetstream-append.ts";
import { natsFanOut } from "../../room-server/io/nats-fan-out.ts";
import { natsInbox } from "../../room-server/io/nats-inbox.ts";
import { natsPresence } from "../../room-server/io/nats-presence.ts";
import type { CheckpointReader, LastRecord, RoomEntries, RoomInbox, RoomLog, DecodedRecord } from "../../room-server/ports.ts";
import type { OwnedRooms } from "../../room-server/ownership/owned-rooms-host.ts";
import { assembleRoomServer, type RoomServerParts, type RoomServerPorts } from "../../room-server/room-server.ts";
import type { RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { HEARTBEATS_MISSED_MAX, Membership } from "../../shared/cluster/membership.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { LedStream } from "./sim-jetstream.ts";
import { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";
import { natsHeartbeat, natsOrders, natsClaims } from "../../room-server/io/nats-bus.ts";
import { natsOtherServers, natsGateways } from "../../room-server/io/nats-ports.ts";
import { wholeRange } from "../../room-server/io/jetstream-log.ts";

const ENTRY_ATTEMPTS_MAX = 5;
const RECORDS_PER_FETCH = 3;

export class RoomServerProcess {
  readonly process: SimProcess;
  readonly connection: SimNatsConnection;
  /** The separate connection for presence. */
  readonly presenceConnection: SimNatsConnection;
  readonly server: ServerId;
  readonly host: OwnedRooms;
  readonly handovers: RoomHandovers;
  readonly #parts: RoomServerParts;
  readonly #world: World;
  readonly #log: Log;
  readonly #epochs: Prng;
  #stopHeart: () => void = () => {};

  constructor(world: World, name: string) {
    this.#world = world;
    this.#epochs = world.chance(`${name} epochs`);
    this.process = world.process(name);
    this.connection = new SimNatsConnection(this.process, world.nats, world.scheduler, world.latencyMs);
    this.presenceConnection = this.connection.addCompanion();
    this.server = name as ServerId;
    this.#log = world.logOf(name);
    const { heartbeatMs } = world.settings.roomServer;
    const { clock } = this.process;
    const membership = new Membership({ silenceMsMax: HEARTBEATS_MISSED_MAX * heartbeatMs });
    const peers = natsHeartbeat(this.connection.nats, world.subjects);
    const options = roomHostOptions(world.settings.roomServer, undefined);
    const loads = new LoadMeter(options);
    const deps = {
      clock,
      log: this.#log,
      metrics: world.telemetry.roomServer,
      membership,
      loads,
      memoryBytes: () => 0,
      endOfTurn: (run: () => void) => void clock.after(0, run),
    };
    const ports = this.#ports();
    this.#parts = assembleRoomServer(this.server, world.planted?.roomServer?.(ports) ?? ports, options, deps);
    [this.host, this.handovers] = [this.#parts.rooms, this.#parts.handovers];
    listenToPeers(this.server, membership, peers, {
      clock,
      log: this.#log,
      receiveLost: (lost) => void this.#parts.takeovers.receiveLost(lost),
    });
    clock.after(LISTEN_HEARTBEATS * heartbeatMs, () => {
      natsClaims(this.connection.nats, world.subjects, this.server, this.#log).onClaim((request) => this.host.claim(request));
      natsOrders(this.connection.nats, world.subjects, this.server, this.#log).onOrder((order) => this.handovers.answerCommand(order));
      this.#stopHeart = sendServerHeartbeats(this.#parts.describe, peers, clock, heartbeatMs).stop;
    });
  }

  /** An orderly shutdown. */
  async stop(): Promise<void> {
    const { rooms, replicas, presence, handovers } = this.#parts;
    await handovers.drain();
    await rooms.stop();
    replicas.stop();
    presence.stop();
    this.#stopHeart();
    await this.connection.flush().catch(() => {}); // If the connection is lost, no message can be flushed.
    this.process.die();
    this.connection.end();
  }

  #ports(): RoomServerPorts {
    const { subjects, telemetry, log: jetstream } = this.#world;
    const { nats: connection } = this.connection;
    const deps = { log: this.#log, metrics: telemetry.roomServer };
    const readLast: RoomLog["readLast"] = (room) => this.#readFrom("log", (asOf) => jetstream.last(room, asOf));
    const checkpoints: CheckpointReader = {
      newest: (room) => this.#readFrom("checkpoints", (asOf) => jetstream.checkpoint(room, asOf)),
    };
    const { appendAnswerMsMax } = this.#world.settings.roomServer;
    const { hasBatches } = this.#world.size;
    return {
      presenceBus: natsPresence(this.presenceConnection.nats, subjects, this.server, deps),
      activity: { report: () => {} },
      log: {
        append: jetstreamAppend(
          this.#world.planted?.appendsConnection?.(connection) ?? connection,
          subjects,
          { server: this.server, partitions: 1, appendAnswerMsMax, aloneMax: 0 },
          { ...deps, readLast, checkpoints, clock: this.process.clock, takesBatches: () => hasBatches },
        ),
        readLast,
        endsAt: (room, streamSeq) => this.#readFrom("log", (asOf) => (jetstream.last(room, asOf)?.streamSeq ?? 0) <= streamSeq),
        read: (room, after, through) => this.#read(room, after, through),
        advance: (_, past) =>
          this.connection.ask(
            () => jetstream.advance(past),
            () => jetstream.isReadable && jetstream.takesWrites,
          ),
      },
      inbox: this.#whileRunning(natsInbox(connection, subjects, { ...deps, localOwners: this.#world.localOwners })),
      gateways: natsGateways(connection, subjects),
      checkpoints,
      entries: this.#entries(),
      fanOut: natsFanOut(connection, subjects),
      others: natsOtherServers(connection, subjects),
      operations: { report: () => {} },
      seal: hmacSeal("the secret that all room servers share", this.#world.settings.roomServer, this.process.clock),
      epochs: datedEpochs(this.process.clock, () => this.#epochs.unit()),
    };
  }

  /** Only a running process receives a local message. In reality, a paused or dead process contains no gateway that sends. */
  #whileRunning(inbox: RoomInbox): RoomInbox {
    const { process } = this;
    return {
      subscribe: (room, receiver) =>
        inbox.subscribe(room, {
          get openEpoch() {
            return process.state === "running" ? receiver.openEpoch : undefined;
          },
          receiveMessage: (message, bytes) => receiver.receiveMessage(message, bytes),
          receivePresence: (message) => receiver.receivePresence(message),
        }),
    };
  }

  #readFrom<Answer>(led: LedStream, run: (asOf: number) => Answer): Promise<Answer> {
    return this.connection.read(run, (side) => this.#world.log.asOf(led, side));
  }

  async *#read(room: RoomKey, after: number, through: number): AsyncIterable<DecodedRecord> {
    for await (const { record, streamSeq } of wholeRange((from) => this.#readOn(room, from), after, through, this.process.clock))
      if (record.kind !== "deleted") yield { record, streamSeq };
  }

  /** Reads in several fetches, so that the log may be trimmed between two of them. */
  async *#readOn(room: RoomKey, after: number): AsyncIterable<LastRecord> {
    for (let last = after; ;) {
      const fetched = await this.#readFrom("log", (asOf) => this.#world.log.read(room, last, RECORDS_PER_FETCH, asOf));
      yield* fetched;
      if (fetched.length < RECORDS_PER_FETCH) return;
      last = fetched.at(-1)!.streamSeq;
    }
  }

  /** Behaves as `room-server/io/kv-rooms.ts`: each write is conditional on the revision that was read. */
  #entries(): RoomEntries {
    const { entries } = this.#world.log;
    const read = (room: RoomKey) =>
      this.connection.ask(
        () => entries.read(room),
        () => entries.answers(),
      );
    const write = (room: RoomKey, entry: RoomEntry | undefined, revision: number) =>
      this.connection.ask(
        () => entries.write(room, entry, revision),
        () => entries.answers(),
      );
    return {
      find: async (room) => (await read(room)).entry,
      announce: async (room, epoch) => {
        for (let attempt = 0; attempt < ENTRY_ATTEMPTS_MAX; attempt++) {
          const { entry, revision } = await read(room);
          if (entry !== undefined && entry.epoch > epoch) return;
          if (await write(room, { owner: this.server, epoch }, revision)) return;
        }
        throw new Error("the entry changed again and again while it was written");
      },
      withdraw: async (room, epoch) => {
        const { entry, revision } = await read(room);
        if (entry?.owner === this.server && entry.epoch <= epoch) await write(room, undefined, revision);
      },
      forget: async (room) => {
        const { entry, revision } = await read(room);
        if (entry !== undefined) await write(room, undefined, revision);
      },
    };
  }
}
