/**
 * The faults of a run. All are drawn from the seed before the run begins, so a failing run can be repeated with fewer
 * faults (minimize.ts). Every fault ends by itself.
 */

import type { Prng } from "../../shared/collections/prng.ts";
import type { Cluster } from "./cluster.ts";
import * as engine from "./engine-faults.ts";
import { postEdit, setApplication } from "./application-faults.ts";
import { useHistory, writeWithKey } from "./keyed-write-faults.ts";
import { kickUser } from "./kicks.ts";
import { makeDocument } from "./makers.ts";
import { pasteText } from "./pastes.ts";
import * as processes from "./process-faults.ts";
import * as services from "./service-faults.ts";
import { draw, type Size } from "./sizes.ts";
import { sendAnything } from "./stranger.ts";
import type { Met, FaultParameters, Strike } from "./strike.ts";
import * as tabs from "./tab-faults.ts";
import { changeRights, takeTokensAway } from "./token-faults.ts";
import { leaveFramesUnfinished } from "./unfinished-stranger.ts";
import { setEndpoint } from "./webhook-faults.ts";

export type Fault = FaultParameters & { readonly kind: FaultKind };

export type FaultKind = keyof typeof FAULTS;

const EDIT_PATH_FAULTS = {
  "gateway killed": processes.endGateway("killed"),
  "gateway's machine lost": processes.endGateway("lost"),
  "gateway stopped": processes.endGateway("stopped"),
  "gateway paused": processes.pause((cluster, fault) => cluster.gateway(fault)),
  "gateway cut off": processes.cutOff((cluster, fault) => cluster.gateway(fault)),
  "gateway's sends stalled": processes.stall((cluster, fault) => cluster.gateway(fault), "up"),
  "gateway receives nothing": processes.stall((cluster, fault) => cluster.gateway(fault), "down"),
  "gateway's connection stalled": processes.stall((cluster, fault) => cluster.gateway(fault), "both"),
  "gateway's presence cut off": processes.cutOffPresence((cluster, fault) => cluster.gateway(fault)),
  "room server's presence cut off": processes.cutOffPresence((cluster, fault) => cluster.roomServer(fault)),
  "room server killed": processes.endRoomServer("killed"),
  "room server's machine lost": processes.endRoomServer("lost"),
  "room server stopped": processes.endRoomServer("stopped"),
  "room server paused": processes.pause((cluster, fault) => cluster.roomServer(fault)),
  "room server cut off": processes.cutOff((cluster, fault) => cluster.roomServer(fault)),
  "room server's sends stalled": processes.stall((cluster, fault) => cluster.roomServer(fault), "up"),
  "room server receives nothing": processes.stall((cluster, fault) => cluster.roomServer(fault), "down"),
  "room server's connection stalled": processes.stall((cluster, fault) => cluster.roomServer(fault), "both"),
  "room claimed at random": processes.claimAtRandom,
  "room moved": processes.moveAtRandom,
  "placement killed": processes.endPlacement,
  "placement paused": processes.pause((cluster, fault) => cluster.placement(fault)),
  "placement cut off": processes.cutOff((cluster, fault) => cluster.placement(fault)),
  "date set back or ahead": processes.setDate,
  "clock fast or slow": processes.setRate,
  "NATS restarted": processes.restartNats,
  "log loses its end": engine.loseEndOfLog,
  "NATS nodes cut from each other": engine.cutNodes,
  "log's old leader answers": engine.leaveOldLeader,
  "log silent": engine.setCondition("silent"),
  "log refusing": engine.setCondition("refusing"),
  "log's answers lost": engine.setCondition("mute"),
  "log's leader changing": engine.setCondition("changing-leader"),
  "log slow": engine.slowLog,
  "storage of the log full": engine.setCondition("full"),
  "room deleted": engine.deleteRoom,
  "document made of content": makeDocument,
  "log trimmed": engine.checkpointAndTrim,
  "rooms bucket lagging": engine.lagEntries,
  "rooms bucket away": engine.takeEntriesAway,
  "snapshots away": engine.takeSnapshotsAway,
  "tab's connection broken": tabs.breakConnection,
  "tab's sends lost": tabs.silence({ up: true, down: false }),
  "tab receives nothing": tabs.silence({ up: false, down: true }),
  "tab's connection silent": tabs.silence({ up: true, down: true }),
  "tab offline": tabs.takeOffline,
  "tab asleep": processes.pause((cluster, { whom }) => cluster.tab(whom)),
  "tab too slow": tabs.slow,
  "tab left for a while": tabs.leave,
  "tab closed, another opened": tabs.replace,
  "tab loaded again": tabs.loadAgain,
  "hostile client in the room": sendAnything,
  "user banned": processes.banUser,
  "large text pasted": pasteText,
  "second room opened": tabs.openSecondRoom,
  "user kicked": kickUser,
  "user's rights changed": changeRights,
  "token service away": takeTokensAway,
  "frames left unfinished": leaveFramesUnfinished,
} as const satisfies Record<string, Strike>;

