/**
 * Which role may use which subject, stream and bucket of NATS. The compiler requires a row for every entry of
 * `subjects.ts`, and the users of nats-server are generated from this table (`coroom nats-users`).
 *
 * nats-server does not check the subject to which it sends an answer. A user that may read a stored message in its
 * original form (by a direct get or a consumer) can have it sent to any subject, even the log's. A user that may create
 * or update a stream can have messages republished to any subject. So gateways, which are open to the internet, get
 * neither permission. They read only with `look`, whose answer is JSON.
 */

import type { GatewayId, RoomKey, ServerId, TenantId } from "../ids.ts";
import { type Subjects, subjectsOf } from "./subjects.ts";

/** The roles that use NATS, and the operator: `coroom ops`, `coroom restore` and the program `nats`. */
export const NATS_ROLES = ["placement", "room-server", "document-service", "leaderboard", "gateway", "operator"] as const;
export type NatsRole = (typeof NATS_ROLES)[number];

export type NatsPermissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };

/** The operator may do everything in its environment, and is not named in a row. */
type Role = Exclude<NatsRole, "operator">;
type Roles = readonly Role[];

/** `isAnswered`: receivers answer at the sender's inbox. */
type MessageRule = {
  readonly subject: (subjects: Subjects) => string;
  readonly from: Roles;
  readonly to: Roles;
  readonly isAnswered?: true;
};

/**
 * `make`: create and update. `find`: read settings and state; every other permission includes it. `look`: read single
 * messages, as JSON. `read`: read stored messages in their original form. `follow`: consumers. `write`: entries of a
 * bucket; messages write to a stream.
 */
type Use = "make" | "find" | "look" | "read" | "follow" | "purge" | "write";
type StoreRule = {
  readonly streams: (subjects: Subjects, partitions: number) => readonly string[];
  readonly uses: Readonly<Partial<Record<Role, readonly Use[]>>>;
};
/** The same subjects as in another row. */
type Rule = MessageRule | StoreRule | "in another row";

const ROOM = "*.*" as RoomKey;
const GATEWAY = "*" as GatewayId;
const SERVER = "*" as ServerId;
const ARCHIVES = ["hour", "day", "week", "month", "year"];
const BOTH: Roles = ["gateway", "room-server"];
const ALL: Roles = ["placement", "document-service", "leaderboard", ...BOTH];
const OWN: readonly Use[] = ["make", "find", "look", "read", "follow", "purge", "write"];

