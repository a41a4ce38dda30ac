/** Tests the alerts with Prometheus's promtool, on a system with one failure at a time. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

import { BINARIES } from "../engines/binaries.ts";
import { type Binary, findBinary } from "../engines/find.ts";
import { ProgramError, runProgram } from "../engines/run-program.ts";

const RULES = resolve("deploy/prometheus/alerts.yaml");
const NAMES = [...readFileSync(RULES, "utf8").matchAll(/alert: (?<name>\w+)/g)].map(({ groups }) => groups!["name"]!);
const JUDGE_MS_MAX = 300_000;

/** Values by series in promtool's notation: `start+step x times`, one every 30 s. */
type Series = Readonly<Record<string, string>>;
/** `gone`: roles without a running process. `minutes`: when the firing alerts are read. */
type Case = { readonly fires: readonly string[]; readonly series?: Series; readonly gone?: readonly string[]; readonly minutes?: number };

/** All alerts but one fire within this time. */
const MINUTES = 20;
/** The slowest alert fires after one hour. */
const MINUTES_MAX = 65;
const STEPS = 2 * MINUTES_MAX;
const always = (value: number): string => `${value}x${STEPS}`;
const growing = (step: number): string => `0+${step}x${STEPS}`;

/** Grows by `step`, except for two minutes that end four minutes before the firing alerts are read. */
const growingBut = (step: number, meanwhile: number): string => {
  const steps = 2 * MINUTES - 12;
  const [before, after] = [steps * step, steps * step + 4 * meanwhile];
  return `0+${step}x${steps} ${before + meanwhile}+${meanwhile}x3 ${after + step}+${step}x8`;
};

const up = (role: string, instance: number): string => `up{job="coroom",role="${role}",instance="${role}-${instance}"}`;
const of = (name: string, role: string, labels: Readonly<Record<string, string>> = {}, instance = 1): string =>
  `${name}{${Object.entries({ job: "coroom", role, instance: `${role}-${instance}`, ...labels })
    .map(([label, value]) => `${label}="${value}"`)
    .join(",")}}`;