const SERVICE_FAULTS = {
  "document service killed": services.endDocumentService("killed"),
  "document service's machine lost": services.endDocumentService("lost"),
  "document service stopped": services.endDocumentService("stopped"),
  "document service paused": services.pauseDocumentService,
  "document service cut off": services.cutOffDocumentService,
  "document service's connection stalled": services.stallDocumentService,
  "leaderboard killed": services.endLeaderboard("killed"),
  "leaderboard's machine lost": services.endLeaderboard("lost"),
  "leaderboard stopped": services.endLeaderboard("stopped"),
  "leaderboard paused": services.pauseLeaderboard,
  "leaderboard cut off": services.cutOffLeaderboard,
  "leaderboard's connection stalled": services.stallLeaderboard,
  "object store away": services.takeObjectsAway,
  "object store damages writes": services.damageObjects,
  "storage of an object store full": services.fillObjects,
  "Redis away": services.takeRedisAway,
  "Redis loses data": services.loseEndOfRedis,
  "lease buckets lose their ends": services.loseEndsOfLeases,
  "log and stores lose their ends apart": services.loseEndsApart,
  "edit with a key repeated over HTTP": writeWithKey,
  "history read over HTTP": useHistory("read"),
  "earlier state restored": useHistory("restore"),
} as const satisfies Record<string, Strike>;

/** Only in runs with an application. */
const APPLICATION_FAULTS = {
  "application slow": setApplication("slow"),
  "application hung": setApplication("hung"),
  "application starting": setApplication("starting"),
  "new room edited over HTTP": postEdit,
} as const satisfies Record<string, Strike>;

/** A run with one of these has webhooks. */
const WEBHOOK_FAULTS = {
  "webhook endpoint failing": setEndpoint("failing"),
  "webhook endpoint hung": setEndpoint("hung"),
  "webhook endpoint's answers lost": setEndpoint("mute"),
} as const satisfies Record<string, Strike>;

export const FAULTS = { ...EDIT_PATH_FAULTS, ...SERVICE_FAULTS, ...APPLICATION_FAULTS, ...WEBHOOK_FAULTS };

const STORMS_MAX = 4;
const STORM_MS = 1_500;
const MS_MIN = 50;
const AIMED_CHANCE = 0.6;
/** Chance that a run deletes a room. It is small because after the deletion all edits are refused. */
const DELETION_CHANCE = 0.05;
/**
 * Chance that two writers create a document from content at the start of a run. Later it would always be refused,
 * because people have typed.
 */
