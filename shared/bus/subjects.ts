/**
 * Every NATS subject, stream and bucket. Only this file builds and parses them, so that a name from outside can never
 * contain a wildcard. `{env}` is the environment's name (development, staging, production, or one per test run); `{room}`
 * is two tokens, tenant and room. `{p}` is a partition. Each row: subject, sender -> receiver, content.
 *
 *   {env}.owner.{room}                 gateway, document service -> owner: edits, catch-up requests, who owns the presence; check-ownership of a deleted room
 *   {env}.edits.out.{room}             log, owner -> gateways: stored records (JetStream republishes them), beacons, tentative edits
 *   {env}.gateway.{id}.{room}          owner -> one gateway: answers; also NATS's "no responders"
 *   {env}.presence.server.{id}         gateway -> one room server: presence of all rooms of the pair, in one message per tick
 *   {env}.presence.gateway.{id}.{server} room server -> one gateway: the same in the other direction; also NATS's "no responders" to a room server
 *   {env}.presence.owner.{id}.{room}   NATS's "no responders" to a gateway that asked on owner.{room} who owns the presence
 *   {env}.gateways                     gateway -> room servers: heartbeats; the members of a silent gateway leave
 *   {env}.log.{p}.{room}               owner, document service -> JetStream: records of the log, stream {env}_log_{p}; the document service appends the deletion
 *   {env}.activity.{p}.{room}          gateway -> JetStream: activities that earn points and are no edits, stream {env}_activity_{p}
 *   {env}.appended.{server}.{token}    JetStream -> owner: answers to appends
 *   {env}.server.{id}.claim            placement, gateway -> room server: request to claim a room, with a reply
 *   {env}.server.{id}.order            placement, operators, gateway, room server -> room server: order to follow, hand over, drain, or answer; with a reply
 *   {env}.servers                      room server -> all processes: heartbeats
 *   {env}.servers.unreached            gateway -> room servers: a room server that has no subscriber and may be dead
 *   {env}.documents                    document service -> gateways: heartbeats, with the address of its HTTP
 *   {env}.storage.counts               document service -> document services: stored bytes of each tenant in a partition
 *   {env}.storage.full                 document service -> gateways, document services: rooms and tenants at their limit of stored bytes
 *   {env}.storage.peaks                document service -> one gateway: highest stored bytes of each tenant on a day, for usage
 *   {env}.storage.ask                  command line -> document services: what a room stores; the one that reads its partition replies
 *   {env}.leaderboards                 leaderboard -> gateways: heartbeats, with the address of its HTTP
 *   {env}.boards.{room}                leaderboard -> gateways: top ranks of a watched board, after a change
 *   {env}.boards.watch                 gateway -> leaderboards: boards that clients of the gateway watch
 *   {env}.boards.names                 gateway -> leaderboards: display names of users
 *   {env}.counts                       gateway, room server -> gateways: usage of each process that counts towards a limit
 *   {env}.sanctions                    gateway -> gateways: bans and downgrades; .all: request for all known ones, with a reply
 *   {env}.orders                       gateway -> gateways: order to disconnect users, or request for members; each gateway replies
 *   {env}.placement.locate             gateway -> placement: request for a room's owner, with a reply
 *   {env}.rooms.ask                    command line, gateway -> room servers: request for a room's status; only its owner replies
 *   {env}.rooms.list                   gateway -> room servers: request for the rooms of each server; each replies
 *   {env}.gateways.ask                 gateway -> gateways: request for a gateway's status, or order to drain; each replies
 *   {env}.processes                    every process -> all processes: announcement of a starting process with its bus version, and the answers of those that cannot work with it
 *   {env}.vitals                       every process -> gateways, placement: its vitals, such as latencies and memory, for charts and lost processes
 *   {env}.webhook.{tenant}             document service, room server -> JetStream: events for webhooks, stream {env}_webhooks
 *   {env}.ops.{kind}                   all processes -> JetStream: events for operators, stream {env}_ops
 *
 *   KV {env}_rooms           room -> owner and epoch, written by owners and placement; a hint, never the authority
 *   KV {env}_plan            room -> newest plan of placement and its reason, written by the leading placement
 *   KV {env}_pins            room -> server that an operator wants, written by operators
 *   KV {env}_placement       the leading placement process, and the generation of its plans
 *   KV {env}_checkpoints     room -> checkpoint, written by the document service
 *   KV {env}_documents       partition of the log -> lease and floor of the document service that reads it
 *   KV {env}_boards          partition of the log -> lease and floor of the leaderboard that counts it
 *   KV {env}_boardpoints     partition, room -> newest checkpoint of its boards
 *   KV {env}_boards_{kind}   room, window -> board of a closed window; {kind}: hour to year, each with its own retention
 *   KV {env}_history         room -> versions, and the edits kept beside the log, written by the document service
 *   objects {env}_snapshots, {env}_versions, {env}_boardpoints
 */

import { fnv1a } from "../collections/hash.ts";
import { type GatewayId, parseRoomKey, type RoomKey, type ServerId, type TenantId } from "../ids.ts";

export type Subjects = ReturnType<typeof subjectsOf>;

/** `env`: letters, digits, `_` and `-`. */
export function subjectsOf(env: string) {
  return {
    toOwner: (room: RoomKey) => `${env}.owner.${room}`,
    editsOut: (room: RoomKey) => `${env}.edits.out.${room}`,
    toGateway: (gateway: GatewayId, room: RoomKey) => `${env}.gateway.${gateway}.${room}`,
    allToGateway: (gateway: GatewayId) => `${env}.gateway.${gateway}.*.*`,
    presenceToServer: (server: ServerId) => `${env}.presence.server.${server}`,
    presenceToGateway: (gateway: GatewayId, server: ServerId) => `${env}.presence.gateway.${gateway}.${server}`,
    allPresenceToGateway: (gateway: GatewayId) => `${env}.presence.gateway.${gateway}.*`,
    noPresenceOwner: (gateway: GatewayId, room: RoomKey) => `${env}.presence.owner.${gateway}.${room}`,
    allNoPresenceOwner: (gateway: GatewayId) => `${env}.presence.owner.${gateway}.*.*`,
    gateways: `${env}.gateways`,
    log: (partition: number, room: RoomKey) => `${env}.log.${partition}.${room}`,
    logOfPartition: (partition: number | "*") => `${env}.log.${partition}.*.*`,
    logOfTenant: (partition: number, tenant: TenantId) => `${env}.log.${partition}.${tenant}.*`,
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
    storageCounts: `${env}.storage.counts`,
    storageFull: `${env}.storage.full`,
    storagePeaks: `${env}.storage.peaks`,
    askStorage: `${env}.storage.ask`,
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
    processes: `${env}.processes`,
    vitals: `${env}.vitals`,
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
  return parseRoomKey(subject.slice(subject.lastIndexOf(".", subject.lastIndexOf(".") - 1) + 1));
}

/** The room server at the end of a gateway's presence subject. */
export function serverOfSubject(subject: string): ServerId {
  return subject.slice(subject.lastIndexOf(".") + 1) as ServerId;
}

/** The room's part of the log. Only `coroom split-log` changes the number of partitions. */
export function partitionOf(room: RoomKey, partitions: number): number {
  return fnv1a(room) % partitions;
}