/** Two healthy processes per role. */
const WELL: Series = {
  ...Object.fromEntries(
    ["gateway", "room-server", "placement", "document-service", "leaderboard", "probe"].flatMap((role) =>
      [1, 2].map((instance) => [up(role, instance), always(1)]),
    ),
  ),
  [of("coroom_build_info", "gateway", { version: "1.0.0" }, 1)]: always(1),
  [of("coroom_build_info", "room-server", { version: "1.0.0" }, 1)]: always(1),
  [of("coroom_log_append_seconds_bucket", "room-server", { le: "0.01" })]: growing(100),
  [of("coroom_log_append_seconds_bucket", "room-server", { le: "1" })]: growing(100),
  [of("coroom_log_append_seconds_bucket", "room-server", { le: "+Inf" })]: growing(100),
  [of("coroom_room_saving_changes_total", "room-server", { state: "refusing" })]: always(3),
  [of("coroom_room_server_log_full", "room-server")]: always(0),
  [of("coroom_gateway_unacked_edits", "gateway")]: always(5),
  [of("coroom_edits_committed_total", "room-server")]: growing(100),
  [of("coroom_gateway_backbone_connected", "gateway")]: always(1),
  [of("coroom_gateway_owner_searches_total", "gateway", { cause: "silent" })]: growing(15),
  [of("coroom_gateway_gaps_total", "gateway")]: growing(1),
  [of("coroom_gateway_committed_frames_total", "gateway")]: growing(1_000),
  [of("coroom_documents_log_gaps_total", "document-service")]: always(1),
  [of("coroom_room_server_log_holes_total", "room-server")]: always(1),
  [of("coroom_room_server_take_over_seconds_count", "room-server")]: always(2),
  [of("coroom_placement_leads", "placement", {}, 1)]: always(1),
  [of("coroom_placement_leads", "placement", {}, 2)]: always(0),
  [of("coroom_gateway_connections", "gateway")]: always(500),
  [of("coroom_gateway_connection_ends_total", "gateway", { cause: "network" })]: growing(2),
  [of("coroom_gateway_lagging_connections", "gateway")]: always(4),
  [of("coroom_placement_rooms_without_replica", "placement", {}, 1)]: always(0),
  [of("coroom_room_server_rooms", "room-server", {}, 1)]: always(50),
  [of("coroom_room_server_rooms", "room-server", {}, 2)]: always(50),
  [of("coroom_gateway_rooms", "gateway", {}, 1)]: always(60),
  [of("coroom_gateway_rooms", "gateway", {}, 2)]: always(60),
  [of("coroom_gateway_shed_level", "gateway")]: always(0),
  [of("coroom_room_server_loop_delay_seconds", "room-server")]: always(0.01),
  [of("coroom_gateway_turned_away_total", "gateway", { reason: "herd" })]: growing(10),
  [of("coroom_gateway_limits_reached_total", "gateway", { limit: "tenant" })]: growing(10),
  [of("coroom_gateway_refused_connections_total", "gateway", { close: "tokenExpired" })]: growing(10),
  [of("coroom_gateway_partial_bytes", "gateway")]: always(100_000),
  [of("coroom_gateway_partial_bytes_max", "gateway")]: always(64_000_000),
  [of("coroom_y_unfinished_bytes", "gateway")]: always(100_000),
  [of("coroom_y_unfinished_bytes_max", "gateway")]: always(256_000_000),
  [of("coroom_presence_unsent_total", "room-server")]: always(1),
  [of("coroom_gateway_presence_unsent_total", "gateway")]: always(1),
  [of("coroom_documents_reading", "document-service", { partition: "0" }, 1)]: always(1),
  [of("coroom_documents_reading", "document-service", { partition: "0" }, 2)]: always(0),
  [of("coroom_documents_stalled_rooms", "document-service", { partition: "0" })]: always(0),
  [of("coroom_documents_disputed_yjs_ids_total", "document-service")]: always(3),
  [of("coroom_documents_full_rooms", "document-service", { partition: "0" })]: always(0),
  [of("coroom_documents_full_tenants", "document-service")]: always(0),
  [of("coroom_documents_unwiped_rooms", "document-service", { partition: "0" })]: always(0),
  [of("coroom_documents_store_unusable", "document-service")]: always(0),
  [of("coroom_documents_webhooks_waiting", "document-service", { endpoint: "acme" })]: always(20),
  [of("coroom_documents_first_content_seconds_count", "document-service", { outcome: "content" })]: growing(10),
  [of("coroom_documents_first_content_seconds_count", "document-service", { outcome: "failed" })]: always(3),
  [of("coroom_gateway_joins_total", "gateway", { outcome: "no-content" })]: always(3),
  [of("coroom_boards_counting", "leaderboard", { partition: "0" }, 1)]: always(1),
  [of("coroom_boards_counting", "leaderboard", { partition: "0" }, 2)]: always(0),
  [of("coroom_boards_behind_seconds", "leaderboard")]: always(0.5),
  [of("coroom_gateway_redis_unreached", "gateway")]: always(0),
  [of("coroom_gateway_usage_unstored_seconds", "gateway")]: always(9),
  [of("coroom_boards_redis_unreached", "leaderboard")]: always(0),
  [of("coroom_boards_rooms_aside", "leaderboard", { partition: "0" })]: always(0),
  [of("coroom_gateway_nats_lag_seconds", "gateway")]: always(0.002),
  [of("coroom_gateway_outbound_p99_seconds", "gateway")]: always(0.003),
  ...histogramOf("coroom_probe_propagation_seconds"),
  ...histogramOf("coroom_probe_ack_seconds"),
  ...histogramOf("coroom_probe_presence_seconds"),
  ...histogramOf("coroom_probe_connection_round_trip_seconds"),
  [of("coroom_probe_reconnect_seconds_count", "probe", { room: "small" })]: growing(2),
  [of("coroom_probe_connect_failures_total", "probe", { room: "small", cause: "overloaded" })]: growing(1),
  [of("coroom_probe_oldest_edit_seconds", "probe", { room: "small" })]: always(0.2),
  [of("coroom_probe_edits_lost_total", "probe", { room: "small" })]: always(0),
  [of("coroom_probe_rolled_back_total", "probe", { room: "small" })]: always(0),
  [of("coroom_probe_edits_late_total", "probe", { room: "small" })]: always(1),
};