const MAKING_CHANCE = 0.3;
const MAKING_MS_MAX = 50;
/** Chance that the log loses acknowledged records in a run. In all other runs the judge reports any missing record. */
const LOSS_CHANCE = 0.15;
const LOSSES_MAX = 2;
/** Chance that a run has faults of presence connections. */
const PRESENCE_CHANCE = 0.3;
const PRESENCE_FAULTS_MAX = 4;
/** Higher with services: checkpoints, leases and boards then refer to lost records. */
const LOSS_WITH_SERVICES_CHANCE = 0.3;
const LOSSES_WITH_SERVICES = ["log loses its end", "log and stores lose their ends apart"] as const;
/** Drawn apart from other faults, and not in every run. */
const PRESENCE_FAULTS = ["gateway's presence cut off", "room server's presence cut off"] as const;
/** Drawn last, with `RARE_CHANCE` for each. */
const RARE_FAULTS = ["hostile client in the room", "storage of the log full"] as const;
/** Of a run with document services, drawn after all others. */
const RARE_SERVICE_FAULTS = ["storage of an object store full"] as const;
const RARE_CHANCE = 0.1;
/** Chance that a user is banned. The other members must not be affected. */
const BAN_CHANCE = 0.1;
/** Chance that people paste large texts. */
const PASTE_CHANCE = 0.2;
const PASTES_MAX = 5;
/** Chance that pages have two rooms on their connection. */
const SECOND_ROOM_CHANCE = 0.2;
const SECOND_ROOMS_MAX = 3;
/** Chance that users are kicked. */
const KICK_CHANCE = 0.2;
const KICKS_MAX = 4;
/** Chance that tokens expire within seconds and rights change. */
const TOKENS_CHANCE = 0.15;
const TOKEN_FAULTS_MAX = 4;
const TOKEN_FAULTS = ["user's rights changed", "user's rights changed", "token service away"] as const;
/** Chance that a hostile client leaves frames unfinished. People then paste texts too. */
const UNFINISHED_CHANCE = 0.1;
const UNFINISHED_FAULTS = ["frames left unfinished", "large text pasted", "large text pasted"] as const;
/** Chance that backends write over HTTP with keys. They begin early, so that faults come between the repeats. */
const KEYED_CHANCE = 0.25;
const KEYED_MAX = 4;
/** Chance that clients read the history and restore earlier states. */
const HISTORY_CHANCE = 0.3;
const HISTORY_MAX = 5;
const HISTORY_KINDS = ["history read over HTTP", "earlier state restored"] as const;
/** Chance that the application does not answer in the beginning, and the time in which new rooms wait for it. */
const OPENING_CHANCE = 0.7;
const OPENING_MS = 1_000;
const OPENING_FAULTS = ["application slow", "application hung", "application starting"] as const;
const CHOSEN_APART: ReadonlySet<string> = new Set([
  "room deleted",
  "document made of content",
  "log loses its end",
  ...PRESENCE_FAULTS,
  ...RARE_FAULTS,
  ...RARE_SERVICE_FAULTS,
  "user banned",
  "large text pasted",
  "second room opened",
  "user kicked",
  ...TOKEN_FAULTS,
  "frames left unfinished",
  "edit with a key repeated over HTTP",
  ...HISTORY_KINDS,
  ...Object.keys(APPLICATION_FAULTS),
  ...Object.keys(WEBHOOK_FAULTS),
]);
/** In a run with document services, the services trim the log. Lost ends are drawn apart. */
const NOT_WITH_SERVICES: ReadonlySet<string> = new Set([...CHOSEN_APART, "log trimmed", "log and stores lose their ends apart"]);

/** Chance that a run with document services has webhooks. */
const WEBHOOKS_CHANCE = 0.5;
const WEBHOOK_FAULTS_MAX = 3;
const WEBHOOK_KINDS = Object.keys(WEBHOOK_FAULTS) as (keyof typeof WEBHOOK_FAULTS)[];

const SERVICE_KINDS = (Object.keys(SERVICE_FAULTS) as FaultKind[]).filter((kind) => !NOT_WITH_SERVICES.has(kind));

