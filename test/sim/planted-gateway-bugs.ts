/** Planted bugs of a gateway: see `planted-bugs.ts`. */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { Millis, UserId } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { Clients, ConnectionId } from "../../gateway/ports.ts";
import type { Identity } from "../../gateway/sessions/identity.ts";
import type { Fault } from "./faults.ts";
import type { PlantedHooks } from "./planted-hooks.ts";

/** A gateway forwards the edits of all its members under the user of the first one. Boards and the history name a wrong person. */
const editsOfAnotherUser = {
  name: "edits of another user",
  gatewayRooms: (rooms) => {
    let first: UserId | undefined;
    return {
      ...rooms,
      sendToOwner: (room, message, epoch) => {
        if (message.kind !== "edits") return rooms.sendToOwner(room, message, epoch);
        const edits = message.edits.map((edit) => ({ ...edit, author: { ...edit.author, user: (first ??= edit.author.user) } }));
        rooms.sendToOwner(room, { ...message, edits }, epoch);
      },
    };
  },
  faults: () => [],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

const banned = [{ kind: "user banned" as const, atMs: 1_000, forMs: 0, whom: 0, how: 0 }];

/** A ban holds only at the gateway that imposed it. */
const bansNotExchanged = {
  name: "bans not exchanged",
  sanctionsBus: (bus) => ({ ...bus, publishSanction: () => {}, requestSanctions: () => Promise.resolve([]) }),
  faults: () => banned,
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A gateway does not ask the others for their bans, and publishes its own bans only once. */
const bansNotRepeated = {
  name: "bans neither requested nor repeated",
  sanctionsBus: (bus) => {
    const published = new Set<Sanction>();
    return {
      ...bus,
      requestSanctions: () => Promise.resolve([]),
      publishSanction: (sanction) => {
        if (!published.has(sanction)) bus.publishSanction(sanction);
        published.add(sanction);
      },
    };
  },
  faults: () => [...banned, { kind: "gateway killed" as const, atMs: 1_500, forMs: 100, whom: 0.9, how: 0 }],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

const pasted = [0.1, 0.4, 0.8].flatMap((whom) =>
  [0.3, 0.6, 0.9].map((how): Fault => ({ kind: "large text pasted", atMs: 400 + 1_500 * how + whom, forMs: 0, whom, how })),
);

/** A gateway takes all edits of a connection for edits of the room that wrote first. */
const editsOfAnotherRoom = {
  name: "edits of another room of the connection",
  gatewayClients: (clients) => {
    const first = new Map<ConnectionId, number>();
    return {
      ...asPartsReceiver(clients, (connection, bytes) => clients.receiveFrame(connection, bytes)),
      receiveFrame: (connection, bytes) => {
        const frame = decodeFrame(bytes);
        if (frame?.type !== "edit") return clients.receiveFrame(connection, bytes);
        const channel = first.get(connection) ?? frame.channel;
        first.set(connection, channel);
        clients.receiveFrame(connection, encodeFrame({ ...frame, channel }));
      },
    };
  },
  faults: () => [0.1, 0.5].map((whom): Fault => ({ kind: "second room opened", atMs: 300, forMs: 0, whom, how: whom })),
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** Replaces how a gateway receives the parts of frames that are not the last ones. */
function asPartsReceiver(clients: Clients, receivePart: (connection: ConnectionId, message: Uint8Array) => void): Clients {
  return {
    receiveConnection: (connection, address) => clients.receiveConnection(connection, address),
    receiveReadProgress: (connection, progress) => clients.receiveReadProgress(connection, progress),
    receiveDisconnection: (connection) => clients.receiveDisconnection(connection),
    receiveFrame: (connection, bytes) => {
      const frame = decodeFrame(bytes);
      if (frame?.type === "part" && !frame.flags.last) receivePart(connection, bytes);
      else clients.receiveFrame(connection, bytes);
    },
  };
}

/** A gateway keeps the memory of a message, which the next message overwrites, instead of a copy. */
const partsNotCopied = {
  name: "parts of frames not copied",
  gatewayClients: (clients) => asPartsReceiver(clients, (connection, bytes) => clients.receiveFrame(connection, bytes.fill(0xee, 400))),
  faults: () => pasted,
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A gateway begins a frame with the parts of another connection, which broke before its frame was complete. */
const partsOfBrokenConnection = {
  name: "parts of a broken connection taken for those of the next",
  gatewayClients: (clients) => {
    const unfinished = new Map<ConnectionId, Uint8Array[]>();
    let orphaned: Uint8Array[] = [];
    const receivePart = (connection: ConnectionId, bytes: Uint8Array): void => {
      for (const part of orphaned) clients.receiveFrame(connection, part);
      orphaned = [];
      unfinished.set(connection, [...(unfinished.get(connection) ?? []), bytes.slice()]);
      clients.receiveFrame(connection, bytes);
    };
    const receiver = asPartsReceiver(clients, receivePart);
    return {
      ...receiver,
      receiveFrame: (connection, bytes) => {
        const frame = decodeFrame(bytes);
        receiver.receiveFrame(connection, bytes);
        if (frame?.type === "part" && frame.flags.last) unfinished.delete(connection);
      },
      receiveDisconnection: (connection) => {
        orphaned.push(...(unfinished.get(connection) ?? []));
        unfinished.delete(connection);
        clients.receiveDisconnection(connection);
      },
    };
  },
  faults: () => pasted,
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A gateway keeps the rights of the first token of each user. */
const firstRightsKept = {
  name: "rights of the first token kept",
  tokens: (tokens) => {
    const first = new Map<UserId, Identity["rights"]>();
    return {
      verify: async (token) => {
        const verdict = await tokens.verify(token);
        if (verdict.kind !== "valid") return verdict;
        const { identity } = verdict;
        if (!first.has(identity.user)) first.set(identity.user, identity.rights);
        return { ...verdict, identity: { ...identity, rights: first.get(identity.user)! } };
      },
    };
  },
  faults: () => [0.1, 0.5, 0.9].map((whom): Fault => ({ kind: "user's rights changed", atMs: 0, forMs: 1_000, whom, how: 0, aimed: true })),
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A gateway does not end a token. Only a large run has the time for a token to expire. */
const expiryIgnored = {
  name: "expiry of tokens ignored",
  sizes: ["large-edit-path" as const],
  tokens: (tokens) => ({
    verify: async (token) => {
      const verdict = await tokens.verify(token);
      return verdict.kind === "valid" ? { ...verdict, identity: { ...verdict.identity, expiresAt: 1e12 as Millis } } : verdict;
    },
  }),
  faults: () => [{ kind: "token service away" as const, atMs: 1_500, forMs: 14_500, whom: 0, how: 0 }],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown; readonly sizes: unknown };

const unfinished = [{ kind: "frames left unfinished" as const, atMs: 300, forMs: 2_000, whom: 0, how: 0 }];

/** Above the limit of unfinished frames, a gateway does not end the connection of the oldest one. */
const oldestUnfinishedKept = {
  name: "oldest unfinished frame kept",
  gatewaySockets: (sockets) => ({
    ...sockets,
    close: (connection, close) => {
      if (close !== "overloaded") sockets.close(connection, close);
    },
  }),
  faults: () => unfinished,
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** Above the limit of unfinished frames, a gateway also ends the newest connection, which may send the parts of a frame. */
const newestUnfinishedEnded = {
  name: "newest connection ended for old parts",
  gatewaySockets: (sockets) => {
    let newest: ConnectionId | undefined;
    return {
      ...sockets,
      send: (to, frame) => {
        if (newest === undefined || to > newest) newest = to;
        sockets.send(to, frame);
      },
      close: (connection, close) => {
        sockets.close(connection, close);
        if (close === "overloaded" && newest !== undefined) sockets.close(newest, close);
      },
    };
  },
  faults: () => unfinished,
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A gateway answers a kick that it has not carried out. */
const kicksNotCarriedOut = {
  name: "kicks not carried out",
  adminCommands: (commands) => ({
    ...commands,
    onCommand: (carryOut) => commands.onCommand((order) => (order.kind === "kick" ? { kicked: 1, members: [] } : carryOut(order))),
  }),
  faults: () =>
    [0.1, 0.5, 0.9].map((whom): Fault => ({ kind: "user kicked", atMs: 1_000 + 400 * whom, forMs: 0, whom, how: whom, aimed: false })),
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

export const PLANTED_GATEWAY_BUGS = [
  editsOfAnotherUser,
  bansNotExchanged,
  bansNotRepeated,
  partsNotCopied,
  editsOfAnotherRoom,
  partsOfBrokenConnection,
  kicksNotCarriedOut,
  firstRightsKept,
  expiryIgnored,
  oldestUnfinishedKept,
  newestUnfinishedEnded,
];
