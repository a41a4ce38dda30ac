/**
 * Every NATS subject, stream and bucket, built and read here and nowhere else. `{env}` is the
 * environment's name (development, staging, production, or a test run's own); `{room}` is two tokens,
 * tenant and room.
 *
 *   {env}.owner.{room}               gateway        -> owner            edits, joins, replays asked for; who is there, what they show of themselves; of the document service: "look at the log"
 *   {env}.edits.out.{room}           log, owner     -> gateways         records as stored (JetStream republishes them), beacons, tentative edits
 *   {env}.gateway.{id}.{room}        owner          -> one gateway      answers; also NATS's "no responders"
 *   {env}.presence.out.{room}        owner          -> gateways         who is there and what they show, for everybody, a few times a second
 *   {env}.presence.gateway.{id}.{room}  owner       -> one gateway      answers about who is there
 *   {env}.gateways                   gateway        -> room servers     heartbeats: one that falls silent has taken its members along
 *   {env}.log.{p}.{room}             owner          -> JetStream        the log: stream {env}_log_{p}; its end, where a room is deleted: of the document service
 *   {env}.activity.{p}.{room}        gateway        -> JetStream        what is worth points and is no edit: stream {env}_activity_{p}
 *   {env}.appended.{server}.{token}  JetStream      -> owner            answers to appends
 *   {env}.server.{id}.claim          placement, gateway -> room server  "take this room": request and reply
 *   {env}.server.{id}.order          placement, operators, gateway, room server -> room server  "follow, hand over, drain, show that you are there": request and reply
 *   {env}.servers                    room server    -> everyone         heartbeats
 *   {env}.servers.unreached          gateway        -> room servers     "nobody listens where this one should": it may be gone
 *   {env}.documents                  document service -> gateways       heartbeats, with the address of its HTTP
 *   {env}.leaderboards               leaderboard    -> gateways         heartbeats, with the address of its HTTP
 *   {env}.boards.{room}              leaderboard    -> gateways         a watched board's first members, when they changed
 *   {env}.boards.watch               gateway        -> leaderboards     "somebody here looks at this board"
 *   {env}.boards.names               gateway        -> leaderboards     how a user is called
 *   {env}.counts                     gateway, room server -> gateways  how much of what is limited each has
 *   {env}.sanctions                  gateway        -> gateways         who is banned or may only read; .all: "whom do you know of?", request and reply
 *   {env}.orders                     gateway        -> gateways         "kick them", "who is there?": a request, a reply of each
 *   {env}.placement.locate           gateway        -> placement        "who owns this room?": request and reply
 *   {env}.rooms.ask                  terminal, gateway -> room servers  "how is this room?": request, and reply by its owner alone
 *   {env}.rooms.list                 gateway        -> room servers     "which rooms have you?": a request, a reply of each
 *   {env}.gateways.ask               gateway        -> gateways         "how are you?", "drain": a request, a reply of each
 *   {env}.webhook.{tenant}           document service, room server -> JetStream  what is to be told outside: stream {env}_webhooks
 *   {env}.ops.{kind}                 everyone       -> JetStream        events for the people who run it: stream {env}_ops
 *
 *   KV {env}_rooms         room -> owner and epoch, written by owners and placement: a hint, never the authority
 *   KV {env}_plan          room -> what placement planned for it last and why, written by the leading placement
 *   KV {env}_pins          room -> where an operator wants it, written by operators
 *   KV {env}_placement     which placement process leads, and the generation of its plans
 *   KV {env}_checkpoints   room -> what its newest snapshot covers, written by the document service
 *   KV {env}_documents     partition of the log -> which document service reads it, and from where
 *   KV {env}_boards        partition of the log -> which leaderboard counts it, and from where
 *   KV {env}_boardpoints   partition, room -> its boards' newest checkpoint
 *   KV {env}_boards_{kind} room, window -> the window's board after it closed; {kind}: hour to year, each kept for its own time
 *   KV {env}_history       room -> its versions and the edits kept beside the log, written by the document service
 *   objects {env}_snapshots, {env}_versions, {env}_boardpoints
 */

import { type GatewayId, parseRoomKey, type RoomKey, type ServerId, type TenantId } from "../ids.ts";

