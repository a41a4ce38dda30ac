/**
 * Bugs that the simulator must find; otherwise it proves nothing. Each bug wraps a real part at one of its ports, and
 * changes no product code.
 */

import type { RoomServerPorts } from "../../room-server/room-server.ts";
import { decodePresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ToOwner } from "../../shared/bus/envelope.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { Fault } from "./faults.ts";
import { PLANTED_GATEWAY_BUGS } from "./planted-gateway-bugs.ts";
import { forgedTaken, refusalIgnored, savedNotAnnounced, savingNotAnnounced, tentativeNotShown } from "./planted-room-server-bugs.ts";
import type { PlantedHooks } from "./planted-hooks.ts";
import type { Size, SizeName } from "./sizes.ts";

export type PlantedBug = PlantedHooks & {
  readonly name: string;
  /** Faults that show the bug, if random faults rarely show it. */
  readonly faults?: (size: Size) => readonly Fault[];
  /** Sizes of runs that can show the bug. Undefined: all. */
  readonly sizes?: readonly SizeName[];
};

/** `pass` gives a message to the owner of the room. */
type ReceiveAsOwner = (message: ToOwner, room: RoomKey, epoch: Epoch, pass: (message: ToOwner) => void) => void;

/** Replaces how an owner receives messages once it has announced its epoch. */
function asOwner(ports: RoomServerPorts, receive: ReceiveAsOwner): RoomServerPorts {
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
            if (epoch === undefined) receiver.receiveMessage(message, bytes);
            else receive(message, room, epoch, (passed) => receiver.receiveMessage(passed, bytes));
          },
          receivePresence: (message) => receiver.receivePresence(message),
        }),
    },
  };
}

/** The owner acknowledges an edit when it arrives, before the log has it. */
const earlyAck: PlantedBug = {
  name: "early ack",
  roomServer: (ports) =>
    asOwner(ports, (message, room, epoch, pass) => {
      pass(message);
      if (message.kind !== "edits") return;
      for (const { author, counter } of message.edits)
        ports.gateways.answer(message.gateway, room, { kind: "acked", epoch, client: author.client, counter, seq: 0 as Seq, exact: false });
    }),
};

/** An append names no expected last record, so the log accepts it from any server. */
const noFencing: PlantedBug = {
  name: "no fencing",
  appendsConnection: (connection) => ({
    ...methodsOf(connection),
    publish: (subject, data, options) => {
      options?.headers?.delete("Nats-Expected-Last-Subject-Sequence");
      connection.publish(subject, data, options);
    },
  }),
};

/** A new owner reads each client's counter as one less than in the checkpoint. */
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

/**
 * All records are covered by a checkpoint when all room servers, with their warm copies, die. So the next owner knows
 * its writers only from the checkpoint.
 */
const onlyCheckpointsLeft = ({ faultyMs }: Size): readonly Fault[] => [
  ...[0.1, 0.9].map((whom): Fault => ({ kind: "log trimmed", atMs: 0.8 * faultyMs, forMs: 0, whom, how: 0 })),
  ...[0.1, 0.5, 0.9].map((whom): Fault => ({ kind: "room server killed", atMs: 0.8 * faultyMs + 1, forMs: 300, whom, how: 0 })),
];

/** A new owner reads each client's counter as one more than in the checkpoint. */
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

/** A new owner begins from the records that it had already, without reading the log's newest records. */
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

/** A gateway sends each edit to an owner only once, even if the owner changes. */
const unackedForgotten: PlantedBug = {
  name: "gateway forgets un-acked edits",
  gatewayRooms: (rooms) => {
    const sent = new Set<string>();
    return {
      ...rooms,
      sendToOwner: (room, message, epoch) => {
        if (message.kind !== "edits") return rooms.sendToOwner(room, message, epoch);
        const fresh = message.edits.filter(({ author, counter }) => !sent.has(`${author.client} ${counter}`));
        for (const { author, counter } of fresh) sent.add(`${author.client} ${counter}`);
        if (fresh.length > 0) rooms.sendToOwner(room, { ...message, edits: fresh }, epoch);
      },
    };
  },
};

/**
 * Durations and deadlines use the date instead of the steady clock. When the date is set back by an hour while edits
 * wait for a lost owner, the gateway searches no new owner within that hour.
 */
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

