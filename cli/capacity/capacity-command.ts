/** `coroom capacity`: reads its flags, and takes the bounds of a process from the defaults of the settings. */

import { readSettings, SettingError, type Values } from "../../shared/settings/settings.ts";
import { documentServiceSettings } from "../../document-service/config.ts";
import { admissionSettings } from "../../gateway/settings/admission.ts";
import { leaderboardSettings } from "../../leaderboard/config.ts";
import { roomServerSettings } from "../../room-server/config.ts";
import { capacitySettings } from "../command-settings.ts";
import { capacityReport, figuresReport } from "./capacity-report.ts";
import { type CapacityLoad, planCapacity, type ProcessLimits } from "./capacity.ts";
import { FIGURES } from "./figures.ts";

export const DEFAULT_LIMITS: ProcessLimits = {
  connectionsPerGateway: admissionSettings.connectionsMax.fallback,
  roomsPerRoomServer: roomServerSettings.roomsMax.fallback,
  roomsPerDocumentService: documentServiceSettings.documentsMax.fallback,
  roomsPerLeaderboard: leaderboardSettings.boardRoomsMax.fallback,
  flatParticipantsMax: roomServerSettings.flatParticipantsMax.fallback,
};

/** A document is assumed to be open a tenth of the time. */
const STORED_ROOMS_PER_OPEN_ROOM = 10;

export function capacityText(config: Values<typeof capacitySettings>): string {
  const load = loadOf(config);
  return `${capacityReport(planCapacity(load, DEFAULT_LIMITS, FIGURES), load)}\n\n${figuresReport(FIGURES)}`;
}

/** docs/CAPACITY.md. `npm run capacity-doc` updates it. */
export function capacityDocument(): string {
  return [
    "# Capacity",
    "",
    "`coroom capacity` computes what a load needs from measured costs. `npm run capacity-doc` generates this page with the same code. Below is the load that Coroom is designed for: 100,000 rooms with a median of 4 and a 95th percentile of 30 participants, and 100 rooms of 1,000.",
    "",
    "## The full size",
    "",
    ...documentPart({}),
    "",
    "## A small deployment",
    "",
    "`coroom capacity --rooms 500 --large-rooms 0 --edits 500 --cursors 10000`:",
    "",
    ...documentPart({ rooms: "500", largeRooms: "0", edits: "500", cursors: "10000" }),
    "",
    "## A million documents",
    "",
    "`coroom capacity --rooms 10000 --large-rooms 10 --edits 5000 --cursors 500000 --stored-rooms 1000000`:",
    "",
    ...documentPart({ rooms: "10000", largeRooms: "10", edits: "5000", cursors: "500000", storedRooms: "1000000" }),
    "",
    "## Without the routing key",
    "",
    "`coroom capacity --routing-key false`, the full size behind a balancer that spreads the members of each room ([ADR 72](adr/0072-no-fan-out-workers-beside-the-routing-key.md)):",
    "",
    ...documentPart({ routingKey: "false" }),
    "",
    "## How it is computed",
    "",
    "- Each role's CPU is the sum of events per second times their cost. A process is one JavaScript thread, and plans use 60% of a core for it.",
    "- Every process count is large enough that the load still fits when one zone is lost.",
    "- A room server gets at most 5,000 rooms, so that its loss is taken over quickly.",
    "- The members of a room meet on one gateway, as `npm run bench -- routing` computes for a balancer that hashes the routing key, and confirms with a small fleet. Without it (`--routing-key false`), members are spread at random, and each further gateway of a room receives all its edits and cursors.",
    "- Not in the plan: announcements of a room's head. Its owner sends up to three to each gateway of the room, in the seconds after its last edit ([ADR 54](adr/0054-rooms-meet-on-a-gateway.md) counts them). The costs of an edit were measured in rooms without such pauses.",
    "- nats-server uses several cores. Its plan has one server for each copy of the log. Its processes are the least, its cores decide how large their machines are.",
    "- The costs were measured with one process of each role on one machine. Measure your own machines: `npm run bench -- unit-costs`. Check the plan on a running cluster: `coroom bench` (`docs/operations/load-test.md`).",
    "- A log partition is one stream with one leader. The plan counts one append for each edit, and uses 60% of the measured appends, which depend on the disk.",
    "- A stored room is a document that exists, open or not. Plans take ten for each open room unless `--stored-rooms` names their number, and assume that as many users have edited a room as an average open room has participants. Boards of the current hour, day and week are counted for open rooms only.",
    "- Not in the plan of stored rooms: the documents themselves and further versions in their history; the archive of closed windows, an entry in NATS for each window with points; boards of editors and commenters (`COROOM_BOARD_ROLES`); and a user's entries in the boards of the tenant.",
    "- The costs are one run each, on a machine that other programs used.",
    "",
    "## Measured costs",
    "",
    figuresReport(FIGURES),
    "",
  ].join("\n");
}

function documentPart(flags: Readonly<Record<string, string>>): readonly string[] {
  const load = loadOf(readSettings(capacitySettings, { flags, env: {} }));
  return [capacityReport(planCapacity(load, DEFAULT_LIMITS, FIGURES), load)];
}

function loadOf({ edits, cursors, routingKey, replicas, sync, ...config }: Values<typeof capacitySettings>): CapacityLoad {
  if (config.p95Participants < config.medianParticipants)
    throw new SettingError("--p95-participants must not be less than --median-participants: 95% of the rooms have at most as many");
  const openRooms = config.rooms + config.largeRooms;
  const storedRooms = config.storedRooms === 0 ? STORED_ROOMS_PER_OPEN_ROOM * openRooms : config.storedRooms;
  if (storedRooms < openRooms)
    throw new SettingError("--stored-rooms must not be less than --rooms and --large-rooms together: an open room is stored too");
  return {
    ...config,
    storedRooms,
    editsPerSecond: edits,
    cursorsPerSecond: cursors,
    isRoutedByKey: routingKey,
    logReplicas: Number(replicas) as CapacityLoad["logReplicas"],
    isSynced: sync,
  };
}