const RULES = {
  toOwner: { subject: (s) => s.toOwner(ROOM), from: ["gateway", "document-service"], to: ["room-server"] },
  editsOut: { subject: (s) => s.editsOut(ROOM), from: ["room-server"], to: BOTH },
  toGateway: { subject: (s) => s.toGateway(GATEWAY, ROOM), from: ["room-server"], to: ["gateway"] },
  allToGateway: "in another row",
  presenceToServer: { subject: (s) => s.presenceToServer(SERVER), from: ["gateway"], to: ["room-server"] },
  presenceToGateway: { subject: (s) => s.presenceToGateway(GATEWAY, SERVER), from: ["room-server"], to: ["gateway"] },
  allPresenceToGateway: "in another row",
  noPresenceOwner: { subject: (s) => s.noPresenceOwner(GATEWAY, ROOM), from: [], to: ["gateway"] },
  allNoPresenceOwner: "in another row",
  gateways: { subject: (s) => s.gateways, from: ["gateway"], to: ["room-server"] },
  log: { subject: (s) => s.logOfPartition("*"), from: ["room-server", "document-service"], to: [] },
  logOfPartition: "in another row",
  logOfTenant: "in another row",
  logRepublished: "in another row",
  activity: { subject: (s) => s.activity(0, ROOM).replace(".0.", ".*."), from: ["gateway"], to: [] },
  activityOfPartition: "in another row",
  appended: { subject: (s) => s.appended(SERVER, "*"), from: [], to: ["room-server"] },
  allAppended: "in another row",
  claim: { subject: (s) => s.claim(SERVER), from: ["placement", ...BOTH], to: ["room-server"], isAnswered: true },
  order: { subject: (s) => s.order(SERVER), from: ["placement", ...BOTH], to: ["room-server"], isAnswered: true },
  servers: { subject: (s) => s.servers, from: ["room-server"], to: ["placement", ...BOTH] },
  unreachedServers: { subject: (s) => s.unreachedServers, from: ["gateway"], to: ["room-server"] },
  documents: { subject: (s) => s.documents, from: ["document-service"], to: ["gateway"] },
  storageCounts: { subject: (s) => s.storageCounts, from: ["document-service"], to: ["document-service"] },
  storageFull: { subject: (s) => s.storageFull, from: ["document-service"], to: ["gateway", "document-service"] },
  storagePeaks: { subject: (s) => s.storagePeaks, from: ["document-service"], to: ["gateway"] },
  askStorage: { subject: (s) => s.askStorage, from: [], to: ["document-service"], isAnswered: true },
  leaderboards: { subject: (s) => s.leaderboards, from: ["leaderboard"], to: ["gateway"] },
  boards: { subject: (s) => s.boards(ROOM), from: ["leaderboard"], to: ["gateway"] },
  watchBoard: { subject: (s) => s.watchBoard, from: ["gateway"], to: ["leaderboard"] },
  boardNames: { subject: (s) => s.boardNames, from: ["gateway"], to: ["leaderboard"] },
  counts: { subject: (s) => s.counts, from: BOTH, to: ["gateway"] },
  sanctions: { subject: (s) => s.sanctions, from: ["gateway"], to: ["gateway"] },
  allSanctions: { subject: (s) => s.allSanctions, from: ["gateway"], to: ["gateway"], isAnswered: true },
  orders: { subject: (s) => s.orders, from: ["gateway"], to: ["gateway"], isAnswered: true },
  locate: { subject: (s) => s.locate, from: BOTH, to: ["placement"], isAnswered: true },
  askRooms: { subject: (s) => s.askRooms, from: ["gateway"], to: ["room-server"], isAnswered: true },
  listRooms: { subject: (s) => s.listRooms, from: ["gateway"], to: ["room-server"], isAnswered: true },
  askGateways: { subject: (s) => s.askGateways, from: ["gateway"], to: ["gateway"], isAnswered: true },
  processes: { subject: (s) => s.processes, from: ALL, to: ALL },
  vitals: { subject: (s) => s.vitals, from: ALL, to: ["gateway", "placement"] },
  operations: { subject: (s) => s.allOperations, from: ["placement", "document-service", ...BOTH], to: [] },
  allOperations: "in another row",
  webhook: { subject: (s) => s.webhook("*" as TenantId), from: ["room-server", "document-service"], to: [] },
  allWebhooks: "in another row",
  webhooksStream: { streams: (s) => [s.webhooksStream], uses: { "document-service": OWN } },
  operationsStream: {
    streams: (s) => [s.operationsStream],
    uses: { "placement": ["make"], "room-server": ["make"], "document-service": ["make"], "gateway": ["look"] },
  },
  logStream: {
    streams: (s, partitions) => numbers(partitions).map(s.logStream),
    uses: {
      "room-server": ["make", "look", "read", "purge"],
      "document-service": ["make", "look", "read", "purge"],
      "leaderboard": ["look", "read"],
      "gateway": ["find"],
      "placement": ["find"],
    },
  },
  activityStream: { streams: (s, partitions) => numbers(partitions).map(s.activityStream), uses: { leaderboard: OWN } },
  roomsBucket: bucket((s) => s.roomsBucket, { "room-server": ["make", "look", "write"], "placement": OWN, "gateway": ["look"] }),
  planBucket: bucket((s) => s.planBucket, { placement: OWN, gateway: ["look", "write"] }),
  pinsBucket: bucket((s) => s.pinsBucket, { placement: OWN, gateway: ["look"] }),
  placementBucket: bucket((s) => s.placementBucket, { placement: OWN, gateway: ["look"] }),
  checkpointsBucket: bucket((s) => s.checkpointsBucket, { "document-service": OWN, "room-server": ["make", "look"] }),
  documentsBucket: bucket((s) => s.documentsBucket, { "document-service": OWN }),
  historyBucket: bucket((s) => s.historyBucket, { "document-service": OWN }),
  boardsBucket: bucket((s) => s.boardsBucket, { "leaderboard": OWN, "document-service": ["make", "look"] }),
  boardCheckpointsBucket: {
    streams: (s) => [`KV_${s.boardCheckpointsBucket}`, `OBJ_${s.boardCheckpointsBucket}`],
    uses: { leaderboard: OWN },
  },
  boardArchiveBucket: { streams: (s) => ARCHIVES.map((kind) => `KV_${s.boardArchiveBucket(kind)}`), uses: { leaderboard: OWN } },
  snapshotsBucket: { streams: (s) => [`OBJ_${s.snapshotsBucket}`], uses: { "document-service": OWN } },
  historyObjectsBucket: { streams: (s) => [`OBJ_${s.historyObjectsBucket}`], uses: { "document-service": OWN } },
} as const satisfies Record<keyof Subjects, Rule>;