/** Histogram of a metric in small rooms: of 100 samples per 30 s, `quick` took at most 10 ms. */
function histogramOf(name: string, quick = 100): Series {
  const bucket = (le: string): string => of(`${name}_bucket`, "probe", { room: "small", le });
  return {
    [bucket("0.01")]: growing(quick),
    [bucket("1")]: growing(100),
    [bucket("+Inf")]: growing(100),
    [of(`${name}_count`, "probe", { room: "small" })]: growing(100),
  };
}

const CASES: Readonly<Record<string, Case>> = {
  "all is well": { fires: [], minutes: MINUTES_MAX },
  "the log takes a second": {
    fires: ["CoroomLogSlow", "CoroomHopSlow"],
    series: { [of("coroom_log_append_seconds_bucket", "room-server", { le: "0.01" })]: growing(50) },
  },
  "rooms refuse edits": {
    fires: ["CoroomRoomsRefuse"],
    series: { [of("coroom_room_saving_changes_total", "room-server", { state: "refusing" })]: growing(1) },
  },
  "the storage of the log is full": {
    fires: ["CoroomLogFull"],
    series: { [of("coroom_room_server_log_full", "room-server")]: always(1) },
  },
  "edits wait, and none is committed": {
    fires: ["CoroomEditsUnacked"],
    series: { [of("coroom_edits_committed_total", "room-server")]: always(900) },
  },
  "a gateway is cut off": { fires: ["CoroomGatewayCutOff"], series: { [of("coroom_gateway_backbone_connected", "gateway")]: always(0) } },
  "the network loses connections": {
    fires: ["CoroomConnectionsLost"],
    series: { [of("coroom_gateway_connection_ends_total", "gateway", { cause: "network" })]: growing(40) },
  },
  "many clients lag": { fires: ["CoroomMembersLag"], series: { [of("coroom_gateway_lagging_connections", "gateway")]: always(60) } },
  "rooms have no replica": {
    fires: ["CoroomRoomsWithoutReplica"],
    series: { [of("coroom_placement_rooms_without_replica", "placement", {}, 1)]: always(7) },
  },
  "the balancer ignores the routing key": {
    fires: ["CoroomRoomsScattered"],
    series: { [of("coroom_gateway_rooms", "gateway", {}, 1)]: always(200) },
    minutes: MINUTES_MAX,
  },
  "clients do not finish frames": {
    fires: ["CoroomUnfinishedFrames"],
    series: { [of("coroom_gateway_partial_bytes", "gateway")]: always(60_000_000) },
  },
  "clients of the bridge do not finish messages": {
    fires: ["CoroomUnfinishedFrames"],
    series: { [of("coroom_y_unfinished_bytes", "gateway")]: always(250_000_000) },
  },
  "rooms store as much as they may": {
    fires: ["CoroomRoomFull"],
    series: { [of("coroom_documents_full_rooms", "document-service", { partition: "0" })]: always(2) },
  },
  "tenants store as much as they may": {
    fires: ["CoroomTenantFull"],
    series: { [of("coroom_documents_full_tenants", "document-service")]: always(1) },
  },
  "owners are searched for": {
    fires: ["CoroomOwnersMissing"],
    series: { [of("coroom_gateway_owner_searches_total", "gateway", { cause: "silent" })]: growing(600) },
  },
  "owners are lost, and searched for": {
    fires: [],
    series: { [of("coroom_gateway_owner_searches_total", "gateway", { cause: "lost" })]: growing(600) },
  },
  "frames are missed": { fires: ["CoroomGapsOften"], series: { [of("coroom_gateway_gaps_total", "gateway")]: growing(20) } },
  "a document service finds a gap": {
    fires: ["CoroomLogLacksEdits"],
    series: { [of("coroom_documents_log_gaps_total", "document-service")]: growing(1) },
  },
  "a room server finds a hole": {
    fires: ["CoroomLogLacksEdits"],
    series: { [of("coroom_room_server_log_holes_total", "room-server")]: growing(1) },
  },
  "one of two gateways is gone": { fires: ["CoroomProcessDown"], series: { [up("gateway", 2)]: always(0) } },
  "room servers are taken over from": {
    fires: ["CoroomRoomServerLost"],
    series: { [of("coroom_room_server_take_over_seconds_count", "room-server")]: growing(1) },
  },
  "nobody leads placement": {
    fires: ["CoroomNobodyLeadsPlacement"],
    series: { [of("coroom_placement_leads", "placement", {}, 1)]: always(0) },
  },
  "two lead placement": {
    fires: ["CoroomNobodyLeadsPlacement"],
    series: { [of("coroom_placement_leads", "placement", {}, 2)]: always(1) },
  },
  "a gateway leaves out presence": { fires: ["CoroomShedding"], series: { [of("coroom_gateway_shed_level", "gateway")]: always(2) } },
  "a room server is late": {
    fires: ["CoroomRoomServerLate", "CoroomHopSlow"],
    series: { [of("coroom_room_server_loop_delay_seconds", "room-server")]: always(0.2) },
  },
  "a room server is on time only because it throttles rooms": {
    fires: ["CoroomRoomsThrottled"],
    series: { [of("coroom_room_server_rooms_held_back", "room-server", { level: "2" })]: always(1) },
  },
  "connections are turned away": {
    fires: ["CoroomGatewayFull"],
    series: { [of("coroom_gateway_turned_away_total", "gateway", { reason: "full" })]: growing(60) },
  },
  "an application's tokens are not accepted": {
    fires: ["CoroomConnectionsRefused"],
    series: { [of("coroom_gateway_refused_connections_total", "gateway", { close: "unauthorized" })]: growing(300) },
  },
  "a tenant is at its limit": {
    fires: ["CoroomTenantAtLimit"],
    series: { [of("coroom_gateway_limits_reached_total", "gateway", { limit: "tenant-rooms" })]: growing(60) },
  },
  "presence does not fit": {
    fires: ["CoroomPresenceUnsent"],
    series: { [of("coroom_gateway_presence_unsent_total", "gateway")]: growing(1) },
  },
  "nobody reads a part of the log": {
    fires: ["CoroomDocumentsUnread"],
    series: { [of("coroom_documents_reading", "document-service", { partition: "0" }, 1)]: always(0) },
  },
  "rooms do not merge in time": {
    fires: ["CoroomDocumentsStalled"],
    series: { [of("coroom_documents_stalled_rooms", "document-service", { partition: "0" })]: always(1) },
  },
  "a user writes under another's Yjs client id": {
    fires: ["CoroomYjsIdsDisputed"],
    series: { [of("coroom_documents_disputed_yjs_ids_total", "document-service")]: growing(1) },
  },
  "an upgrade is unfinished": {
    fires: ["CoroomVersionsDiffer"],
    minutes: MINUTES_MAX,
    series: { [of("coroom_build_info", "gateway", { version: "1.1.0" }, 2)]: always(1) },
  },
  "deleted rooms stay": {
    fires: ["CoroomRoomsUnwiped"],
    minutes: MINUTES_MAX,
    series: { [of("coroom_documents_unwiped_rooms", "document-service", { partition: "0" })]: always(1) },
  },
  "events wait": {
    fires: ["CoroomWebhooksWaiting"],
    series: { [of("coroom_documents_webhooks_waiting", "document-service", { endpoint: "acme" })]: always(200) },
  },
  "the database of snapshots is down": {
    fires: ["CoroomStoreUnusable"],
    series: { [of("coroom_documents_store_unusable", "document-service")]: always(1) },
  },
  "new rooms get no content": {
    fires: ["CoroomFirstContentFails"],
    series: { [of("coroom_documents_first_content_seconds_count", "document-service", { outcome: "failed" })]: growing(10) },
  },
  "the first content of rooms cannot be written": {
    fires: ["CoroomFirstContentFails"],
    series: { [of("coroom_gateway_joins_total", "gateway", { outcome: "no-content" })]: growing(10) },
  },
  "nobody counts a part of the log": {
    fires: ["CoroomBoardsUncounted"],
    series: { [of("coroom_boards_counting", "leaderboard", { partition: "0" }, 1)]: always(0) },
  },
  "boards are behind": { fires: ["CoroomBoardsBehind"], series: { [of("coroom_boards_behind_seconds", "leaderboard")]: always(20) } },
  "a gateway does not reach Redis": {
    fires: ["CoroomRedisUnreached"],
    series: { [of("coroom_gateway_redis_unreached", "gateway")]: always(1) },
  },
  "a gateway cannot store usage": {
    fires: ["CoroomUsageUnstored"],
    series: { [of("coroom_gateway_usage_unstored_seconds", "gateway")]: always(700) },
  },
  "a leaderboard does not reach Redis": {
    fires: ["CoroomRedisUnreached"],
    series: { [of("coroom_boards_redis_unreached", "leaderboard")]: always(1) },
  },
  "rooms are not counted": {
    fires: ["CoroomBoardsAside"],
    series: { [of("coroom_boards_rooms_aside", "leaderboard", { partition: "0" })]: always(1) },
  },
  "edits take too long to others": { fires: ["CoroomPropagationSlow"], series: histogramOf("coroom_probe_propagation_seconds", 50) },
  "acknowledgements take too long": { fires: ["CoroomAcksSlow"], series: histogramOf("coroom_probe_ack_seconds", 50) },
  "pointers are seen too late": { fires: ["CoroomPresenceSlow"], series: histogramOf("coroom_probe_presence_seconds", 50) },
  "an edit waits": {
    fires: ["CoroomEditsStuck"],
    series: { [of("coroom_probe_oldest_edit_seconds", "probe", { room: "small" })]: always(30) },
  },
  "an edit is lost": {
    fires: ["CoroomEditsLost"],
    series: { [of("coroom_probe_edits_lost_total", "probe", { room: "small" })]: growing(1) },
  },
  "edits are taken back": {
    fires: ["CoroomEditsLost"],
    series: { [of("coroom_probe_rolled_back_total", "probe", { room: "small" })]: growing(1) },
  },
  "edits are late": {
    fires: ["CoroomEditsLate"],
    series: { [of("coroom_probe_edits_late_total", "probe", { room: "small" })]: growing(1) },
  },
  "connections fail": {
    fires: ["CoroomReconnectsFail"],
    series: { [of("coroom_probe_connect_failures_total", "probe", { room: "small", cause: "overloaded" })]: growing(10) },
  },
  "connections failed for two minutes": {
    fires: [],
    series: { [of("coroom_probe_connect_failures_total", "probe", { room: "small", cause: "overloaded" })]: growingBut(1, 50) },
  },
  "edits took too long to others for two minutes": {
    fires: [],
    series: { [of("coroom_probe_propagation_seconds_bucket", "probe", { room: "small", le: "0.01" })]: growingBut(100, 0) },
  },
  "no connection comes about": {
    fires: ["CoroomReconnectsFail"],
    series: { [of("coroom_probe_reconnect_seconds_count", "probe", { room: "small" })]: "_" },
  },
  "lines are slow": { fires: ["CoroomHopSlow"], series: histogramOf("coroom_probe_connection_round_trip_seconds", 50) },
  "NATS is slow": { fires: ["CoroomHopSlow"], series: { [of("coroom_gateway_nats_lag_seconds", "gateway")]: always(0.05) } },
  "a gateway reaches its clients late": {
    fires: ["CoroomHopSlow"],
    series: { [of("coroom_gateway_outbound_p99_seconds", "gateway")]: always(0.1) },
  },
  "no edit arrives": {
    fires: ["CoroomProbesSilent"],
    series: { [of("coroom_probe_propagation_seconds_count", "probe", { room: "small" })]: always(900) },
  },
  "all probes are gone": { gone: ["probe"], fires: ["CoroomProcessDown", "CoroomProbesSilent"] },
  "there was never a probe": {
    fires: [],
    series: Object.fromEntries(
      Object.keys(WELL)
        .filter((series) => series.includes('role="probe"'))
        .map((series) => [series, "_"]),
    ),
  },
  "all gateways are gone": { gone: ["gateway"], fires: ["CoroomRoleDown", "CoroomProcessDown"] },
  "all room servers are gone": { gone: ["room-server"], fires: ["CoroomRoleDown", "CoroomProcessDown", "CoroomEditsUnacked"] },
  "all of placement is gone": { gone: ["placement"], fires: ["CoroomProcessDown", "CoroomNobodyLeadsPlacement"] },
  "all document services are gone": { gone: ["document-service"], fires: ["CoroomRoleDown", "CoroomProcessDown", "CoroomDocumentsUnread"] },
  "all leaderboards are gone": { gone: ["leaderboard"], fires: ["CoroomProcessDown", "CoroomBoardsUncounted"] },
  "there was never a leaderboard": {
    fires: [],
    series: Object.fromEntries(
      Object.keys(WELL)
        .filter((series) => series.includes("leaderboard"))
        .map((series) => [series, "_"]),
    ),
  },
};

