/** As on gateways: each limit has a number, a metric and a test that reaches it, and every setting is listed here. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type Limit, missingOf } from "../shared/testing/limits.ts";
import { yWebsocketSettings } from "./config.ts";
import { yWebsocketMetrics } from "./metrics.ts";

type Setting = keyof typeof yWebsocketSettings;

const LIMITS: readonly Limit<Setting>[] = [
  { settings: ["yClientsMax"], metric: "coroom_y_turned_away_total", tests: ["YWS7"] },
  { settings: ["yClientsPerAddressMax"], metric: "coroom_y_turned_away_total", tests: ["YPL1", "YWS18"] },
  { settings: ["yDocumentsMax"], metric: "coroom_y_closes_total", tests: ["YHP10"] },
  { settings: ["yHelloMsMax"], metric: "coroom_y_closes_total", tests: ["YCL16", "YHP5", "YHP9", "YWS17"] },
  { settings: ["yRoomBytesMax"], metric: "coroom_y_closes_total", tests: ["YRC5"] },
  { settings: ["yHeldBytesMax"], metric: "coroom_y_closes_total", tests: ["YCL11", "YCL20", "YWS9", "YWS21"] },
  { settings: ["yUnfinishedBytesMax"], metric: "coroom_y_unfinished_bytes", tests: ["YUN1", "YUN2", "YWS22"] },
  { settings: ["yWaitingBytesMax"], metric: "coroom_y_closes_total", tests: ["YCL5", "YHP11"] },
  { settings: ["yUnreadBytesMax"], metric: "coroom_y_unread_bytes", tests: ["YUR1", "YAT2", "YWS30"] },
  { settings: ["yAnswerBytesBurst", "yAnswerBytesPerSecond"], metric: "coroom_y_answers_later_total", tests: ["YAN1", "YCL17", "YCL27"] },
  { settings: ["yUpdateBytesBurst", "yUpdateBytesPerSecond"], metric: "coroom_y_closes_total", tests: ["YCL18", "YCL27"] },
  { settings: ["yMessageBytesMax"], metric: "coroom_y_closes_total", tests: ["YWS20"] },
  { settings: ["ySaveMsMax"], metric: "coroom_y_clients", tests: ["YCL6"] },
];

/** Addresses that the bridge listens on or connects to. */
const NO_LIMITS: readonly Setting[] = ["yHost", "yPort", "yGatewayUrl"];

test("[YCF1] every setting is a limit with a metric and a test, or is declared as no limit", () => {
  const named = [...LIMITS.flatMap(({ settings }) => settings), ...NO_LIMITS];
  expect(named.toSorted(), "name it in LIMITS, or in NO_LIMITS").toEqual(Object.keys(yWebsocketSettings).toSorted());
});

test("[YCF2] the metrics and tests of all limits exist", () => {
  const registry = new Registry();
  yWebsocketMetrics(registry);
  expect(missingOf(LIMITS, registry, new URL(".", import.meta.url))).toEqual({ metrics: [], tests: [] });
});
