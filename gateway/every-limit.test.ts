/**
 * Each limit has a number, a metric and a test that reaches it. Every setting is listed here as a limit or as no limit,
 * so that no limit lacks a metric or a test.
 */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type Limit, missingOf } from "../shared/testing/limits.ts";
import { gatewaySettings } from "./config.ts";
import { gatewayMetrics } from "./metrics.ts";

type Setting = keyof typeof gatewaySettings;

const LIMITS: readonly Limit<Setting>[] = [
  { settings: ["connectionsMax"], metric: "coroom_gateway_turned_away_total", tests: ["LIM10"] },
  { settings: ["connectsPerSecondMax"], metric: "coroom_gateway_connects_waiting", tests: ["GW24", "ADM3"] },
  { settings: ["connectQueueMax"], metric: "coroom_gateway_turned_away_total", tests: ["GW23", "GW24"] },
  { settings: ["connectQueueBytesMax"], metric: "coroom_gateway_turned_away_total", tests: ["LOB3", "LOB4"] },
  { settings: ["connectionsPerIpMax"], metric: "coroom_gateway_turned_away_total", tests: ["LIM1", "LIM13", "LIM20", "QUO14"] },
  { settings: ["connectionsPerUserMax"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM17", "LIM18", "QUO13"] },
  { settings: ["connectionsPerTenantMax"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM2", "QUO8", "QUO9"] },
  { settings: ["roomsPerTenantMax"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM4"] },
  { settings: ["participantsPerRoomMax"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM3"] },
  { settings: ["userEditsPerSecondMax"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM21", "QUO15"] },
  { settings: ["tenantEditsPerSecondMax"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM5"] },
  {
    settings: ["roomDeliveryBytesBurst", "roomDeliveryBytesPerSecond", "tenantDeliveryBytesBurst", "tenantDeliveryBytesPerSecond"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["RDL1", "RDL3", "RDL9"],
  },
  {
    settings: ["tenantBoardBytesBurst", "tenantBoardBytesPerSecond"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["BTU1", "BTU2", "GBO22"],
  },
  { settings: ["roomsPerConnectionMax"], metric: "coroom_gateway_joins_total", tests: ["LIM8"] },
  { settings: ["frameBytesMax"], metric: "coroom_gateway_closes_total", tests: ["LIM8", "WHF2"] },
  { settings: ["messageBytesMax"], metric: "coroom_gateway_closes_total", tests: ["HALF4"] },
  { settings: ["partialBytesMax"], metric: "coroom_gateway_partial_bytes", tests: ["HALF4", "WHF3"] },
  { settings: ["editBytesMax"], metric: "coroom_gateway_nacks_total", tests: ["LIM8"] },
  {
    settings: ["editBurst", "editsPerSecond", "bytesBurst", "bytesPerSecond", "controlBurst", "controlsPerSecond"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["LIM6"],
  },
  { settings: ["resendBurst", "resendsPerSecond"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM8", "RATE4"] },
  { settings: ["catchUpBytesBurst", "catchUpBytesPerSecond"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM9"] },
  { settings: ["ownerSearchesMax"], metric: "coroom_gateway_owner_searches_waiting", tests: ["OWS1"] },
  { settings: ["abusePointsMax", "tenantAbusePointsMax"], metric: "coroom_gateway_abuse_total", tests: ["ABS6", "ABS7"] },
  { settings: ["suspectsMax"], metric: "coroom_gateway_suspects", tests: ["ABU5"] },
  { settings: ["sanctionsMax"], metric: "coroom_gateway_sanctions", tests: ["SAN4", "SAN6"] },
  { settings: ["waitingTokensMax"], metric: "coroom_gateway_tokens_waiting", tests: ["JWT8"] },
  { settings: ["knownTokensMax"], metric: "coroom_gateway_token_checks_total", tests: ["TOK3"] },
  {
    settings: ["snapshotBurst", "snapshotsPerSecond", "gatewaySnapshotBurst", "gatewaySnapshotsPerSecond"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["LIM7"],
  },
  { settings: ["snapshotSharedBytesMax"], metric: "coroom_gateway_limits_reached_total", tests: ["SNAP4", "SNAP7"] },
  { settings: ["streamedAnswersMax", "streamedAnswersPerUserMax"], metric: "coroom_gateway_limits_reached_total", tests: ["STM1", "STM2"] },
  {
    settings: ["documentWriteBurst", "documentWritesPerSecond", "writesMax", "writeMsMax"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["WRI3", "WRI4"],
  },
  { settings: ["bodiesBytesMax"], metric: "coroom_gateway_limits_reached_total", tests: ["HBO2", "LIM19"] },
  { settings: ["answerStallMsMax"], metric: "coroom_gateway_limits_reached_total", tests: ["SLOW2"] },
  { settings: ["boardReadBurst", "boardReadsPerSecond"], metric: "coroom_gateway_board_reads_total", tests: ["HTTP22"] },
  { settings: ["boardSharedBytesMax"], metric: "coroom_gateway_board_reads_total", tests: ["SNAP4", "HTTP31"] },
  { settings: ["adminReadBurst", "adminReadsPerSecond"], metric: "coroom_gateway_limits_reached_total", tests: ["OPR6"] },
  { settings: ["usageTenantsMax"], metric: "coroom_gateway_limits_reached_total", tests: ["USG2", "USG4", "USG12", "USG16"] },
  { settings: ["usageNamedTenantsMax"], metric: "coroom_gateway_tenant_connections", tests: ["USG8", "USG13"] },
  { settings: ["activityBurst", "activitiesPerSecond"], metric: "coroom_gateway_limits_reached_total", tests: ["LIM11"] },
  {
    settings: ["tenantActivityBytesBurst", "tenantActivityBytesPerSecond"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["HTTP37"],
  },
  { settings: ["boardsPerConnectionMax"], metric: "coroom_gateway_board_watchers", tests: ["GBO7"] },
  { settings: ["helloMsMax"], metric: "coroom_gateway_closes_total", tests: ["HALF2", "HALF3"] },
  { settings: ["joinMsMax"], metric: "coroom_gateway_joins_total", tests: ["GW10", "ROOM20"] },
  { settings: ["silenceMsMax"], metric: "coroom_gateway_closes_total", tests: ["LIM10"] },
  { settings: ["outboundBytesMax"], metric: "coroom_gateway_behind_bytes", tests: ["GW15"] },
  { settings: ["behindBytesMax"], metric: "coroom_gateway_presence_behind_total", tests: ["LIM12"] },
  { settings: ["slowBytesMax", "slowMsMax"], metric: "coroom_gateway_closes_total", tests: ["GW14", "OUT1", "OUT4"] },
  { settings: ["closingMsMax"], metric: "coroom_gateway_closing_bytes", tests: ["SLOW4", "SLOW5"] },
  { settings: ["outboundP99MsMax"], metric: "coroom_gateway_outbound_p99_seconds", tests: ["OUH1", "GW31"] },
  {
    settings: ["presenceBurst", "presencePerSecondMax", "presenceMemberBytesMax", "presenceFieldsMax"],
    metric: "coroom_gateway_presence_refused_total",
    tests: ["LIM8"],
  },
  {
    settings: ["firstContentsMax", "firstContentRequestsMax", "firstContentRequestsPerApplicationMax", "firstContentEditsMax"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["FCG7", "FCG8", "FCG17", "FCG22"],
  },
  {
    settings: ["forwardedEditsPerRoomMax", "forwardedBytesPerRoomMax", "forwardedBytesMax"],
    metric: "coroom_gateway_limits_reached_total",
    tests: ["UNA5", "ROOM8"],
  },
  {
    settings: ["forwardsPerSecond", "roomForwardsPerSecondMin"],
    metric: "coroom_gateway_forwards_gathered_total",
    tests: ["FWD2", "FWD3", "FWD5", "FWH1"],
  },
  { settings: ["gapBytesMax"], metric: "coroom_gateway_gaps_total", tests: ["ORD4"] },
  { settings: ["shedDelayMsMin", "shedOutboundBytesMin", "shedNatsLagMsMin"], metric: "coroom_gateway_shed_level", tests: ["SHED1"] },
  { settings: ["drainMsMax"], metric: "coroom_gateway_closes_total", tests: ["GW20"] },
  { settings: ["backboneLossMsMax"], metric: "coroom_gateway_closes_total", tests: ["GW17"] },
];

/**
 * Settings that limit nothing: addresses, credentials, intervals, and retention times of data that another limit
 * bounds.
 */
const NO_LIMITS: readonly Setting[] = [
  "host",
  "port",
  "tlsCertFile",
  "tlsKeyFile",
  "production",
  "allowedOrigins",
  "staticDir",
  "jwtSecret",
  "jwtSecretPrevious",
  "jwksUrl",
  "jwksFile",
  "jwtIssuer",
  "jwtAudience",
  "jwtClockToleranceSeconds",
  "internalSecret",
  "operatorSecret",
  "metricsSecret",
  "internalCaFile",
  "clientAddressHeader",
  "knownTokenMsMax",
  "retryAfterMs",
  "abuseBanMs",
  "abuseBanMsMax",
  "snapshotSharedMs",
  "boardSharedMs",
  "pingIntervalMs",
  "presenceFlushMs",
  "presenceRepeatMs",
  "presenceKeepaliveMs",
  "presenceOwnerSilenceMsMax",
  "spectatorAfterMs",
  "gatewayHeartbeatMs",
  "ownerSilenceMsMax",
  "forwardedKeptMs",
  "recentBytesMax",
  "recentMsMax",
  "roomLingerMs",
  "shedPressureMs",
  "shedCalmMs",
  "boardKinds",
  "boardSessionMs",
  "boardSessionPoints",
  "boardWatchMs",
  "usageTenantsPerBatchMax",
  "usageFlushMs",
  "usageSampleMs",
  "usageDaysMax",
  "usageRowsMax",
];

test("[GCF3] every setting is a limit with a metric and a test, or is declared as no limit", () => {
  const named = [...LIMITS.flatMap(({ settings }) => settings), ...NO_LIMITS];
  const settings = Object.keys(gatewaySettings);
  expect(
    settings.filter((setting) => !named.includes(setting as Setting)),
    "name it in LIMITS, or in NO_LIMITS",
  ).toEqual([]);
  expect(named.toSorted()).toEqual(settings.toSorted()); // Each setting is listed once.
});

test("[GCF4] the metric and the tests of every limit exist", () => {
  const registry = new Registry();
  gatewayMetrics(registry);
  expect(missingOf(LIMITS, registry, new URL(".", import.meta.url))).toEqual({ metrics: [], tests: [] });
});