let promtool: Binary;
let folder: string;
beforeAll(async () => {
  promtool = await findBinary(BINARIES.promtool);
  folder = mkdtempSync(join(tmpdir(), "coroom-alerts-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("[ALT1] Prometheus accepts the alerts", async () => {
  expect(await runProgram(promtool.path, ["check", "rules", RULES], { msMax: JUDGE_MS_MAX, env: promtool.env })).toContain(
    `${NAMES.length} rules found`,
  );
});

test("[ALT2] each failure fires its alerts and no others", { timeout: 2 * JUDGE_MS_MAX }, async () => {
  const file = {
    rule_files: [RULES],
    evaluation_interval: "1m", // Prometheus's default.
    tests: Object.entries(CASES).map(([name, one]) => promtoolTest(name, one)),
  };
  const path = join(folder, "cases.json"); // JSON is YAML.
  writeFileSync(path, JSON.stringify(file));
  await runProgram(promtool.path, ["test", "rules", path], { msMax: JUDGE_MS_MAX, env: promtool.env }).catch((error: unknown) => {
    throw error instanceof ProgramError ? new Error(error.errorOutput) : error;
  });
});

/** For a case that fails promtool prints the expression with the case's name, and the expected and the firing alerts. */
function promtoolTest(name: string, { fires, series, gone = [], minutes = MINUTES }: Case): object {
  const isGone = (one: string): boolean => gone.some((role) => one.includes(`role="${role}"`));
  return {
    name,
    interval: "30s",
    input_series: Object.entries({ ...WELL, ...series }).map(([one, value]) => ({
      series: one,
      values: isGone(one) ? (one.startsWith("up{") ? always(0) : "_") : value,
    })),
    promql_expr_test: [
      {
        expr: `group by (alertname) (ALERTS{alertstate="firing"}) # ${name}`,
        eval_time: `${minutes}m`,
        exp_samples: fires.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  };
}

test("[ALT3] every alert has a test", () => {
  expect(NAMES.filter((name) => !Object.values(CASES).some(({ fires }) => fires.includes(name)))).toEqual([]);
});
