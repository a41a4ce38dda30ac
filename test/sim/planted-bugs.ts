/**
 * Bugs that the simulator must find, or it proves nothing. Each stands around a real part, at one of its ports, and
 * changes none of the product's code.
 */

import type { RoomServerPorts } from "../../room-server/room-server.ts";
import { decodePresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { decodeToOwner, encodeToOwner, type ToOwner } from "../../shared/bus/envelope.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { Fault } from "./faults.ts";
import { forgedTaken, refusalIgnored } from "./planted-room-server-bugs.ts";
import type { PlantedHooks } from "./planted-hooks.ts";
import type { Size } from "./sizes.ts";

export type PlantedBug = PlantedHooks & {
  readonly name: string;
  /** What must go wrong for the bug to show, where chance rarely has it. */
  readonly faults?: (size: Size) => readonly Fault[];
};

/** Whoever owns a room does something else as well with each message that it takes. */
function afterEach(ports: RoomServerPorts, also: (message: ToOwner, room: RoomKey, epoch: Epoch) => void): RoomServerPorts {
  const epochs = new Map<RoomKey, Epoch>();
  return {
    ...ports,
    entries: { ...ports.entries, announce: (room, epoch) => (epochs.set(room, epoch), ports.entries.announce(room, epoch)) },
    inbox: {
      subscribe: (room, receiver) =>
        ports.inbox.subscribe(room, {
          get openEpoch() {
            return receiver.openEpoch;
          },
          receiveMessage: (message, bytes) => {
            receiver.receiveMessage(message, bytes);
            const epoch = epochs.get(room);
            if (epoch !== undefined) also(message, room, epoch);
          },
          receivePresence: (message) => receiver.receivePresence(message),
        }),
    },
  };
}

/** The owner acknowledges an edit when it comes, not when the log has it. */
const earlyAck: PlantedBug = {
  name: "early ack",
  roomServer: (ports) =>
    afterEach(ports, (message, room, epoch) => {
      if (message.kind !== "edits") return;
      for (const { author, counter } of message.edits)
        ports.gateways.answer(message.gateway, room, { kind: "acked", epoch, client: author.client, counter, seq: 0 as Seq, exact: false });
    }),
};

/** An append does not say which record it is to follow, so the log takes it from anybody. */
const noFencing: PlantedBug = {
  name: "no fencing",
  appendsLine: (connection) => ({
    ...methodsOf(connection),
    publish: (subject, data, options) => {
      options?.headers?.delete("Nats-Expected-Last-Subject-Sequence");
      connection.publish(subject, data, options);
    },
  }),
};

/** A new owner takes each client for one edit less far than the checkpoint says. */
const watermarkTooLow: PlantedBug = {
  name: "watermark one too low",
  roomServer: (ports) => ({
    ...ports,
    checkpoints: {
      newest: async (room) => {
        const checkpoint = await ports.checkpoints.newest(room);
        return checkpoint === undefined || checkpoint === "deleted"
          ? checkpoint
          : { ...checkpoint, clients: checkpoint.clients.map((client) => ({ ...client, counter: client.counter - 1 })) };
      },
    },
  }),
};

/** All that the log has is under a checkpoint when every room server dies, and with them the warm copies: what the next owner knows of its writers it knows from the checkpoint. */
const onlyCheckpointsLeft = ({ faultyMs }: Size): readonly Fault[] => [
  ...[0.1, 0.9].map((whom): Fault => ({ kind: "log trimmed", atMs: 0.8 * faultyMs, forMs: 0, whom, how: 0 })),
  ...[0.1, 0.5, 0.9].map((whom): Fault => ({ kind: "room server killed", atMs: 0.8 * faultyMs + 1, forMs: 300, whom, how: 0 })),
];

/** And here for one edit further. */
const watermarkTooHigh: PlantedBug = {
  name: "watermark one too high",
  faults: onlyCheckpointsLeft,
  roomServer: (ports) => ({
    ...ports,
    checkpoints: {
      newest: async (room) => {
        const checkpoint = await ports.checkpoints.newest(room);
        return checkpoint === undefined || checkpoint === "deleted"
          ? checkpoint
          : { ...checkpoint, clients: checkpoint.clients.map((client) => ({ ...client, counter: client.counter + 1 })) };
      },
    },
  }),
};

/** A new owner begins from what it had of the log, which is not its end. */
const notCaughtUp: PlantedBug = {
  name: "promoted without catching up",
  roomServer: (ports) => ({
    ...ports,
    log: {
      ...ports.log,
      readLast: async (room) => {
        const last = await ports.log.readLast(room);
        let before = last;
        for await (const stored of ports.log.read(room, 0, (last?.streamSeq ?? 0) - 1)) before = stored;
        return last === undefined || before === undefined ? undefined : { record: before.record, streamSeq: last.streamSeq };
      },
    },
  }),
};

/** A gateway sends each edit to an owner once, whatever becomes of the owner. */
const unackedForgotten: PlantedBug = {
  name: "gateway forgets un-acked edits",
  gatewayRooms: (rooms) => {
    const sent = new Set<string>();
    return {
      ...rooms,
      sendToOwner: (room, bytes, epoch) => {
        const message = decodeToOwner(bytes);
        if (message?.kind !== "edits") return rooms.sendToOwner(room, bytes, epoch);
        const fresh = message.edits.filter(({ author, counter }) => !sent.has(`${author.client} ${counter}`));
        for (const { author, counter } of fresh) sent.add(`${author.client} ${counter}`);
        if (fresh.length > 0) rooms.sendToOwner(room, encodeToOwner({ ...message, edits: fresh }), epoch);
      },
    };
  },
};

/** Spans and deadlines go by the date: set back an hour while edits wait for a lost owner, nobody looks for another one within that hour. */
const deadlinesByDate: PlantedBug = {
  name: "deadlines by the date",
  clock: (clock) => ({ ...clock, now: () => clock.wallNow() as number as Millis }),
  faults: ({ faultyMs }) => [
    { kind: "room server's machine lost", atMs: faultyMs - 300, forMs: 3_000, whom: 0.2, how: 0.5 },
    ...Array.from({ length: 40 }, (_, index): Fault => ({
      kind: "date set back or ahead",
      atMs: faultyMs - 50,
      forMs: 0,
      whom: index / 40,
      how: 0.001,
    })),
  ],
};

/** Stands in the way of what warm copies hear of a record. */
function copiesHear(name: string, hear: (edits: CommittedEdits) => CommittedEdits): PlantedBug {
  return {
    name,
    roomServer: (ports) => ({
      ...ports,
      fanOut: {
        ...ports.fanOut,
        subscribe: (room, receive) =>
          ports.fanOut.subscribe(room, (heard) => {
            const isEdits = !("kind" in heard) && heard.record.kind === "edits";
            receive(isEdits ? { ...heard, record: { ...heard.record, edits: hear(heard.record.edits) } } : heard);
          }),
      },
    }),
  };
}

/** A room is moved, or its copy takes over, without what is known of its writers. */
const movedWithoutWriters = copiesHear("moved without its writers", (edits) => ({
  ...edits,
  edits: edits.edits.map((edit) => ({ ...edit, client: "nobodynobodynobo" as ClientId })),
}));

/** A warm copy takes each writer for one edit further than the log has it. */
const copyAhead = copiesHear("warm copy one edit ahead", (edits) => ({
  ...edits,
  edits: edits.edits.map((edit) => ({ ...edit, counter: edit.counter + 1 })),
}));

/** A claim takes the record of a room's deletion for an owner's: the room begins again under its name. */
const deletedClaimed: PlantedBug = {
  name: "deleted room claimed anew",
  roomServer: (ports) => ({
    ...ports,
    log: {
      ...ports.log,
      readLast: async (room) => {
        const last = await ports.log.readLast(room);
        return last?.record.kind === "deleted"
          ? { streamSeq: last.streamSeq, record: { ...last.record, kind: "epoch", epoch: 1 as Epoch, head: 0 as Seq } }
          : last;
      },
    },
    checkpoints: {
      newest: async (room) => {
        const newest = await ports.checkpoints.newest(room);
        return newest === "deleted" ? undefined : newest;
      },
    },
  }),
  faults: ({ faultyMs }) => [
    { kind: "room deleted", atMs: faultyMs / 2, forMs: 0, whom: 0, how: 0 },
    ...Array.from({ length: 4 }, (_, index): Fault => ({
      kind: "room claimed at random",
      atMs: faultyMs / 2 + 400 + 100 * index,
      forMs: 0,
      whom: index / 4,
      how: 0,
    })),
  ],
};

/** What must be a room's first edit goes out as tentative, and whoever holds it sends it in once another is first. */
const firstEditShown: PlantedBug = {
  name: "first edit shown as tentative",
  roomServer: (ports) =>
    afterEach(ports, (message, room, epoch) => {
      if (message.kind !== "first-edit") return;
      const { author, counter, ackedThrough, parentSeq, payload } = message.edit;
      const edit = { ...author, counter, ackedThrough, parentSeq, payload };
      ports.gateways.broadcast(room, { kind: "tentative", edit: { ...edit, epoch, mac: ports.seal.sealOf(room, edit) } });
    }),
  faults: () => [{ kind: "document made of content", atMs: 0, forMs: 0, whom: 0, how: 0 }],
};

/** A claim is of the epoch behind the last that the log knows of, which the log has lost: two owners of one epoch, and gateways that believe both. */
const epochGivenAgain: PlantedBug = {
  name: "epoch given again",
  roomServer: (ports) => ({ ...ports, epochs: { after: (known) => (known + 1) as Epoch } }),
  faults: ({ faultyMs }) => [
    { kind: "room server killed", atMs: faultyMs / 2 - 450, forMs: 300, whom: 0, how: 0, aimed: true },
    { kind: "log loses its end", atMs: faultyMs / 2, forMs: 600, whom: 0, how: 0.99 },
  ],
};

/** An owner takes a position for its log's by the seq alone, as if whoever asks had heard of no epoch but its own. */
const positionBySeq: PlantedBug = {
  name: "position taken by its seq",
  roomServer: (ports) => {
    const epochs = new Map<RoomKey, Epoch>();
    return {
      ...ports,
      entries: { ...ports.entries, announce: (room, epoch) => (epochs.set(room, epoch), ports.entries.announce(room, epoch)) },
      inbox: {
        subscribe: (room, receiver) =>
          ports.inbox.subscribe(room, {
            get openEpoch() {
              return receiver.openEpoch;
            },
            receiveMessage: (message, bytes) => {
              const epoch = epochs.get(room);
              const isAsking = message.kind === "catch-up-request" && message.after.seq > 0 && epoch !== undefined;
              receiver.receiveMessage(isAsking ? { ...message, after: { ...message.after, epoch } } : message, bytes);
            },
            receivePresence: (message) => receiver.receivePresence(message),
          }),
      },
    };
  },
  faults: ({ faultyMs }) => [
    { kind: "tab offline", atMs: faultyMs / 2 - 100, forMs: faultyMs / 2, whom: 0.1, how: 0 },
    { kind: "room server killed", atMs: faultyMs / 2 - 1, forMs: 300, whom: 0, how: 0, aimed: true },
    { kind: "log loses its end", atMs: faultyMs / 2, forMs: 600, whom: 0, how: 0.5 },
  ],
};

/** A gateway sends each state once: what is lost while its presence is cut off is never shown. */
const statesSentOnce: PlantedBug = {
  name: "gateway sends each presence state once",
  gatewayPresence: (servers) => ({
    ...servers,
    sendBatch: (server, { sentAtMs, entries }) =>
      servers.sendBatch(server, {
        sentAtMs,
        entries: entries.filter(({ message: bytes }) => {
          const message = decodePresenceToOwner(bytes);
          return message?.kind !== "states" || message.fresh;
        }),
      }),
  }),
  faults: ({ faultyMs }) =>
    Array.from({ length: 60 }, (_, index): Fault => ({
      kind: "gateway's presence cut off",
      atMs: Math.floor(faultyMs - (index * Math.min(faultyMs, 3_000)) / 60),
      forMs: 300,
      whom: (index % 7) / 7,
      how: 0.2,
      aimed: true,
    })).reverse(),
};

const outboxDropped: PlantedBug = { name: "client drops its outbox on reconnect", tabForgets: (status) => status === "waiting" };

export const PLANTED_BUGS: readonly PlantedBug[] = [
  earlyAck,
  noFencing,
  watermarkTooLow,
  watermarkTooHigh,
  notCaughtUp,
  unackedForgotten,
  deadlinesByDate,
  movedWithoutWriters,
  copyAhead,
  deletedClaimed,
  firstEditShown,
  epochGivenAgain,
  positionBySeq,
  forgedTaken,
  refusalIgnored,
  outboxDropped,
  statesSentOnce,
];

/** For spreading: a connection's methods, bound. */
function methodsOf(connection: NatsConnection): NatsConnection {
  return {
    subscribe: connection.subscribe.bind(connection),
    status: connection.status.bind(connection),
    closed: connection.closed.bind(connection),
  } as NatsConnection;
}