export type Subjects = ReturnType<typeof subjectsOf>;

/** `env`: letters, digits, `_` and `-`. */
export function subjectsOf(env: string) {
  return {
    /** One for edits and presence: a subscription per room costs nats-server and the owner more than its messages. */
    toOwner: (room: RoomKey) => `${env}.owner.${room}`,
    editsOut: (room: RoomKey) => `${env}.edits.out.${room}`,
    toGateway: (gateway: GatewayId, room: RoomKey) => `${env}.gateway.${gateway}.${room}`,
    allToGateway: (gateway: GatewayId) => `${env}.gateway.${gateway}.*.*`,
    presenceOut: (room: RoomKey) => `${env}.presence.out.${room}`,
    presenceToGateway: (gateway: GatewayId, room: RoomKey) => `${env}.presence.gateway.${gateway}.${room}`,
    allPresenceToGateway: (gateway: GatewayId) => `${env}.presence.gateway.${gateway}.*.*`,
    gateways: `${env}.gateways`,
    log: (partition: number, room: RoomKey) => `${env}.log.${partition}.${room}`,
    logOfPartition: (partition: number | "*") => `${env}.log.${partition}.*.*`,
    /** The subject of a republished record; its wildcards are those of `logOfPartition`. */
    logRepublished: `${env}.edits.out.{{wildcard(1)}}.{{wildcard(2)}}`,
    activity: (partition: number, room: RoomKey) => `${env}.activity.${partition}.${room}`,
    activityOfPartition: (partition: number) => `${env}.activity.${partition}.*.*`,
    appended: (server: ServerId, token: string) => `${env}.appended.${server}.${token}`,
    allAppended: (server: ServerId) => `${env}.appended.${server}.*`,
    claim: (server: ServerId) => `${env}.server.${server}.claim`,
    order: (server: ServerId) => `${env}.server.${server}.order`,
    servers: `${env}.servers`,
    unreachedServers: `${env}.servers.unreached`,
    documents: `${env}.documents`,
    leaderboards: `${env}.leaderboards`,
    boards: (room: RoomKey) => `${env}.boards.${room}`,
    watchBoard: `${env}.boards.watch`,
    boardNames: `${env}.boards.names`,
    counts: `${env}.counts`,
    sanctions: `${env}.sanctions`,
    allSanctions: `${env}.sanctions.all`,
    orders: `${env}.orders`,
    locate: `${env}.placement.locate`,
    askRooms: `${env}.rooms.ask`,
    listRooms: `${env}.rooms.list`,
    askGateways: `${env}.gateways.ask`,
    operations: (kind: string) => `${env}.ops.${kind}`,
    allOperations: `${env}.ops.*`,
    webhook: (tenant: TenantId) => `${env}.webhook.${tenant}`,
    allWebhooks: `${env}.webhook.*`,
    webhooksStream: `${env}_webhooks`,
    operationsStream: `${env}_ops`,
    logStream: (partition: number) => `${env}_log_${partition}`,
    activityStream: (partition: number) => `${env}_activity_${partition}`,
    roomsBucket: `${env}_rooms`,
    planBucket: `${env}_plan`,
    pinsBucket: `${env}_pins`,
    placementBucket: `${env}_placement`,
    checkpointsBucket: `${env}_checkpoints`,
    documentsBucket: `${env}_documents`,
    snapshotsBucket: `${env}_snapshots`,
    historyBucket: `${env}_history`,
    historyObjectsBucket: `${env}_versions`,
    boardsBucket: `${env}_boards`,
    boardCheckpointsBucket: `${env}_boardpoints`,
    boardArchiveBucket: (kind: string) => `${env}_boards_${kind}`,
  } as const;
}

/** The room at the end of any per-room subject. */
export function roomOfSubject(subject: string): RoomKey | undefined {
  return parseRoomKey(subject.split(".").slice(-2).join("."));
}

/** The room's part of the log, by a hash (FNV-1a), fixed for the life of the deployment. */
export function partitionOf(room: RoomKey, partitions: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < room.length; index++) hash = Math.imul(hash ^ room.charCodeAt(index), 0x01000193);
  return (hash >>> 0) % partitions;
}