const API = "$JS.API";
/** The operator's permissions for any stream of the account: to move its leader away from a server that will be stopped. */
const OF_EVERY_STREAM = [
  `${API}.STREAM.LIST`,
  `${API}.STREAM.INFO.*`,
  `${API}.STREAM.LEADER.STEPDOWN.*`,
  `${API}.CONSUMER.LEADER.STEPDOWN.*.*`,
];

/** The prefix of the inboxes at which a role receives answers. Other roles cannot read them. */
export function inboxOf(environment: string, role: NatsRole): string {
  return `${environment}.inbox.${role}`;
}

/** Subjects with wildcards. `partitions`: number of partitions of the log. */
export function natsPermissions(role: NatsRole, environment: string, partitions: number): NatsPermissions {
  const subjects = subjectsOf(environment);
  const rules: Rule[] = Object.values(RULES);
  const publish = new Set([`${API}.INFO`, `${API}.STREAM.NAMES`]);
  const subscribe = new Set([`${inboxOf(environment, role)}.>`]);
  const stores = rules.filter((rule) => typeof rule !== "string" && "streams" in rule);
  if (role === "operator") {
    for (const subject of [`${environment}.>`, ...OF_EVERY_STREAM]) publish.add(subject);
    for (const { streams } of stores)
      for (const stream of streams(subjects, partitions)) for (const subject of everythingOn(stream)) publish.add(subject);
    // The program `nats` receives answers at _INBOX.
    return { publish: [...publish].sort(), subscribe: ["_INBOX.>", `${environment}.>`] };
  }
  for (const rule of rules) {
    if (typeof rule === "string" || "streams" in rule) continue;
    if (rule.from.includes(role)) publish.add(rule.subject(subjects));
    if (!rule.to.includes(role)) continue;
    subscribe.add(rule.subject(subjects));
    if (rule.isAnswered) for (const asker of [...rule.from, "operator" as const]) publish.add(`${inboxOf(environment, asker)}.>`);
  }
  for (const { streams, uses } of stores)
    for (const stream of streams(subjects, partitions))
      for (const use of uses[role] ?? []) for (const subject of apiOf(use, stream)) publish.add(subject);
  return { publish: [...publish].sort(), subscribe: [...subscribe].sort() };
}

function apiOf(use: Use, stream: string): readonly string[] {
  const find = `${API}.STREAM.INFO.${stream}`;
  switch (use) {
    case "find":
      return [find];
    case "make":
      return [find, `${API}.STREAM.CREATE.${stream}`, `${API}.STREAM.UPDATE.${stream}`];
    case "look":
      return [find, `${API}.STREAM.MSG.GET.${stream}`];
    case "read":
      return [find, `${API}.DIRECT.GET.${stream}`, `${API}.DIRECT.GET.${stream}.>`];
    case "follow":
      return [
        `${API}.CONSUMER.*.${stream}`,
        `${API}.CONSUMER.*.${stream}.>`,
        `${API}.CONSUMER.MSG.NEXT.${stream}.*`,
        `$JS.ACK.${stream}.>`,
        `$JS.FC.${stream}.>`,
      ];
    case "purge":
      return [`${API}.STREAM.PURGE.${stream}`];
    case "write":
      return entriesOf(stream);
  }
}

function everythingOn(stream: string): readonly string[] {
  return [
    ...OWN.flatMap((use) => apiOf(use, stream)),
    ...["DELETE", "MSG.DELETE", "SNAPSHOT", "RESTORE"].map((action) => `${API}.STREAM.${action}.${stream}`),
    ...["ACK", "RESTORE"].map((parts) => `$JS.SNAPSHOT.${parts}.${stream}.*`), // The parts of a backup, in both directions.
  ];
}

/** Subjects of the entries of a KV bucket or object bucket. */
function entriesOf(stream: string): readonly string[] {
  const [, kind, name] = /^(KV|OBJ)_(.*)$/.exec(stream) ?? [];
  return name === undefined ? [] : [kind === "KV" ? `$KV.${name}.>` : `$O.${name}.>`];
}

function bucket(name: (subjects: Subjects) => string, uses: StoreRule["uses"]): StoreRule {
  return { streams: (subjects) => [`KV_${name(subjects)}`], uses };
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