/** Changes the records that warm copies receive. */
function changeCopiedEdits(name: string, change: (edits: CommittedEdits) => CommittedEdits): PlantedBug {
  return {
    name,
    roomServer: (ports) => ({
      ...ports,
      fanOut: {
        ...ports.fanOut,
        subscribe: (room, receive) =>
          ports.fanOut.subscribe(room, (published) => {
            const isEdits = !("kind" in published) && published.record.kind === "edits";
            receive(isEdits ? { ...published, record: { ...published.record, edits: change(published.record.edits) } } : published);
          }),
      },
    }),
  };
}

/** A room is moved, or its warm copy takes over, without the room's known writers. */
const movedWithoutWriters = changeCopiedEdits("moved without its writers", (edits) => ({
  ...edits,
  edits: edits.edits.map((edit) => ({ ...edit, client: "nobodynobodynobo" as ClientId })),
}));

/** A warm copy reads each writer's counter as one more than in the log. */
const copyAhead = changeCopiedEdits("warm copy one edit ahead", (edits) => ({
  ...edits,
  edits: edits.edits.map((edit) => ({ ...edit, counter: edit.counter + 1 })),
}));

/** A claim reads the record of a room's deletion as an owner's record, so the room begins again under its name. */
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

/** An edit that must be a room's first is also sent as tentative. Its receiver submits it after another edit is first. */
const firstEditShown: PlantedBug = {
  name: "first edit shown as tentative",
  roomServer: (ports) =>
    asOwner(ports, (message, room, epoch, pass) => {
      pass(message);
      if (message.kind !== "first-edit") return;
      const { author, counter, ackedThrough, parentSeq, payload } = message.edit;
      const edit = { ...author, counter, ackedThrough, parentSeq, payload };
      ports.gateways.broadcast(room, { kind: "tentative", edit: { ...edit, epoch, mac: ports.seal.sealOf(room, edit) } });
    }),
  faults: () => [{ kind: "document made of content", atMs: 0, forMs: 0, whom: 0, how: 0 }],
};

/**
 * A claim uses the next epoch after the log's last record, even if the log lost an epoch. So two owners have one epoch,
 * and gateways believe both.
 */
const epochGivenAgain: PlantedBug = {
  name: "epoch given again",
  roomServer: (ports) => ({ ...ports, epochs: { after: (known) => (known + 1) as Epoch } }),
  faults: ({ faultyMs }) => [
    { kind: "room server killed", atMs: faultyMs / 2 - 450, forMs: 300, whom: 0, how: 0, aimed: true },
    { kind: "log loses its end", atMs: faultyMs / 2, forMs: 600, whom: 0, how: 0.99 },
  ],
};

/** An owner compares a position with its log by seq alone, as if the client knew only the current epoch. */
const positionBySeq: PlantedBug = {
  name: "position taken by its seq",
  roomServer: (ports) =>
    asOwner(ports, (message, _room, epoch, pass) => {
      const isAsking = message.kind === "catch-up-request" && message.after.seq > 0;
      pass(isAsking ? { ...message, after: { ...message.after, epoch } } : message);
    }),
  faults: ({ faultyMs }) => [
    { kind: "tab offline", atMs: faultyMs / 2 - 100, forMs: faultyMs / 2, whom: 0.1, how: 0 },
    { kind: "room server killed", atMs: faultyMs / 2 - 1, forMs: 300, whom: 0, how: 0, aimed: true },
    { kind: "log loses its end", atMs: faultyMs / 2, forMs: 600, whom: 0, how: 0.5 },
  ],
};

/** A gateway sends each state once, so a state that is lost during a cut of presence is never shown. */
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
  tentativeNotShown,
  savingNotAnnounced,
  savedNotAnnounced,
  outboxDropped,
  statesSentOnce,
  ...PLANTED_GATEWAY_BUGS,
];

/** A connection's bound methods, for object spread. */
function methodsOf(connection: NatsConnection): NatsConnection {
  return {
    subscribe: connection.subscribe.bind(connection),
    status: connection.status.bind(connection),
    closed: connection.closed.bind(connection),
  } as NatsConnection;
}