/** In most runs the faults come in groups (storms), so that they overlap. */
export function drawFaults(prng: Prng, { faultyMs, faultMsMax, faults, trims, services: tiers, hasApplication }: Size): Fault[] {
  const kinds =
    tiers === undefined
      ? (Object.keys(EDIT_PATH_FAULTS) as FaultKind[]).filter((kind) => !CHOSEN_APART.has(kind))
      : (Object.keys(FAULTS) as FaultKind[]).filter((kind) => !NOT_WITH_SERVICES.has(kind));
  const storms = Array.from({ length: prng.below(STORMS_MAX) }, () => prng.below(faultyMs));
  const drawTime = (): number =>
    storms.length === 0 ? prng.below(faultyMs) : Math.min(faultyMs - 1, storms[prng.below(storms.length)]! + prng.below(STORM_MS));
  const drawOne = (kind: FaultKind): Fault => ({
    kind,
    atMs: drawTime(),
    forMs: MS_MIN + prng.below(faultMsMax[prng.below(faultMsMax.length)]!),
    whom: prng.unit(),
    how: prng.unit(),
    aimed: prng.chance(AIMED_CHANCE),
  });
  const drawPresence = (): Fault[] =>
    prng.chance(PRESENCE_CHANCE)
      ? Array.from({ length: 1 + prng.below(PRESENCE_FAULTS_MAX) }, () => drawOne(PRESENCE_FAULTS[prng.below(PRESENCE_FAULTS.length)]!))
      : [];
  const drawRare = (of: readonly FaultKind[]): Fault[] => of.flatMap((kind) => (prng.chance(RARE_CHANCE) ? [drawOne(kind)] : []));
  const drawWebhooks = (): Fault[] =>
    prng.chance(WEBHOOKS_CHANCE)
      ? Array.from({ length: 1 + prng.below(WEBHOOK_FAULTS_MAX) }, () => drawOne(WEBHOOK_KINDS[prng.below(WEBHOOK_KINDS.length)]!))
      : [];
  const drawBan = (): Fault[] => (prng.chance(BAN_CHANCE) ? [drawOne("user banned")] : []);
  const drawPastes = (): Fault[] =>
    prng.chance(PASTE_CHANCE) ? Array.from({ length: 1 + prng.below(PASTES_MAX) }, () => drawOne("large text pasted")) : [];
  /** Mostly early, so that other faults follow. */
  const drawSecondRooms = (): Fault[] =>
    prng.chance(SECOND_ROOM_CHANCE)
      ? Array.from({ length: 1 + prng.below(SECOND_ROOMS_MAX) }, () => ({
          ...drawOne("second room opened"),
          atMs: Math.floor(prng.unit() ** 2 * faultyMs),
        }))
      : [];
  const drawKicks = (): Fault[] =>
    prng.chance(KICK_CHANCE) ? Array.from({ length: 1 + prng.below(KICKS_MAX) }, () => drawOne("user kicked")) : [];
  const drawTokens = (): Fault[] =>
    prng.chance(TOKENS_CHANCE)
      ? Array.from({ length: 1 + prng.below(TOKEN_FAULTS_MAX) }, () => drawOne(TOKEN_FAULTS[prng.below(TOKEN_FAULTS.length)]!))
      : [];
  const drawUnfinished = (): Fault[] => (prng.chance(UNFINISHED_CHANCE) ? UNFINISHED_FAULTS.map((kind) => drawOne(kind)) : []);
  const drawKeyed = (): Fault[] =>
    prng.chance(KEYED_CHANCE)
      ? Array.from({ length: 1 + prng.below(KEYED_MAX) }, () => ({
          ...drawOne("edit with a key repeated over HTTP"),
          atMs: Math.floor(prng.unit() * 0.6 * faultyMs),
        }))
      : [];
  const drawHistory = (): Fault[] =>
    prng.chance(HISTORY_CHANCE)
      ? Array.from({ length: 1 + prng.below(HISTORY_MAX) }, () => ({
          ...drawOne(HISTORY_KINDS[prng.below(HISTORY_KINDS.length)]!),
          atMs: Math.floor((0.2 + prng.unit() * 0.7) * faultyMs),
        }))
      : [];
  /** Faults while new rooms wait for their content. */
  const drawOpening = (): Fault[] => [
    ...(prng.chance(OPENING_CHANCE) ? [{ ...drawOne(OPENING_FAULTS[prng.below(OPENING_FAULTS.length)]!), atMs: 0 }] : []),
    ...(prng.chance(0.5) ? [{ ...drawOne("new room edited over HTTP"), atMs: prng.below(OPENING_MS) }] : []),
    ...Array.from({ length: prng.below(4) }, () => ({ ...drawOne(kinds[prng.below(kinds.length)]!), atMs: prng.below(OPENING_MS) })),
  ];
  const drawn = Array.from({ length: draw(faults, prng) }, () => drawOne(kinds[prng.below(kinds.length)]!));
  if (tiers !== undefined) {
    // Additional faults of services, so that the edit path has about as many faults as without services.
    const more = Array.from({ length: 3 + prng.below(4) }, () => drawOne(SERVICE_KINDS[prng.below(SERVICE_KINDS.length)]!));
    const deletedHere = prng.chance(DELETION_CHANCE) ? [drawOne("room deleted")] : [];
    const madeHere = prng.chance(MAKING_CHANCE) ? [{ ...drawOne("document made of content"), atMs: prng.below(MAKING_MS_MAX) }] : [];
    const lostHere = prng.chance(LOSS_WITH_SERVICES_CHANCE)
      ? [drawOne(LOSSES_WITH_SERVICES[prng.below(LOSSES_WITH_SERVICES.length)]!)]
      : [];
    const rare = [...drawPresence(), ...drawRare(RARE_FAULTS), ...drawRare(RARE_SERVICE_FAULTS)];
    const opening = hasApplication ? drawOpening() : [];
    const usual = [...drawWebhooks(), ...drawBan(), ...drawPastes(), ...drawSecondRooms(), ...drawKicks(), ...drawKeyed(), ...drawTokens()];
    const later = [...usual, ...drawHistory(), ...drawUnfinished()];
    return [...drawn, ...more, ...deletedHere, ...madeHere, ...lostHere, ...rare, ...opening, ...later].sort((a, b) => a.atMs - b.atMs);
  }
  // Trimming is normal operation, not a fault. Frequent trims are necessary to show its effects.
  const trimmed = prng.chance(0.5) ? Array.from({ length: prng.below(trims) }, () => drawOne("log trimmed")) : [];
  const deleted = prng.chance(DELETION_CHANCE) ? [drawOne("room deleted")] : [];
  const made = prng.chance(MAKING_CHANCE) ? [{ ...drawOne("document made of content"), atMs: prng.below(MAKING_MS_MAX) }] : [];
  const lost = prng.chance(LOSS_CHANCE) ? Array.from({ length: 1 + prng.below(LOSSES_MAX) }, () => drawOne("log loses its end")) : [];
  const rare = [
    ...drawPresence(),
    ...drawRare(RARE_FAULTS),
    ...drawBan(),
    ...drawPastes(),
    ...drawSecondRooms(),
    ...drawKicks(),
    ...drawTokens(),
    ...drawUnfinished(),
  ];
  return [...drawn, ...trimmed, ...deleted, ...made, ...lost, ...rare].sort((a, b) => a.atMs - b.atMs);
}

export function hasWebhooks(faults: readonly Fault[]): boolean {
  return faults.some(({ kind }) => kind in WEBHOOK_FAULTS);
}

export function strike(cluster: Cluster, fault: Fault): Met {
  return FAULTS[fault.kind](cluster, fault);
}

export function describeFault({ kind, atMs, forMs, whom, how, aimed }: Fault): string {
  return `${(atMs / 1_000).toFixed(3)} s: ${kind} (${forMs} ms, ${whom.toFixed(3)}, ${how.toFixed(3)}${aimed === true ? ", aimed" : ""})`;
}
